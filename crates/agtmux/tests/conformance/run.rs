//! Which agents, in which order, in how many rooms.

use std::any::Any;
use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::agents::{self, Agent};
use super::drive::{Driver, Lost};
use super::install::{Installed, install, newest};
use super::options::{Options, Size, Version};
use super::outcome::{Outcome, Verdict};
use super::record::Recorder;
use super::room::{Plan, Room};
use super::scenario::{self, Opening, Scenario};
use super::words::Mode;

/// An agent as it was tried.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) note: String,
    /// Those that it has.
    pub(crate) modes: &'static [Mode],
}

/// One scenario of one agent in one mode, each in a room of its own.
struct Task {
    agent: &'static dyn Agent,
    installed: Installed,
    scenario: Scenario,
    mode: Mode,
}

pub(crate) fn everything(options: &Options) -> (Vec<Tried>, Vec<Outcome>) {
    let (mut tried, mut tasks, mut outcomes) = (Vec::new(), VecDeque::new(), Vec::new());
    let is_wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|word| word == name);
    for agent in agents::ALL {
        let Some(version) = options.wants(agent.name()) else { continue };
        let wanted = scenario::all().into_iter().filter(|scenario| is_wanted(&options.scenarios, scenario.name));
        let wanted: Vec<Scenario> = wanted.filter(|scenario| scenario.is_for(agent)).collect();
        let modes = agent.modes();
        let plays = options
            .modes
            .iter()
            .filter(|mode| modes.contains(mode))
            .flat_map(|mode| wanted.iter().map(|scenario| (*mode, scenario.clone())));
        match provide(agent, version) {
            Ok((installed, note)) => {
                let note = if modes.contains(&Mode::Hooks) { note } else { note + ", which has no hooks" };
                tried.push(Tried { name: agent.name(), version: installed.version.clone(), note, modes });
                let task = |(mode, scenario)| Task { agent, installed: installed.clone(), scenario, mode };
                tasks.extend(plays.map(task));
            }
            Err(why) => {
                let (version, note) = ("not installed".to_owned(), format!(": {why}"));
                tried.push(Tried { name: agent.name(), version, note, modes });
                outcomes.extend(plays.map(|(mode, scenario)| skipped(agent.name(), scenario.name, mode, &why)));
            }
        }
    }
    outcomes.extend(play_all(tasks, options));
    let place = |outcome: &Outcome| {
        (
            scenario::all().iter().position(|scenario| scenario.name == outcome.scenario),
            agents::ALL.iter().position(|agent| agent.name() == outcome.agent),
            outcome.mode,
        )
    };
    outcomes.sort_by_key(place);
    (tried, outcomes)
}

pub(crate) fn provide(agent: &dyn Agent, wanted: Version<'_>) -> Result<(Installed, String), String> {
    let (package, pinned) = agent.package();
    let registry = agent.registry();
    let version = match wanted {
        Version::Pinned => pinned.to_owned(),
        Version::Newest => newest(registry, package)?,
        Version::This(version) => version.to_owned(),
    };
    let installed = install(registry, package, &version)?;
    let installed = if agent.newer_node() { installed.with_newer_node()? } else { installed };
    let note = match (wanted, version == pinned) {
        (Version::Newest, true) => " (newest, and the pinned one)".to_owned(),
        (Version::Newest, false) => format!(" (newest; pinned is {pinned})"),
        (Version::This(_), false) => format!(" (as asked for; pinned is {pinned})"),
        _ => String::new(),
    };
    let fetched = if installed.fetched { "fetched" } else { "was there" };
    say(&format!("{package}@{version} {fetched}"));
    Ok((installed, note))
}

fn skipped(agent: &'static str, scenario: &'static str, mode: Mode, why: &str) -> Outcome {
    let trouble = Some((Verdict::Skip, why.to_owned()));
    Outcome { agent, scenario, mode, steps: Vec::new(), trouble, took: Default::default() }
}

fn play_all(tasks: VecDeque<Task>, options: &Options) -> Vec<Outcome> {
    let (tasks, outcomes) = (Mutex::new(tasks), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(task) = take(&tasks) {
                    let Task { agent, installed, scenario, mode } = task;
                    let stage = Stage::new(agent, &installed, mode, options.size, options.record.clone());
                    let mut played = stage.play(&[&scenario]);
                    played.iter().for_each(tell);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut played);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn take(tasks: &Mutex<VecDeque<Task>>) -> Option<Task> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// The core of one agent in one mode: all in one life of the agent, as far as that goes.
pub(crate) fn core(agent: &str, mode: Mode) -> Result<Vec<Outcome>, String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let (installed, _) = provide(agent, Version::Pinned)?;
    let scenarios: Vec<Scenario> =
        scenario::all().into_iter().filter(|scenario| scenario.core && scenario.is_for(agent)).collect();
    let stage = Stage::new(agent, &installed, mode, Size(120, 40), None);
    let scenarios: Vec<&Scenario> = scenarios.iter().collect();
    let outcomes = stage.play(&scenarios);
    outcomes.iter().for_each(tell);
    Ok(outcomes)
}

/// Where scenarios of one agent are played.
struct Stage<'a> {
    agent: &'static dyn Agent,
    installed: &'a Installed,
    mode: Mode,
    size: Size,
    recorder: Option<Recorder>,
}

impl<'a> Stage<'a> {
    fn new(
        agent: &'static dyn Agent,
        installed: &'a Installed,
        mode: Mode,
        size: Size,
        record: Option<PathBuf>,
    ) -> Self {
        let recorder = record.map(|dir| Recorder { dir, size, version: installed.version.clone() });
        Self { agent, installed, mode, size, recorder }
    }

    /// One after the other in one room; where the agent gets lost, the rest is played in the next.
    fn play(&self, scenarios: &[&Scenario]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        while outcomes.len() < scenarios.len() {
            outcomes.append(&mut self.play_some(&scenarios[outcomes.len()..]));
        }
        outcomes
    }

    /// At least the first of them. What panics is a result too: the others are still to be played.
    fn play_some(&self, scenarios: &[&Scenario]) -> Vec<Outcome> {
        let begun = Instant::now();
        let mut played = Vec::new();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let room = Room::open(&self.plan(scenarios[0]));
            let driver = Driver { agent: self.agent, room: &room, mode: self.mode, recorder: self.recorder.as_ref() };
            play_in(&driver, scenarios, &mut played);
        }));
        let Err(panic) = result else { return played };
        let trouble = Some((Verdict::Drift, message(panic.as_ref())));
        match scenarios.get(played.len()) {
            Some(scenario) => {
                let (agent, scenario, mode, took) = (self.agent.name(), scenario.name, self.mode, begun.elapsed());
                played.push(Outcome { agent, scenario, mode, steps: Vec::new(), trouble, took });
            }
            // It was the end of the room that went wrong.
            None => played.iter_mut().last().into_iter().for_each(|last| last.trouble = trouble.clone()),
        }
        played
    }

    fn plan(&self, first: &Scenario) -> Plan<'_> {
        Plan {
            agent: self.agent,
            programs: &self.installed.programs,
            mode: self.mode,
            trusted: !matches!(first.opening, Opening::Shell { trusted: false, .. }),
            size: self.size,
            keeps: self.recorder.is_some(),
        }
    }
}

/// Ends early when the agent is lost.
fn play_in(driver: &Driver<'_>, scenarios: &[&Scenario], played: &mut Vec<Outcome>) {
    let mut started = false;
    for scenario in scenarios {
        let begun = Instant::now();
        let launch = match &scenario.opening {
            Opening::Ready(launch) | Opening::Shell { launch, .. } => launch.clone(),
        };
        let mut lost = None;
        if !started && matches!(scenario.opening, Opening::Ready(_)) {
            lost = driver.start(&launch).err();
        }
        started = true;
        let mut steps = Vec::new();
        if lost.is_none() {
            (steps, lost) = driver.play(scenario, &launch);
        }
        let is_lost = lost.is_some();
        let trouble = lost.map(|Lost(why)| (Verdict::Drift, why));
        let (agent, took) = (driver.agent.name(), begun.elapsed());
        let outcome = Outcome { agent, scenario: scenario.name, mode: driver.mode, steps, trouble, took };
        explain(driver, &outcome);
        played.push(outcome);
        if is_lost {
            return;
        }
    }
}

/// What agtmux knew, where it was wrong.
fn explain(driver: &Driver<'_>, outcome: &Outcome) {
    if outcome.verdict() == Verdict::Wrong {
        let name = format!("{} {} {}", outcome.agent, outcome.scenario, outcome.mode.word());
        say(&format!("{name}, explained by agtmux:\n{}", driver.room.explained()));
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".into())
}

fn tell(outcome: &Outcome) {
    let lag = outcome.lag().map(|lag| format!(" {lag} ms")).unwrap_or_default();
    let (agent, scenario, mode) = (outcome.agent, outcome.scenario, outcome.mode.word());
    let took = outcome.took.as_secs_f32();
    let mut line = format!("{agent:<8} {scenario:<12} {mode:<6} {}{lag} ({took:.1} s)", outcome.verdict());
    for complaint in outcome.complaints() {
        line += &format!("\n    {complaint}");
    }
    say(&line);
}

/// Also where a test harness keeps what tests print: a run takes minutes, and a skip must be seen.
pub(crate) fn say(line: &str) {
    // Nobody listens: nothing to be done about it.
    let _ = writeln!(std::io::stderr(), "{line}");
}
