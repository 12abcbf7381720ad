//! Which agents, in which order, in how many rooms.

use std::any::Any;
use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::agents::{self, ConformanceAgent};
use super::driver::{DriveError, ScenarioDriver};
use super::install::{InstalledAgent, install, newest_version};
use super::options::{AgentVersionChoice, ConformanceOptions, PaneSize};
use super::outcomes::{ConformanceVerdict, ScenarioOutcome};
use super::record::EvidenceRecorder;
use super::sandbox::{AgentSandbox, SandboxOptions};
use super::scenario::{self, Scenario, StartCondition};
use super::states::EvidenceMode;

/// An agent as it was tried.
#[derive(Debug, Clone)]
pub(crate) struct TestedAgent {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) note: String,
    /// Those that it has.
    pub(crate) modes: &'static [EvidenceMode],
}

/// One scenario of one agent in one mode, each in a room of its own.
struct ScenarioJob {
    agent: &'static dyn ConformanceAgent,
    installed: InstalledAgent,
    scenario: Scenario,
    mode: EvidenceMode,
}

pub(crate) fn run_all(options: &ConformanceOptions) -> (Vec<TestedAgent>, Vec<ScenarioOutcome>) {
    let (mut tried, mut tasks, mut outcomes) = (Vec::new(), VecDeque::new(), Vec::new());
    let is_wanted = |list: &[String], name: &str| list.is_empty() || list.iter().any(|word| word == name);
    for agent in agents::ALL {
        let Some(version) = options.version_for(agent.name()) else { continue };
        let wanted = scenario::all().into_iter().filter(|scenario| is_wanted(&options.scenarios, scenario.name));
        let wanted: Vec<Scenario> = wanted.filter(|scenario| scenario.is_for(agent)).collect();
        let modes = agent.modes();
        let plays = options
            .modes
            .iter()
            .filter(|mode| modes.contains(mode))
            .flat_map(|mode| wanted.iter().map(|scenario| (*mode, scenario.clone())));
        match install_agent(agent, version) {
            Ok((installed, note)) => {
                let note = if modes.contains(&EvidenceMode::Hooks) { note } else { note + ", which has no hooks" };
                tried.push(TestedAgent { name: agent.name(), version: installed.version.clone(), note, modes });
                let task = |(mode, scenario)| ScenarioJob { agent, installed: installed.clone(), scenario, mode };
                tasks.extend(plays.map(task));
            }
            Err(why) => {
                let (version, note) = ("not installed".to_owned(), format!(": {why}"));
                tried.push(TestedAgent { name: agent.name(), version, note, modes });
                outcomes.extend(plays.map(|(mode, scenario)| skipped_outcome(agent.name(), scenario.name, mode, &why)));
            }
        }
    }
    outcomes.extend(run_jobs(tasks, options));
    let place = |outcome: &ScenarioOutcome| {
        (
            scenario::all().iter().position(|scenario| scenario.name == outcome.scenario),
            agents::ALL.iter().position(|agent| agent.name() == outcome.agent),
            outcome.mode,
        )
    };
    outcomes.sort_by_key(place);
    (tried, outcomes)
}

pub(crate) fn install_agent(
    agent: &dyn ConformanceAgent,
    wanted: AgentVersionChoice<'_>,
) -> Result<(InstalledAgent, String), String> {
    let (package, pinned) = agent.package();
    let registry = agent.registry();
    let version = match wanted {
        AgentVersionChoice::Pinned => pinned.to_owned(),
        AgentVersionChoice::Newest => newest_version(registry, package)?,
        AgentVersionChoice::Exact(version) => version.to_owned(),
    };
    let installed = install(registry, package, &version)?;
    let installed = if agent.needs_newer_node() { installed.with_newer_node()? } else { installed };
    let note = match (wanted, version == pinned) {
        (AgentVersionChoice::Newest, true) => " (newest, and the pinned one)".to_owned(),
        (AgentVersionChoice::Newest, false) => format!(" (newest; pinned is {pinned})"),
        (AgentVersionChoice::Exact(_), false) => format!(" (as asked for; pinned is {pinned})"),
        _ => String::new(),
    };
    let fetched = if installed.fetched { "fetched" } else { "was there" };
    print_line(&format!("{package}@{version} {fetched}"));
    Ok((installed, note))
}

fn skipped_outcome(agent: &'static str, scenario: &'static str, mode: EvidenceMode, why: &str) -> ScenarioOutcome {
    let trouble = Some((ConformanceVerdict::Skip, why.to_owned()));
    ScenarioOutcome { agent, scenario, mode, steps: Vec::new(), failure: trouble, took: Default::default() }
}

fn run_jobs(tasks: VecDeque<ScenarioJob>, options: &ConformanceOptions) -> Vec<ScenarioOutcome> {
    let (tasks, outcomes) = (Mutex::new(tasks), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(task) = next_job(&tasks) {
                    let ScenarioJob { agent, installed, scenario, mode } = task;
                    let stage = ScenarioRun::new(agent, &installed, mode, options.size, options.record.clone());
                    let mut played = stage.run_scenarios(&[&scenario]);
                    played.iter().for_each(print_outcome);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut played);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next_job(tasks: &Mutex<VecDeque<ScenarioJob>>) -> Option<ScenarioJob> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// The core of one agent in one mode: all in one life of the agent, as far as that goes.
pub(crate) fn run_core(agent: &str, mode: EvidenceMode) -> Result<Vec<ScenarioOutcome>, String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    let scenarios: Vec<Scenario> =
        scenario::all().into_iter().filter(|scenario| scenario.in_core && scenario.is_for(agent)).collect();
    let stage = ScenarioRun::new(agent, &installed, mode, PaneSize(120, 40), None);
    let scenarios: Vec<&Scenario> = scenarios.iter().collect();
    let outcomes = stage.run_scenarios(&scenarios);
    outcomes.iter().for_each(print_outcome);
    Ok(outcomes)
}

/// Where scenarios of one agent are played.
struct ScenarioRun<'a> {
    agent: &'static dyn ConformanceAgent,
    installed: &'a InstalledAgent,
    mode: EvidenceMode,
    size: PaneSize,
    recorder: Option<EvidenceRecorder>,
}

impl<'a> ScenarioRun<'a> {
    fn new(
        agent: &'static dyn ConformanceAgent,
        installed: &'a InstalledAgent,
        mode: EvidenceMode,
        size: PaneSize,
        record: Option<PathBuf>,
    ) -> Self {
        let recorder = record.map(|dir| EvidenceRecorder { dir, size, version: installed.version.clone() });
        Self { agent, installed, mode, size, recorder }
    }

    /// One after the other in one room; where the agent gets lost, the rest is played in the next.
    fn run_scenarios(&self, scenarios: &[&Scenario]) -> Vec<ScenarioOutcome> {
        let mut outcomes: Vec<ScenarioOutcome> = Vec::new();
        while outcomes.len() < scenarios.len() {
            outcomes.append(&mut self.run_in_one_sandbox(&scenarios[outcomes.len()..]));
        }
        outcomes
    }

    /// At least the first of them. What panics is a result too: the others are still to be played.
    fn run_in_one_sandbox(&self, scenarios: &[&Scenario]) -> Vec<ScenarioOutcome> {
        let begun = Instant::now();
        let mut played = Vec::new();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let room = AgentSandbox::open(&self.sandbox_options(scenarios[0]));
            let driver =
                ScenarioDriver { agent: self.agent, sandbox: &room, mode: self.mode, recorder: self.recorder.as_ref() };
            run_scenarios_in(&driver, scenarios, &mut played);
        }));
        let Err(panic) = result else { return played };
        let trouble = Some((ConformanceVerdict::Drift, panic_message(panic.as_ref())));
        match scenarios.get(played.len()) {
            Some(scenario) => {
                let (agent, scenario, mode, took) = (self.agent.name(), scenario.name, self.mode, begun.elapsed());
                played.push(ScenarioOutcome { agent, scenario, mode, steps: Vec::new(), failure: trouble, took });
            }
            // It was the end of the room that went wrong.
            None => played.iter_mut().last().into_iter().for_each(|last| last.failure = trouble.clone()),
        }
        played
    }

    fn sandbox_options(&self, first: &Scenario) -> SandboxOptions<'_> {
        SandboxOptions {
            agent: self.agent,
            program_dirs: &self.installed.program_dirs,
            mode: self.mode,
            trusted: !matches!(first.start_condition, StartCondition::Shell { trusted: false, .. }),
            size: self.size,
            save_hook_payloads: self.recorder.is_some(),
        }
    }
}

/// Ends early when the agent is lost.
fn run_scenarios_in(driver: &ScenarioDriver<'_>, scenarios: &[&Scenario], played: &mut Vec<ScenarioOutcome>) {
    let mut started = false;
    for scenario in scenarios {
        let begun = Instant::now();
        let launch = match &scenario.start_condition {
            StartCondition::Ready(launch) | StartCondition::Shell { launch, .. } => launch.clone(),
        };
        let mut lost = None;
        if !started && matches!(scenario.start_condition, StartCondition::Ready(_)) {
            lost = driver.start(&launch).err();
        }
        started = true;
        let mut steps = Vec::new();
        if lost.is_none() {
            (steps, lost) = driver.run_scenario(scenario, &launch);
        }
        let is_lost = lost.is_some();
        let trouble = lost.map(|DriveError(why)| (ConformanceVerdict::Drift, why));
        let (agent, took) = (driver.agent.name(), begun.elapsed());
        let outcome =
            ScenarioOutcome { agent, scenario: scenario.name, mode: driver.mode, steps, failure: trouble, took };
        print_explanation(driver, &outcome);
        played.push(outcome);
        if is_lost {
            return;
        }
    }
}

/// What agtmux knew, where it was wrong.
fn print_explanation(driver: &ScenarioDriver<'_>, outcome: &ScenarioOutcome) {
    if outcome.verdict() == ConformanceVerdict::Wrong {
        let name = format!("{} {} {}", outcome.agent, outcome.scenario, outcome.mode.as_str());
        print_line(&format!("{name}, explained by agtmux:\n{}", driver.sandbox.explain_output()));
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".into())
}

fn print_outcome(outcome: &ScenarioOutcome) {
    let lag = outcome.lag().map(|lag| format!(" {lag} ms")).unwrap_or_default();
    let (agent, scenario, mode) = (outcome.agent, outcome.scenario, outcome.mode.as_str());
    let took = outcome.took.as_secs_f32();
    let mut line = format!("{agent:<8} {scenario:<12} {mode:<6} {}{lag} ({took:.1} s)", outcome.verdict());
    for complaint in outcome.problems() {
        line += &format!("\n    {complaint}");
    }
    print_line(&line);
}

/// Also where a test harness keeps what tests print: a run takes minutes, and a skip must be seen.
pub(crate) fn print_line(line: &str) {
    // Nobody listens: nothing to be done about it.
    let _ = writeln!(std::io::stderr(), "{line}");
}
