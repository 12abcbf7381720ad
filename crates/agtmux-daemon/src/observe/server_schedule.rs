//! Decides when to query a tmux server. Queries are kept rare, because the cost of each query grows with the number of
//! panes on the server.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::clock::{self, BEAT};

/// After a listing, agtmux waits for this many times the duration of that listing before it lists the server again. The
/// first few listings of a burst are exempt, because one change often causes several hints.
const REST_FACTOR: u32 = 5;
const MAX_LISTING_BURST: f64 = 3.0;
const MIN_REST: Duration = Duration::from_millis(10);
const MAX_REST: Duration = Duration::from_secs(1);

/// A reconcile is a listing that no hint requested. The interval between reconciles is at least this value times the
/// number of listed rows, because large listings are expensive. The interval is never longer than the configured idle
/// interval.
const RECONCILE_PER_ROW: Duration = Duration::from_millis(30);
/// While panes write, the shortest reconcile interval is this many times longer. Output alone keeps the server active,
/// so an active server is then only a weak sign of a change.
const RECONCILE_WRITING_FACTOR: u32 = 3;

/// When a pane writes again after this much silence, agtmux reads the pane promptly after each of the first
/// `PROMPT_READS` writes.
const QUIET_AFTER: Duration = Duration::from_secs(3);
const PROMPT_READS: u8 = 2;
/// The limits of the prompt reads (see `PROMPT_READS`) of all panes together: how many may follow each other without a
/// pause, and how many there may be per second after that.
const READ_BURST: f64 = 8.0;
const READS_PER_SECOND: f64 = 2.0;
/// All panes that keep writing are read together, once per this interval. On a large server the interval is longer:
/// `STEADY_READS_PER_ROW` times the number of rows. Listings read these panes in the meantime.
const STEADY_READS: Duration = Duration::from_secs(6);
const STEADY_READS_PER_ROW: Duration = Duration::from_millis(10);
const PANES_PER_READ: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerWork {
    List,
    Read(Vec<u32>),
}

#[derive(Debug)]
pub(super) struct ServerSchedule {
    active: Duration,
    idle: Duration,
    rows: u32,
    list_wanted: bool,
    list_not_before: Instant,
    list_credit: f64,
    listed_at: Option<Instant>,
    /// When the next reconcile is due. `reconcile_interval` is the time from the next listing to the reconcile after
    /// it.
    reconcile_at: Option<Instant>,
    reconcile_interval: Duration,
    writers: HashMap<u32, Writer>,
    prompt: BTreeSet<u32>,
    steady: BTreeSet<u32>,
    steady_at: Instant,
    read_credit: f64,
    read_credit_at: Instant,
    /// When to check the process table for signs that the tmux server was active. The check costs the server nothing.
    tick_at: Instant,
}

/// A pane that wrote a short time ago.
#[derive(Debug)]
struct Writer {
    wrote_at: Instant,
    prompt_reads: u8,
}

impl ServerSchedule {
    pub(super) fn new(active: Duration, idle: Duration, now: Instant, first_tick: Instant) -> Self {
        Self {
            active,
            idle,
            rows: 0,
            list_wanted: true,
            list_not_before: now,
            list_credit: MAX_LISTING_BURST,
            listed_at: None,
            reconcile_at: None,
            reconcile_interval: active,
            writers: HashMap::new(),
            prompt: BTreeSet::new(),
            steady: BTreeSet::new(),
            steady_at: now,
            read_credit: READ_BURST,
            read_credit_at: now,
            tick_at: first_tick,
        }
    }

    /// Requests a listing, because something changed.
    pub(super) fn want_list(&mut self) {
        self.list_wanted = true;
        self.reconcile_interval = self.active;
    }

    /// Requests a read of a pane that wrote.
    pub(super) fn want_read(&mut self, pane: u32, now: Instant) {
        let writer = self.writers.entry(pane).or_insert(Writer { wrote_at: now, prompt_reads: PROMPT_READS });
        if now >= writer.wrote_at + QUIET_AFTER {
            writer.prompt_reads = PROMPT_READS;
        }
        writer.wrote_at = now;
        match writer.prompt_reads.checked_sub(1) {
            Some(left) => {
                writer.prompt_reads = left;
                self.prompt.insert(pane);
            }
            None => {
                self.steady.insert(pane);
            }
        }
    }

    /// Schedules a reconcile soon, because the server was active but reported no change.
    pub(super) fn server_ran(&mut self, panes_write: bool, now: Instant) {
        let least = if panes_write { self.active * RECONCILE_WRITING_FACTOR } else { self.active };
        self.reconcile_interval = least.max(RECONCILE_PER_ROW * self.rows).min(self.idle);
        let due = self.listed_at.map_or(now, |at| at + self.reconcile_interval);
        self.reconcile_at = Some(self.reconcile_at.map_or(due, |at| at.min(due)));
    }

    /// Plans a retry after a failure.
    pub(super) fn retry_in(&mut self, wait: Duration, now: Instant) {
        self.list_wanted = true;
        self.list_not_before = now + wait;
    }

    pub(super) fn listed(&mut self, rows: usize, took: Duration, now: Instant) {
        self.rows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.rest(took, now);
        self.list_wanted = false;
        self.prompt.clear();
        self.steady.clear();
        self.writers.retain(|_, writer| now < writer.wrote_at + QUIET_AFTER);
        self.listed_at = Some(now);
        // Lengthen the interval each time. Stop after the longest interval, because a server that was not active has
        // not changed.
        self.reconcile_at = (self.reconcile_interval <= self.idle).then(|| now + self.reconcile_interval);
        self.reconcile_interval = if self.reconcile_interval >= self.idle {
            self.idle + BEAT
        } else {
            (self.reconcile_interval * 2).min(self.idle)
        };
    }

    fn rest(&mut self, took: Duration, now: Instant) {
        let rest = (took * REST_FACTOR).clamp(MIN_REST, MAX_REST);
        let since = self.listed_at.map_or(rest, |at| now.saturating_duration_since(at));
        self.list_credit = (self.list_credit + since.div_duration_f64(rest)).min(MAX_LISTING_BURST) - 1.0;
        self.list_not_before = now + rest.mul_f64((1.0 - self.list_credit).max(0.0)).max(MIN_REST);
    }

    /// Returns the work that is due. The caller must do this work, because the schedule does not return the same panes
    /// again.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ServerWork> {
        let net = self.reconcile_at.is_some_and(|at| at <= now);
        if (self.list_wanted || net) && self.list_not_before <= now {
            return Some(ServerWork::List);
        }
        self.refill(now);
        let prompt = !self.prompt.is_empty() && self.read_credit >= 1.0;
        let steady = !self.steady.is_empty() && self.steady_at <= now;
        if !prompt && !steady {
            return None;
        }
        self.read_credit -= f64::from(u8::from(prompt));
        self.steady_at = now + STEADY_READS.max(STEADY_READS_PER_ROW * self.rows);
        Some(ServerWork::Read(self.take_panes()))
    }

    /// Takes at most `PANES_PER_READ` panes: first those that need a prompt read, then those that keep writing.
    fn take_panes(&mut self) -> Vec<u32> {
        let panes: BTreeSet<u32> = self.prompt.iter().chain(&self.steady).take(PANES_PER_READ).copied().collect();
        self.prompt.retain(|pane| !panes.contains(pane));
        self.steady.retain(|pane| !panes.contains(pane));
        panes.into_iter().collect()
    }

    /// Whether a tick is due. The time between two ticks is a multiple of `BEAT`, so that all servers tick in the same
    /// wake-up of the daemon.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let due = self.tick_at <= now;
        if due {
            self.tick_at = clock::next_beat(self.tick_at, now);
        }
        due
    }

    pub(super) fn wake_at(&self) -> Instant {
        let list = self.list_wanted.then_some(self.list_not_before);
        let net = self.reconcile_at.map(|at| at.max(self.list_not_before));
        let missing = (1.0 - self.read_credit).max(0.0) / READS_PER_SECOND;
        let prompt = (!self.prompt.is_empty()).then(|| self.read_credit_at + Duration::from_secs_f64(missing));
        let steady = (!self.steady.is_empty()).then_some(self.steady_at);
        [list, net, prompt, steady].into_iter().flatten().fold(self.tick_at, Instant::min)
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.saturating_duration_since(self.read_credit_at).as_secs_f64() * READS_PER_SECOND;
        self.read_credit = (self.read_credit + gained).min(READ_BURST);
        self.read_credit_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn schedule(now: Instant) -> ServerSchedule {
        ServerSchedule::new(secs(2), secs(30), now, now + BEAT)
    }

    const QUICK: Duration = Duration::from_millis(2);

    /// Asks the schedule for work ten times a second. Returns the seconds at which the schedule requested a listing.
    fn lists(
        schedule: &mut ServerSchedule,
        rows: usize,
        length: Duration,
        mut before: impl FnMut(&mut ServerSchedule, Instant),
    ) -> Vec<u64> {
        let start = schedule.tick_at - BEAT;
        let mut times = Vec::new();
        let mut now = start;
        while now < start + length {
            before(schedule, now);
            if schedule.take_due(now) == Some(ServerWork::List) {
                times.push((now - start).as_secs());
                schedule.listed(rows, QUICK, now);
            }
            now += millis(100);
        }
        times
    }

    #[test]
    fn an_idle_server_is_listed_less_and_less_often_and_then_never() {
        let mut schedule = schedule(Instant::now());
        assert_eq!(lists(&mut schedule, 10, secs(600), |_, _| {}), [0, 2, 6, 14, 30, 60]);
    }

    #[test]
    fn ticks_stay_whole_seconds_apart_even_if_some_are_late() {
        let start = Instant::now();
        let mut schedule = schedule(start);
        let ticks: Vec<u64> = [999, 1000, 1500, 2300, 2999, 3000, 7700, 7999, 8001]
            .into_iter()
            .filter(|at| schedule.tick(start + millis(*at)))
            .collect();
        assert_eq!(ticks, [1000, 2300, 3000, 7700, 8001]);
    }

    #[test]
    fn a_running_server_is_listed_every_two_seconds() {
        let mut schedule = schedule(Instant::now());
        assert_eq!(lists(&mut schedule, 10, secs(9), |schedule, now| schedule.server_ran(false, now)), [0, 2, 4, 6, 8]);
    }

    #[test]
    fn a_large_server_or_one_whose_panes_write_is_listed_less_often() {
        let mut writing = schedule(Instant::now());
        assert_eq!(lists(&mut writing, 10, secs(9), |schedule, now| schedule.server_ran(true, now)), [0, 6]);
        let mut large = schedule(Instant::now());
        assert_eq!(lists(&mut large, 1000, secs(70), |schedule, now| schedule.server_ran(true, now)), [0, 6, 36, 66]);
    }

    #[test]
    fn a_few_hints_cause_immediate_listings_but_a_storm_is_limited() {
        let start = Instant::now();
        let (mut schedule, took) = (schedule(start), millis(20));
        let mut followed = Vec::new();
        for n in 0..1000 {
            let now = start + millis(n);
            schedule.want_list();
            if schedule.take_due(now) == Some(ServerWork::List) {
                followed.push(n);
                schedule.listed(100, took, now);
            }
        }
        assert_eq!(followed[..6], [0, 10, 20, 100, 200, 300]);
        assert_eq!(followed.len(), 12);
    }

    #[test]
    fn a_quiet_pane_is_read_at_once_and_after_its_burst() {
        let start = Instant::now();
        let mut schedule = schedule(start);
        schedule.listed(10, QUICK, start);
        for (at, read) in [(100, true), (200, true), (300, false), (3400, true), (3500, true), (3600, false)] {
            let now = start + millis(at);
            schedule.reconcile_at = None;
            schedule.steady.clear();
            schedule.want_read(1, now);
            assert_eq!(schedule.take_due(now), read.then(|| ServerWork::Read(vec![1])), "after {at} ms");
        }
    }

    #[test]
    fn panes_that_keep_writing_are_read_together_and_rarely() {
        let start = Instant::now();
        let mut schedule = schedule(start);
        schedule.listed(10, QUICK, start);
        let mut reads = Vec::new();
        for n in 0..200 {
            let now = start + millis(n * 100);
            schedule.reconcile_at = None;
            (1..=20).for_each(|pane| schedule.want_read(pane, now));
            if let Some(ServerWork::Read(panes)) = schedule.take_due(now) {
                assert_eq!(panes.len(), 20);
                reads.push(n);
            }
        }
        assert_eq!(reads, [0, 1, 61, 121, 181]);
    }

    #[test]
    fn prompt_reads_are_rate_limited() {
        let start = Instant::now();
        let mut schedule = schedule(start);
        schedule.listed(10, QUICK, start);
        let reads = (0..300).filter(|n| {
            let now = start + millis(n * 10);
            schedule.reconcile_at = None;
            schedule.want_read(u32::try_from(*n).unwrap_or_default(), now);
            matches!(schedule.take_due(now), Some(ServerWork::Read(_)))
        });
        assert_eq!(reads.count(), 13, "eight at once and five more in three seconds");
    }

    #[test]
    fn a_rate_limited_read_causes_no_wake_up_before_it_is_due() {
        let start = Instant::now();
        let mut schedule = schedule(start);
        schedule.listed(10, QUICK, start);
        schedule.read_credit = 0.0;
        schedule.want_read(3, start);
        assert!(schedule.wake_at() > start + millis(400), "the next read is half a second away");
    }
}
