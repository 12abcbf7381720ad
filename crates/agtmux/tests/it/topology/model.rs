//! Runs random tmux operations and checks after each that agtmux agrees with tmux.

use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::seeded_random::SeededRandom;
use agtmux_testkit::{TestWorld, wait_for};

use super::entries::{self, TopologyEntries, compare};
use super::latencies::LatencyTable;
use super::model_server::{ModelServer, ServerAction};
use super::operations;
use super::stream::{WatchFollower, identity};

/// How long to wait until agtmux agrees with tmux. Reconciling, which finds changes without a hint, runs every two to
/// four seconds.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(10);

const SCOPES: [&str; 3] = ["panes", "windows", "sessions"];

/// How many operations a failed test prints.
const HISTORY_SHOWN: usize = 12;

pub(crate) struct TopologyModel<'a> {
    world: &'a TestWorld,
    random: SeededRandom,
    servers: [ModelServer; 2],
    followers: Vec<WatchFollower>,
    latencies: LatencyTable,
    history: Vec<String>,
    operation_count: usize,
}

impl<'a> TopologyModel<'a> {
    pub(crate) fn start(world: &'a TestWorld) -> Self {
        let mut servers = [ModelServer::new(world, "first", false), ModelServer::new(world, "second", true)];
        for server in &mut servers {
            server.perform(&ServerAction::Start { session: "begin".into() }).expect("a server starts");
        }
        entries::entries_of_lists(world, &SCOPES).expect("the daemon starts with the first list");
        let followers = SCOPES.iter().map(|scope| WatchFollower::start(world, scope)).collect();
        let (random, latencies) = (SeededRandom::new(), LatencyTable::default());
        let mut model = Self { world, random, servers, followers, latencies, history: Vec::new(), operation_count: 0 };
        model.wait_for_agreement();
        model
    }

    pub(crate) fn operations(&self) -> usize {
        self.operation_count
    }

    /// Runs one operation, or several without a pause, and waits until agtmux agrees.
    pub(crate) fn step(&mut self) {
        let count = if self.random.one_in(6) { 2 + self.random.below(4) } else { 1 };
        let before = entries::entries_of_tmux(&self.servers, &SCOPES);
        let began = Instant::now();
        let kinds: Vec<&'static str> = (0..count).map(|_| self.run_random_operation()).collect();
        let changed = entries::entries_of_tmux(&self.servers, &SCOPES) != before;
        let agreed_at = self.wait_for_agreement();
        if changed {
            let kind = if let [kind] = kinds[..] { kind } else { "several in a row" };
            self.latencies.record(kind, agreed_at.saturating_duration_since(began));
        }
    }

    fn run_random_operation(&mut self) -> &'static str {
        loop {
            let server = &mut self.servers[self.random.below(2)];
            let (kind, action) = operations::choose(&mut self.random, server);
            let outcome = server.perform(&action);
            let refusal = outcome.as_ref().map_or_else(|error| format!(" (refused: {error})"), |()| String::new());
            self.history.push(format!("{}: {kind}: {action:?}{refusal}", server.name()));
            if outcome.is_ok() {
                self.operation_count += 1;
                return kind;
            }
        }
    }

    /// Waits until the streams and lists agree with tmux. Returns the time at which the streams agreed.
    fn wait_for_agreement(&mut self) -> Instant {
        let expected = entries::entries_of_tmux(&self.servers, &SCOPES);
        let agreed_at = wait_for("agtmux watch to agree with tmux", AGREEMENT_TIMEOUT, || {
            let (actual, since) = self.stream_snapshot();
            compare("agtmux watch", &expected, &actual).map(|()| since)
        });
        wait_for("agtmux list to agree with tmux", AGREEMENT_TIMEOUT, || {
            let actual = entries::entries_of_lists(self.world, &SCOPES)?;
            compare("agtmux list", &expected, &actual).map_err(|difference| format!("{difference:?}"))
        });
        self.followers.iter().for_each(WatchFollower::assert_consistent);
        agreed_at
    }

    fn stream_snapshot(&self) -> (TopologyEntries, Instant) {
        let (entries, times): (Vec<TopologyEntries>, Vec<Instant>) =
            self.followers.iter().map(WatchFollower::entries).unzip();
        (entries.into_iter().flatten().collect(), times.into_iter().max().expect("there are followers"))
    }

    /// Checks for each stream that its snapshot, with all later events applied, equals the list field by field.
    pub(crate) fn finish(self) {
        for (follower, scope) in self.followers.iter().zip(SCOPES) {
            wait_for("the stream to equal the list", AGREEMENT_TIMEOUT, || {
                let listed = entries::items(self.world, scope)?;
                let listed = listed.into_iter().map(|item| (identity(&item), item)).collect();
                let followed = follower.items();
                if followed == listed { Ok(()) } else { Err(format!("followed {followed:?}, listed {listed:?}")) }
            });
            follower.assert_consistent();
        }
        let events: usize = self.followers.iter().map(WatchFollower::events).sum();
        println!("{} operations, {events} events\n{}", self.operation_count, self.latencies);
    }
}

impl Drop for TopologyModel<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let from = self.history.len().saturating_sub(HISTORY_SHOWN);
            eprintln!("after {} operations, the last ones:", self.operation_count);
            self.history[from..].iter().for_each(|line| eprintln!("  {line}"));
            eprintln!("latencies so far:\n{}", self.latencies);
        }
    }
}
