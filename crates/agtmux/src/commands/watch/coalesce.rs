//! If an item changes several times within an interval, keeps only its last change.

use std::collections::HashMap;

use agtmux_api::wire::{EventSubject, WatchEvent};

#[derive(Debug, Default)]
pub(super) struct PendingEvents(HashMap<EventSubject, WatchEvent>);

impl PendingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Stores the event, which replaces an earlier event with the same subject. An event without a subject is not
    /// stored but returned at once.
    pub(super) fn put(&mut self, event: WatchEvent) -> Option<WatchEvent> {
        let Some(subject) = event.subject() else { return Some(event) };
        self.0.insert(subject, event);
        None
    }

    pub(super) fn take(&mut self) -> Vec<WatchEvent> {
        let mut events: Vec<WatchEvent> = self.0.drain().map(|(_, event)| event).collect();
        events.sort_by_key(|event| event.seq);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::wire::{SessionIdentity, SessionItem, StateTally, WatchEventKind, WatchItem};

    fn event(seq: u64, kind: WatchEventKind, session: &str) -> WatchEvent {
        let item = WatchItem::Session(SessionItem {
            identity: SessionIdentity { target: None, server: None, session_name: session.into() },
            counts: StateTally::default(),
            by_target: Default::default(),
            windows: 1,
            panes: 1,
        });
        let at = jiff::Timestamp::UNIX_EPOCH;
        WatchEvent::of_item(kind, item, seq, at)
    }

    #[test]
    fn the_last_event_of_each_item_is_kept_in_order_of_seq() {
        let mut pending = PendingEvents::default();
        for event in [
            event(1, WatchEventKind::Upsert, "a"),
            event(2, WatchEventKind::Upsert, "b"),
            event(3, WatchEventKind::Remove, "a"),
        ] {
            assert!(pending.put(event).is_none());
        }
        let kept: Vec<_> = pending.take().into_iter().map(|event| (event.seq, event.kind)).collect();
        assert_eq!(kept, [(2, WatchEventKind::Upsert), (3, WatchEventKind::Remove)]);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_reset_is_returned_at_once() {
        let reset = WatchEvent { item: None, ..event(4, WatchEventKind::Reset, "a") };
        assert!(PendingEvents::default().put(reset).is_some());
    }
}
