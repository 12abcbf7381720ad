use agtmux_api::fleet_items::FleetItems;
use agtmux_api::wire::WatchEvent;

use crate::StreamSignal;

/// A local copy of the fleet. It changes only where the stream has caught up, so it is at all times what the lists of
/// the daemon would answer.
#[derive(Debug, Default)]
pub struct FleetReplica {
    items: FleetItems,
    /// Events that the stream has not completed yet.
    pending: Vec<WatchEvent>,
    complete: bool,
}

impl FleetReplica {
    /// Takes the next signal of the stream. Returns true if the copy has changed.
    pub fn receive(&mut self, signal: StreamSignal<WatchEvent>) -> bool {
        match signal {
            StreamSignal::Event(event) => self.pending.push(event),
            StreamSignal::CaughtUp => {
                let has_changed = !self.complete || !self.pending.is_empty();
                self.complete = true;
                self.pending.drain(..).for_each(|event| self.items.apply(event));
                return has_changed;
            }
            // The first snapshot was cut off and is sent again. Other events continue where they ended.
            StreamSignal::Disconnected(_) if !self.complete => self.pending.clear(),
            StreamSignal::Disconnected(_) => {}
        }
        false
    }

    /// Whether the first snapshot is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The items; none before the first snapshot is complete.
    pub fn items(&self) -> &FleetItems {
        &self.items
    }
}
