//! Installs the agents and runs the scenarios, in parallel sandboxes.

use std::any::Any;
use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use agtmux_testkit::real_agents::install::{self, InstalledAgent, newest_version};
use agtmux_testkit::real_agents::options::{AgentVersionChoice, ConformanceOptions, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ConformanceAgent};

use super::driver::{DriveError, ScenarioDriver};
use super::outcomes::{ConformanceVerdict, ScenarioOutcome};
use super::record::EvidenceRecorder;
use super::scenario::{self, Scenario, StartCondition};

/// An agent and the version that was tested.
#[derive(Debug, Clone)]
pub(crate) struct TestedAgent {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) note: String,
    /// The modes that the agent supports.
    pub(crate) modes: &'static [EvidenceMode],
}

/// One scenario of one agent in one mode. Each job has its own sandbox.
struct ScenarioJob {
    agent: &'static dyn ConformanceAgent,
    installed: InstalledAgent,
    scenario: Scenario,
    mode: EvidenceMode,
}

pub(crate) fn run_all(options: &ConformanceOptions) -> (Vec<TestedAgent>, Vec<ScenarioOutcome>) {
    let (mut tested, mut jobs, mut outcomes) = (Vec::new(), VecDeque::new(), Vec::new());
    let is_selected = |list: &[String], name: &str| list.is_empty() || list.iter().any(|word| word == name);
    for agent in real_agents::ALL {
        let Some(version) = options.version_for(agent.name()) else { continue };
        let selected = scenario::all().into_iter().filter(|scenario| is_selected(&options.scenarios, scenario.name));
        let selected: Vec<Scenario> = selected.filter(|scenario| scenario.is_for(agent)).collect();
        let modes = agent.modes();
        let combinations = options
            .modes
            .iter()
            .filter(|mode| modes.contains(mode))
            .flat_map(|mode| selected.iter().map(|scenario| (*mode, scenario.clone())));
        match install_agent(agent, version) {
            Ok((installed, note)) => {
                let note = if modes.contains(&EvidenceMode::Hooks) { note } else { note + ", which has no hooks" };
                tested.push(TestedAgent { name: agent.name(), version: installed.version.clone(), note, modes });
                let job = |(mode, scenario)| ScenarioJob { agent, installed: installed.clone(), scenario, mode };
                jobs.extend(combinations.map(job));
            }
            Err(why) => {
                let (version, note) = ("not installed".to_owned(), format!(": {why}"));
                tested.push(TestedAgent { name: agent.name(), version, note, modes });
                outcomes.extend(
                    combinations.map(|(mode, scenario)| skipped_outcome(agent.name(), scenario.name, mode, &why)),
                );
            }
        }
    }
    outcomes.extend(run_jobs(jobs, options));
    let sort_key = |outcome: &ScenarioOutcome| {
        (
            scenario::all().iter().position(|scenario| scenario.name == outcome.scenario),
            real_agents::ALL.iter().position(|agent| agent.name() == outcome.agent),
            outcome.mode,
        )
    };
    outcomes.sort_by_key(sort_key);
    (tested, outcomes)
}

pub(crate) fn install_agent(
    agent: &dyn ConformanceAgent,
    selected: AgentVersionChoice<'_>,
) -> Result<(InstalledAgent, String), String> {
    let (package, pinned) = agent.package();
    let registry = agent.registry();
    let version = match selected {
        AgentVersionChoice::Pinned => pinned.to_owned(),
        AgentVersionChoice::Newest => newest_version(registry, package)?,
        AgentVersionChoice::Exact(version) => version.to_owned(),
    };
    let installed = install::install_agent(agent, &version)?;
    let note = match (selected, version == pinned) {
        (AgentVersionChoice::Newest, true) => " (newest, same as pinned)".to_owned(),
        (AgentVersionChoice::Newest, false) => format!(" (newest; pinned is {pinned})"),
        (AgentVersionChoice::Exact(_), false) => format!(" (as requested; pinned is {pinned})"),
        _ => String::new(),
    };
    let fetched = if installed.fetched { "downloaded" } else { "cached" };
    print_line(&format!("{package}@{version} {fetched}"));
    Ok((installed, note))
}

fn skipped_outcome(agent: &'static str, scenario: &'static str, mode: EvidenceMode, why: &str) -> ScenarioOutcome {
    let failure = Some((ConformanceVerdict::Skip, why.to_owned()));
    ScenarioOutcome { agent, scenario, mode, steps: Vec::new(), failure, took: Default::default() }
}

fn run_jobs(jobs: VecDeque<ScenarioJob>, options: &ConformanceOptions) -> Vec<ScenarioOutcome> {
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(job) = next_job(&jobs) {
                    let ScenarioJob { agent, installed, scenario, mode } = job;
                    let scenario_run = ScenarioRun::new(agent, &installed, mode, options.size, options.record.clone());
                    let mut finished = scenario_run.run_scenarios(&[&scenario]);
                    finished.iter().for_each(print_outcome);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).append(&mut finished);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn next_job(jobs: &Mutex<VecDeque<ScenarioJob>>) -> Option<ScenarioJob> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Runs the core scenarios of one agent in one mode. The scenarios share one sandbox until one of them fails.
pub(crate) fn run_core(
    agent: &str,
    version: AgentVersionChoice<'_>,
    mode: EvidenceMode,
) -> Result<Vec<ScenarioOutcome>, String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let (installed, _) = install_agent(agent, version)?;
    let scenarios: Vec<Scenario> =
        scenario::all().into_iter().filter(|scenario| scenario.in_core && scenario.is_for(agent)).collect();
    let scenario_run = ScenarioRun::new(agent, &installed, mode, PaneSize(120, 40), None);
    let scenarios: Vec<&Scenario> = scenarios.iter().collect();
    let outcomes = scenario_run.run_scenarios(&scenarios);
    outcomes.iter().for_each(print_outcome);
    Ok(outcomes)
}

/// Runs scenarios of one agent in one mode.
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

    /// Runs the scenarios one after the other in one sandbox. After a failure the rest runs in a new sandbox.
    fn run_scenarios(&self, scenarios: &[&Scenario]) -> Vec<ScenarioOutcome> {
        let mut outcomes: Vec<ScenarioOutcome> = Vec::new();
        while outcomes.len() < scenarios.len() {
            outcomes.append(&mut self.run_in_one_sandbox(&scenarios[outcomes.len()..]));
        }
        outcomes
    }

    /// Runs the scenarios in one sandbox until one of them fails. Always runs the first one. A panic becomes the
    /// outcome of its scenario, so that the caller can run the remaining scenarios.
    fn run_in_one_sandbox(&self, scenarios: &[&Scenario]) -> Vec<ScenarioOutcome> {
        let started_at = Instant::now();
        let mut finished = Vec::new();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let sandbox = AgentSandbox::open(&self.sandbox_options(scenarios[0]));
            let driver = ScenarioDriver {
                agent: self.agent,
                sandbox: &sandbox,
                mode: self.mode,
                recorder: self.recorder.as_ref(),
            };
            run_scenarios_in(&driver, scenarios, &mut finished);
        }));
        let Err(panic) = result else { return finished };
        let failure = Some((ConformanceVerdict::Drift, panic_message(panic.as_ref())));
        match scenarios.get(finished.len()) {
            Some(scenario) => {
                let (agent, scenario, mode, took) = (self.agent.name(), scenario.name, self.mode, started_at.elapsed());
                finished.push(ScenarioOutcome { agent, scenario, mode, steps: Vec::new(), failure, took });
            }
            // The panic came from closing the sandbox.
            None => finished.iter_mut().last().into_iter().for_each(|last| last.failure = failure.clone()),
        }
        finished
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

/// Returns early when a scenario fails to finish.
fn run_scenarios_in(driver: &ScenarioDriver<'_>, scenarios: &[&Scenario], finished: &mut Vec<ScenarioOutcome>) {
    let mut started = false;
    for scenario in scenarios {
        let started_at = Instant::now();
        let launch = match &scenario.start_condition {
            StartCondition::Ready(launch) | StartCondition::Shell { launch, .. } => launch.clone(),
        };
        let mut error = None;
        if !started && matches!(scenario.start_condition, StartCondition::Ready(_)) {
            error = driver.start(&launch).err();
        }
        started = true;
        let mut steps = Vec::new();
        if error.is_none() {
            (steps, error) = driver.run_scenario(scenario, &launch);
        }
        let failed = error.is_some();
        let failure = error.map(|DriveError(why)| (ConformanceVerdict::Drift, why));
        let (agent, took) = (driver.agent.name(), started_at.elapsed());
        let outcome = ScenarioOutcome { agent, scenario: scenario.name, mode: driver.mode, steps, failure, took };
        print_explanation(driver, &outcome);
        finished.push(outcome);
        if failed {
            return;
        }
    }
}

/// Prints the output of `agtmux explain` and `agtmux history` when agtmux reported a wrong state.
fn print_explanation(driver: &ScenarioDriver<'_>, outcome: &ScenarioOutcome) {
    if outcome.verdict() == ConformanceVerdict::Wrong {
        let name = format!("{} {} {}", outcome.agent, outcome.scenario, outcome.mode.as_str());
        print_line(&format!("{name}, output of agtmux explain and history:\n{}", driver.sandbox.explain_output()));
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without a message".into())
}

fn print_outcome(outcome: &ScenarioOutcome) {
    let lag = outcome.lag().map(|lag| format!(" {lag} ms")).unwrap_or_default();
    let (agent, scenario, mode) = (outcome.agent, outcome.scenario, outcome.mode.as_str());
    let took = outcome.took.as_secs_f32();
    let mut line = format!("{agent:<8} {scenario:<12} {mode:<8} {}{lag} ({took:.1} s)", outcome.verdict());
    for complaint in outcome.problems() {
        line += &format!("\n    {complaint}");
    }
    print_line(&line);
}

/// Writes to stderr directly, which the test harness does not capture: a run takes minutes, and skips must be visible.
pub(crate) fn print_line(line: &str) {
    // A closed stderr is not an error.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// How many rounds a test with a real agent has: 20 in a soak run, or as many as `AGTMUX_ROUNDS` says.
pub(super) fn rounds(usual: usize) -> usize {
    let given = std::env::var("AGTMUX_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    given.unwrap_or(if agtmux_testkit::agtmux::soak() { 20 } else { usual })
}
