use agtmux_api::fleet_items::FleetItems;
use agtmux_api::wire::WatchEvent;

use crate::StreamSignal;

/// A local copy of the fleet. The copy changes only at [`StreamSignal::CaughtUp`], so it never shows an incomplete
/// snapshot.
#[derive(Debug, Default)]
pub struct FleetReplica {
    items: FleetItems,
    /// The events since the last [`StreamSignal::CaughtUp`]. They are not part of the copy yet.
    pending: Vec<WatchEvent>,
    complete: bool,
}

impl FleetReplica {
    /// Processes the next signal of the stream. Returns true if the copy has changed.
    pub fn receive(&mut self, signal: StreamSignal<WatchEvent>) -> bool {
        match signal {
            StreamSignal::Event(event) => self.pending.push(event),
            StreamSignal::CaughtUp => {
                let has_changed = !self.complete || !self.pending.is_empty();
                self.complete = true;
                self.pending.drain(..).for_each(|event| self.items.apply(event));
                return has_changed;
            }
            // If the first snapshot is interrupted, the daemon sends it again. Later, the stream resumes after the last
            // event.
            StreamSignal::Disconnected(_) if !self.complete => self.pending.clear(),
            StreamSignal::Disconnected(_) => {}
        }
        false
    }

    /// Whether the first snapshot is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The items of the fleet. Empty until the first snapshot is complete.
    pub fn items(&self) -> &FleetItems {
        &self.items
    }
}
