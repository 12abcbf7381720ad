//! Somebody who believes `agtmux watch` and nothing else.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use agtmux_api::wire::{EventKind, Item, WatchEvent};
use agtmux_testkit::{Running, World};

use super::picture::{Picture, claim};

/// Follows one scope for as long as it lives.
pub(crate) struct Follower {
    _watch: Running,
    heard: Arc<Mutex<Heard>>,
}

/// The snapshot with all events applied to it.
struct Heard {
    items: BTreeMap<String, Item>,
    picture: Picture,
    pictured_at: Instant,
    last_seq: u64,
    snapshot_over: bool,
    events: usize,
    faults: Vec<String>,
}

impl Follower {
    pub(crate) fn start(world: &World, scope: &'static str) -> Self {
        let mut watch = world.agtmux();
        watch.args(["watch", "--all", "--format", "jsonl", "--scope", scope]).stdout(Stdio::piped());
        let mut watch = Running::start(&mut watch);
        let lines = watch.stdout.take().expect("it was piped");
        let heard = Arc::new(Mutex::new(Heard::nothing()));
        let for_reader = Arc::clone(&heard);
        thread::spawn(move || listen(lines, &for_reader));
        Self { _watch: watch, heard }
    }

    /// What it believes to be there, and since when.
    pub(crate) fn picture(&self) -> (Picture, Instant) {
        let heard = self.heard();
        (heard.picture.clone(), heard.pictured_at)
    }

    /// The items as they were last told, by their identity.
    pub(crate) fn items(&self) -> BTreeMap<String, Item> {
        self.heard().items.clone()
    }

    pub(crate) fn events(&self) -> usize {
        self.heard().events
    }

    #[track_caller]
    pub(crate) fn assert_consistent(&self) {
        let faults = &self.heard().faults;
        assert!(faults.is_empty(), "the stream contradicts itself: {faults:#?}");
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen(lines: ChildStdout, heard: &Mutex<Heard>) {
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_str(&line) {
            Ok(event) => heard.apply(event),
            Err(error) => heard.faults.push(format!("{error} in {line}")),
        }
    }
}

impl Heard {
    fn nothing() -> Self {
        Self {
            items: BTreeMap::new(),
            picture: Picture::new(),
            pictured_at: Instant::now(),
            last_seq: 0,
            snapshot_over: false,
            events: 0,
            faults: Vec::new(),
        }
    }

    fn apply(&mut self, event: WatchEvent) {
        self.events += 1;
        self.check_order(&event);
        match (&event.kind, event.item.clone()) {
            (EventKind::Snapshot | EventKind::Upsert, Some(item)) => self.put(&event, item),
            (EventKind::Remove, Some(item)) => self.remove(&event, &item),
            _ => self.faults.push(format!("nobody was behind, and yet {event:?}")),
        }
        let picture: Picture = self.items.values().map(claim).collect();
        if picture != self.picture {
            (self.picture, self.pictured_at) = (picture, Instant::now());
        }
    }

    /// The items of the snapshot share a number; after it numbers grow.
    fn check_order(&mut self, event: &WatchEvent) {
        let is_snapshot = event.kind == EventKind::Snapshot;
        let grows = event.seq > self.last_seq || (is_snapshot && event.seq == self.last_seq);
        if !grows || (is_snapshot && self.snapshot_over) {
            self.faults.push(format!("after {}: {event:?}", self.last_seq));
        }
        self.snapshot_over |= !is_snapshot;
        self.last_seq = event.seq;
    }

    fn put(&mut self, event: &WatchEvent, item: Item) {
        if self.items.get(&identity(&item)) == Some(&item) {
            self.faults.push(format!("told twice: {event:?}"));
        }
        self.items.insert(identity(&item), item);
    }

    fn remove(&mut self, event: &WatchEvent, item: &Item) {
        if self.items.remove(&identity(item)).is_none() {
            self.faults.push(format!("never told of what goes: {event:?}"));
        }
    }
}

pub(crate) fn identity(item: &Item) -> String {
    match item {
        Item::Pane(pane) => format!("{:?}", pane.identity),
        Item::Window(window) => format!("{:?}", window.identity),
        Item::Session(session) => format!("{:?}", session.identity),
    }
}
