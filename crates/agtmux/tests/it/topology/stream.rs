//! Follows `agtmux watch` and applies its events.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use agtmux_api::wire::{WatchEvent, WatchEventKind, WatchItem};
use agtmux_testkit::{ChildGuard, TestWorld};

use super::entries::{TopologyEntries, entry_of_item};

/// Follows one scope until dropped.
pub(crate) struct WatchFollower {
    _watch: ChildGuard,
    followed: Arc<Mutex<FollowedItems>>,
}

/// The snapshot with all events applied to it.
struct FollowedItems {
    items: BTreeMap<String, WatchItem>,
    entries: TopologyEntries,
    changed_at: Instant,
    last_seq: u64,
    snapshot_over: bool,
    events: usize,
    errors: Vec<String>,
}

impl WatchFollower {
    pub(crate) fn start(world: &TestWorld, scope: &'static str) -> Self {
        let mut watch = world.agtmux();
        watch.args(["watch", "--all", "--format", "jsonl", "--scope", scope]).stdout(Stdio::piped());
        let mut watch = ChildGuard::start(&mut watch);
        let lines = watch.stdout.take().expect("stdout is piped");
        let followed = Arc::new(Mutex::new(FollowedItems::empty()));
        let for_reader = Arc::clone(&followed);
        thread::spawn(move || read_events(lines, &for_reader));
        Self { _watch: watch, followed }
    }

    /// The current entries and when they last changed.
    pub(crate) fn entries(&self) -> (TopologyEntries, Instant) {
        let followed = self.followed();
        (followed.entries.clone(), followed.changed_at)
    }

    /// The current items by identity.
    pub(crate) fn items(&self) -> BTreeMap<String, WatchItem> {
        self.followed().items.clone()
    }

    pub(crate) fn events(&self) -> usize {
        self.followed().events
    }

    #[track_caller]
    pub(crate) fn assert_consistent(&self) {
        let errors = &self.followed().errors;
        assert!(errors.is_empty(), "the stream is inconsistent: {errors:#?}");
    }

    fn followed(&self) -> MutexGuard<'_, FollowedItems> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_events(lines: ChildStdout, followed: &Mutex<FollowedItems>) {
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_str(&line) {
            Ok(event) => followed.apply(event),
            Err(error) => followed.errors.push(format!("{error} in {line}")),
        }
    }
}

impl FollowedItems {
    fn empty() -> Self {
        Self {
            items: BTreeMap::new(),
            entries: TopologyEntries::new(),
            changed_at: Instant::now(),
            last_seq: 0,
            snapshot_over: false,
            events: 0,
            errors: Vec::new(),
        }
    }

    fn apply(&mut self, event: WatchEvent) {
        self.events += 1;
        if event.kind == WatchEventKind::TargetErrors {
            // Outages are not compared: on a busy machine a server may not answer for a moment.
            self.last_seq = event.seq;
            return;
        }
        self.check_order(&event);
        match (&event.kind, event.item.clone()) {
            (WatchEventKind::Snapshot | WatchEventKind::Upsert, Some(item)) => self.put(&event, item),
            (WatchEventKind::Remove, Some(item)) => self.remove(&event, &item),
            _ => self.errors.push(format!("unexpected event: {event:?}")),
        }
        let entries: TopologyEntries = self.items.values().map(entry_of_item).collect();
        if entries != self.entries {
            (self.entries, self.changed_at) = (entries, Instant::now());
        }
    }

    /// Checks that snapshot items share one seq and that later seqs increase.
    fn check_order(&mut self, event: &WatchEvent) {
        let is_snapshot = event.kind == WatchEventKind::Snapshot;
        let grows = event.seq > self.last_seq || (is_snapshot && event.seq == self.last_seq);
        if !grows || (is_snapshot && self.snapshot_over) {
            self.errors.push(format!("after {}: {event:?}", self.last_seq));
        }
        self.snapshot_over |= !is_snapshot;
        self.last_seq = event.seq;
    }

    fn put(&mut self, event: &WatchEvent, item: WatchItem) {
        if self.items.get(&identity(&item)) == Some(&item) {
            self.errors.push(format!("repeated item: {event:?}"));
        }
        self.items.insert(identity(&item), item);
    }

    fn remove(&mut self, event: &WatchEvent, item: &WatchItem) {
        if self.items.remove(&identity(item)).is_none() {
            self.errors.push(format!("removal of an unknown item: {event:?}"));
        }
    }
}

pub(crate) fn identity(item: &WatchItem) -> String {
    match item {
        WatchItem::Pane(pane) => format!("{:?}", pane.identity),
        WatchItem::Window(window) => format!("{:?}", window.identity),
        WatchItem::Session(session) => format!("{:?}", session.identity),
        WatchItem::Target(target) => target.name.clone(),
    }
}
