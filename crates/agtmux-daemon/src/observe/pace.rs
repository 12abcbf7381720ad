//! When a server is asked. As rarely as possible: each question costs its server time in proportion to all its panes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A listing is followed by a rest of this many times what it took.
const REST: u32 = 5;
const SHORTEST_REST: Duration = Duration::from_millis(10);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Reads of single panes: a few at once, then one a second.
const READ_BURST: f64 = 8.0;
const READS_PER_SECOND: f64 = 1.0;
const PANES_PER_READ: usize = 64;

/// How often the process table is asked what the server is doing. This costs the server nothing.
pub(super) const TICK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    List,
    Read(Vec<u32>),
}

#[derive(Debug)]
pub(super) struct Pace {
    active: Duration,
    idle: Duration,
    list_wanted: bool,
    rested_at: Instant,
    listed_at: Option<Instant>,
    /// The next look that nobody asked for, and the time after it.
    net_at: Option<Instant>,
    net_step: Duration,
    dirty: BTreeSet<u32>,
    reads: f64,
    reads_at: Instant,
    tick_at: Instant,
}

impl Pace {
    pub(super) fn new(active: Duration, idle: Duration, now: Instant) -> Self {
        Self {
            active,
            idle,
            list_wanted: true,
            rested_at: now,
            listed_at: None,
            net_at: None,
            net_step: active,
            dirty: BTreeSet::new(),
            reads: READ_BURST,
            reads_at: now,
            tick_at: now + TICK,
        }
    }

    /// Something is known to have changed.
    pub(super) fn want_list(&mut self) {
        self.list_wanted = true;
        self.net_step = self.active;
    }

    pub(super) fn want_read(&mut self, pane: u32) {
        self.dirty.insert(pane);
    }

    /// The server has run without a hint of ours: look soon, but no more often than an active server is looked at.
    pub(super) fn server_ran(&mut self, now: Instant) {
        self.net_step = self.active;
        let due = self.listed_at.map_or(now, |at| at + self.active);
        self.net_at = Some(self.net_at.map_or(due, |at| at.min(due)));
    }

    /// Tries again after a failure.
    pub(super) fn retry_in(&mut self, wait: Duration, now: Instant) {
        self.list_wanted = true;
        self.rested_at = now + wait;
    }

    pub(super) fn listed(&mut self, took: Duration, now: Instant) {
        self.list_wanted = false;
        self.dirty.clear();
        self.listed_at = Some(now);
        self.rested_at = now + (took * REST).clamp(SHORTEST_REST, LONGEST_REST);
        // Ever more rarely, and after the longest step not at all: a server that has not run has not changed.
        self.net_at = (self.net_step <= self.idle).then(|| now + self.net_step);
        self.net_step = if self.net_step >= self.idle { self.idle + TICK } else { (self.net_step * 2).min(self.idle) };
    }

    /// What is due. Asking for it means doing it.
    pub(super) fn take(&mut self, now: Instant) -> Option<Work> {
        let net = self.net_at.is_some_and(|at| at <= now);
        if (self.list_wanted || net) && self.rested_at <= now {
            return Some(Work::List);
        }
        self.refill(now);
        if self.dirty.is_empty() || self.reads < 1.0 || self.rested_at > now {
            return None;
        }
        self.reads -= 1.0;
        let panes: Vec<u32> = self.dirty.iter().take(PANES_PER_READ).copied().collect();
        self.dirty.retain(|pane| !panes.contains(pane));
        Some(Work::Read(panes))
    }

    /// Whether a second has passed since the last time this was so.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let due = self.tick_at <= now;
        if due {
            self.tick_at = now + TICK;
        }
        due
    }

    pub(super) fn wake_at(&self) -> Instant {
        let list = self.list_wanted.then_some(self.rested_at);
        let net = self.net_at.map(|at| at.max(self.rested_at));
        let missing = (1.0 - self.reads).max(0.0) / READS_PER_SECOND;
        let read =
            (!self.dirty.is_empty()).then(|| (self.reads_at + Duration::from_secs_f64(missing)).max(self.rested_at));
        [list, net, read].into_iter().flatten().fold(self.tick_at, Instant::min)
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.reads_at).as_secs_f64() * READS_PER_SECOND;
        self.reads = (self.reads + gained).min(READ_BURST);
        self.reads_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn pace(now: Instant) -> Pace {
        Pace::new(secs(2), secs(30), now)
    }

    const QUICK: Duration = Duration::from_millis(2);

    #[test]
    fn an_idle_server_is_looked_at_ever_more_rarely_and_then_not_at_all() {
        let start = Instant::now();
        let mut pace = pace(start);
        let mut now = start;
        let mut looks = Vec::new();
        while now < start + secs(600) {
            if pace.take(now) == Some(Work::List) {
                looks.push((now - start).as_secs());
                pace.listed(QUICK, now);
            }
            now += secs(1);
        }
        assert_eq!(looks, [0, 2, 6, 14, 30, 60]);
    }

    #[test]
    fn a_server_that_runs_is_looked_at_every_two_seconds() {
        let start = Instant::now();
        let mut pace = pace(start);
        let looks = (0..100).filter(|n| {
            let now = start + Duration::from_millis(n * 100);
            pace.server_ran(now);
            let due = pace.take(now) == Some(Work::List);
            if due {
                pace.listed(QUICK, now);
            }
            due
        });
        assert_eq!(looks.count(), 5);
    }

    #[test]
    fn a_hint_is_followed_at_once_but_a_storm_of_them_is_not() {
        let start = Instant::now();
        let mut pace = pace(start);
        pace.listed(Duration::from_millis(20), start);
        pace.want_list();
        assert_eq!(pace.take(start + Duration::from_millis(50)), None, "it rests five times what it took");
        assert_eq!(pace.take(start + Duration::from_millis(101)), Some(Work::List));
    }

    #[test]
    fn reads_come_in_a_burst_and_then_one_a_second() {
        let start = Instant::now();
        let mut pace = pace(start);
        pace.listed(QUICK, start);
        let mut reads = 0;
        for n in 2..300 {
            let now = start + Duration::from_millis(n * 10);
            pace.net_at = None;
            pace.want_read(1);
            reads += u32::from(matches!(pace.take(now), Some(Work::Read(_))));
        }
        assert_eq!(reads, 10, "eight at once and two more in three seconds");
        assert!(pace.wake_at() <= start + secs(4));
    }

    #[test]
    fn a_read_waits_for_its_turn_without_waking_in_between() {
        let start = Instant::now();
        let mut pace = pace(start);
        pace.listed(QUICK, start);
        pace.reads = 0.0;
        pace.want_read(3);
        let wake = pace.wake_at();
        assert!(wake > start + Duration::from_millis(900), "the next read is a second away");
    }
}
