//! Random operations, and after each of them the question whether agtmux agrees with tmux.

use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{World, wait_for};

use super::figures::Figures;
use super::operations;
use super::picture::{self, Picture, compare};
use super::random::Random;
use super::station::{Deed, Station};
use super::stream::{Follower, identity};

/// What no hint tells of is found by a look that comes every two to four seconds.
const AGREED_WITHIN: Duration = Duration::from_secs(10);

const SCOPES: [&str; 3] = ["panes", "windows", "sessions"];

/// How many operations are told when something went wrong.
const TOLD: usize = 12;

pub(crate) struct Model<'a> {
    world: &'a World,
    random: Random,
    stations: [Station; 2],
    followers: Vec<Follower>,
    figures: Figures,
    history: Vec<String>,
    done: usize,
}

impl<'a> Model<'a> {
    pub(crate) fn begin(world: &'a World) -> Self {
        let mut stations = [Station::new(world, "first", false), Station::new(world, "second", true)];
        for station in &mut stations {
            station.perform(&Deed::Start { session: "begin".into() }).expect("a server starts");
        }
        picture::of_lists(world, &SCOPES).expect("the daemon starts with the first question");
        let followers = SCOPES.iter().map(|scope| Follower::start(world, scope)).collect();
        let (random, figures) = (Random::from_env(), Figures::default());
        let mut model = Self { world, random, stations, followers, figures, history: Vec::new(), done: 0 };
        model.settle();
        model
    }

    pub(crate) fn operations(&self) -> usize {
        self.done
    }

    /// One operation, or several in a row with no time for agtmux in between, and the quiet moment after them.
    pub(crate) fn step(&mut self) {
        let count = if self.random.one_in(6) { 2 + self.random.below(4) } else { 1 };
        let before = picture::of_tmux(&self.stations, &SCOPES);
        let began = Instant::now();
        let kinds: Vec<&'static str> = (0..count).map(|_| self.operate()).collect();
        let changed = picture::of_tmux(&self.stations, &SCOPES) != before;
        let agreed_at = self.settle();
        if changed {
            let kind = if let [kind] = kinds[..] { kind } else { "several in a row" };
            self.figures.note(kind, agreed_at.saturating_duration_since(began));
        }
    }

    fn operate(&mut self) -> &'static str {
        loop {
            let station = &mut self.stations[self.random.below(2)];
            let (kind, deed) = operations::choose(&mut self.random, station);
            let outcome = station.perform(&deed);
            let told = outcome.as_ref().map_or_else(|error| format!(" (refused: {error})"), |()| String::new());
            self.history.push(format!("{}: {kind}: {deed:?}{told}", station.name()));
            if outcome.is_ok() {
                self.done += 1;
                return kind;
            }
        }
    }

    /// Waits until everybody agrees with tmux, and says when those who follow the stream did.
    fn settle(&mut self) -> Instant {
        let truth = picture::of_tmux(&self.stations, &SCOPES);
        let agreed_at = wait_for("agtmux watch to agree with tmux", AGREED_WITHIN, || {
            let (claimed, since) = self.told_by_stream();
            compare("agtmux watch", &truth, &claimed).map(|()| since)
        });
        wait_for("agtmux list to agree with tmux", AGREED_WITHIN, || {
            let claimed = picture::of_lists(self.world, &SCOPES)?;
            compare("agtmux list", &truth, &claimed).map_err(|difference| format!("{difference:?}"))
        });
        self.followers.iter().for_each(Follower::assert_consistent);
        agreed_at
    }

    fn told_by_stream(&self) -> (Picture, Instant) {
        let (pictures, times): (Vec<Picture>, Vec<Instant>) = self.followers.iter().map(Follower::picture).unzip();
        (pictures.into_iter().flatten().collect(), times.into_iter().max().expect("somebody follows"))
    }

    /// Whoever applied all events to the snapshot has, field by field, what is listed.
    pub(crate) fn finish(self) {
        for (follower, scope) in self.followers.iter().zip(SCOPES) {
            wait_for("the stream to have told all that is listed", AGREED_WITHIN, || {
                let listed = picture::items(self.world, scope)?;
                let listed = listed.into_iter().map(|item| (identity(&item), item)).collect();
                let told = follower.items();
                if told == listed { Ok(()) } else { Err(format!("told {told:?}, listed {listed:?}")) }
            });
            follower.assert_consistent();
        }
        let events: usize = self.followers.iter().map(Follower::events).sum();
        println!("seed {}, {} operations, {events} events\n{}", self.random.seed(), self.done, self.figures);
    }
}

impl Drop for Model<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let from = self.history.len().saturating_sub(TOLD);
            eprintln!("AGTMUX_SEED={} after {} operations, the last of them:", self.random.seed(), self.done);
            self.history[from..].iter().for_each(|told| eprintln!("  {told}"));
            eprintln!("until then:\n{}", self.figures);
        }
    }
}
