//! Random operations, and after each of them the question whether agtmux agrees with tmux.

use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestWorld, wait_for};

use super::figures::LatencyTable;
use super::operations;
use super::picture::{self, TopologyEntries, compare};
use super::random::XorshiftRandom;
use super::station::{ModelServer, ServerAction};
use super::stream::{WatchFollower, identity};

/// What no hint tells of is found by a look that comes every two to four seconds.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(10);

const SCOPES: [&str; 3] = ["panes", "windows", "sessions"];

/// How many operations are told when something went wrong.
const HISTORY_SHOWN: usize = 12;

pub(crate) struct TopologyModel<'a> {
    world: &'a TestWorld,
    random: XorshiftRandom,
    servers: [ModelServer; 2],
    followers: Vec<WatchFollower>,
    latencies: LatencyTable,
    history: Vec<String>,
    operation_count: usize,
}

impl<'a> TopologyModel<'a> {
    pub(crate) fn start(world: &'a TestWorld) -> Self {
        let mut stations = [ModelServer::new(world, "first", false), ModelServer::new(world, "second", true)];
        for station in &mut stations {
            station.perform(&ServerAction::Start { session: "begin".into() }).expect("a server starts");
        }
        picture::entries_of_lists(world, &SCOPES).expect("the daemon starts with the first question");
        let followers = SCOPES.iter().map(|scope| WatchFollower::start(world, scope)).collect();
        let (random, figures) = (XorshiftRandom::from_env(), LatencyTable::default());
        let mut model = Self {
            world,
            random,
            servers: stations,
            followers,
            latencies: figures,
            history: Vec::new(),
            operation_count: 0,
        };
        model.wait_for_agreement();
        model
    }

    pub(crate) fn operations(&self) -> usize {
        self.operation_count
    }

    /// One operation, or several in a row with no time for agtmux in between, and the quiet moment after them.
    pub(crate) fn step(&mut self) {
        let count = if self.random.one_in(6) { 2 + self.random.below(4) } else { 1 };
        let before = picture::entries_of_tmux(&self.servers, &SCOPES);
        let began = Instant::now();
        let kinds: Vec<&'static str> = (0..count).map(|_| self.run_random_operation()).collect();
        let changed = picture::entries_of_tmux(&self.servers, &SCOPES) != before;
        let agreed_at = self.wait_for_agreement();
        if changed {
            let kind = if let [kind] = kinds[..] { kind } else { "several in a row" };
            self.latencies.record(kind, agreed_at.saturating_duration_since(began));
        }
    }

    fn run_random_operation(&mut self) -> &'static str {
        loop {
            let station = &mut self.servers[self.random.below(2)];
            let (kind, deed) = operations::choose(&mut self.random, station);
            let outcome = station.perform(&deed);
            let told = outcome.as_ref().map_or_else(|error| format!(" (refused: {error})"), |()| String::new());
            self.history.push(format!("{}: {kind}: {deed:?}{told}", station.name()));
            if outcome.is_ok() {
                self.operation_count += 1;
                return kind;
            }
        }
    }

    /// Waits until everybody agrees with tmux, and says when those who follow the stream did.
    fn wait_for_agreement(&mut self) -> Instant {
        let truth = picture::entries_of_tmux(&self.servers, &SCOPES);
        let agreed_at = wait_for("agtmux watch to agree with tmux", AGREEMENT_TIMEOUT, || {
            let (claimed, since) = self.stream_snapshot();
            compare("agtmux watch", &truth, &claimed).map(|()| since)
        });
        wait_for("agtmux list to agree with tmux", AGREEMENT_TIMEOUT, || {
            let claimed = picture::entries_of_lists(self.world, &SCOPES)?;
            compare("agtmux list", &truth, &claimed).map_err(|difference| format!("{difference:?}"))
        });
        self.followers.iter().for_each(WatchFollower::assert_consistent);
        agreed_at
    }

    fn stream_snapshot(&self) -> (TopologyEntries, Instant) {
        let (pictures, times): (Vec<TopologyEntries>, Vec<Instant>) =
            self.followers.iter().map(WatchFollower::entries).unzip();
        (pictures.into_iter().flatten().collect(), times.into_iter().max().expect("somebody follows"))
    }

    /// Whoever applied all events to the snapshot has, field by field, what is listed.
    pub(crate) fn finish(self) {
        for (follower, scope) in self.followers.iter().zip(SCOPES) {
            wait_for("the stream to have told all that is listed", AGREEMENT_TIMEOUT, || {
                let listed = picture::items(self.world, scope)?;
                let listed = listed.into_iter().map(|item| (identity(&item), item)).collect();
                let told = follower.items();
                if told == listed { Ok(()) } else { Err(format!("told {told:?}, listed {listed:?}")) }
            });
            follower.assert_consistent();
        }
        let events: usize = self.followers.iter().map(WatchFollower::events).sum();
        println!(
            "seed {}, {} operations, {events} events\n{}",
            self.random.seed(),
            self.operation_count,
            self.latencies
        );
    }
}

impl Drop for TopologyModel<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let from = self.history.len().saturating_sub(HISTORY_SHOWN);
            eprintln!(
                "AGTMUX_SEED={} after {} operations, the last of them:",
                self.random.seed(),
                self.operation_count
            );
            self.history[from..].iter().for_each(|told| eprintln!("  {told}"));
            eprintln!("until then:\n{}", self.latencies);
        }
    }
}
