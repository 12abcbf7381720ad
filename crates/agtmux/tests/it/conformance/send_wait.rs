//! `send` and then `wait` with the real agents. A wait is early if it ends before the model has answered, and it hangs
//! if it does not end long after the answer.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ConformanceAgent, LaunchMode, poll_until};
use agtmux_testkit::{skip, skip_outside_soak};

use super::driver::{DriveError, ScenarioDriver};
use super::run::{install_agent, print_line};

/// How many rounds a session of an agent has.
const ROUNDS_PER_SESSION: usize = 25;
/// The time limit of a wait. No turn takes as long.
const WAIT_LIMIT: &str = "40s";
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);
const TIMED_OUT: i32 = 1;

/// The results of many rounds.
#[derive(Debug, Default)]
struct WaitTally {
    rounds: usize,
    early: usize,
    hanging: usize,
    /// How long after the answer of the model each wait ended.
    lags: Vec<Duration>,
    faults: Vec<String>,
}

impl fmt::Display for WaitTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lags = self.lags.clone();
        lags.sort_unstable();
        let percentile = |percent: usize| {
            let at = (lags.len() * percent).div_ceil(100).saturating_sub(1);
            lags.get(at).map_or(0, Duration::as_millis)
        };
        let Self { rounds, early, hanging, faults, .. } = self;
        write!(f, "{rounds} waits: {early} early, {hanging} hanging, {} faults; ", faults.len())?;
        write!(f, "ended after the answer: p50 {} ms, p95 {} ms", percentile(50), percentile(95))
    }
}

/// The prompt of a round: an answer at once, after a while, or word by word.
fn prompt(round: usize) -> String {
    match round % 4 {
        0 => format!("SAY round {round:03}"),
        1 => format!("THINK 2 round {round:03}"),
        2 => format!("SAY again, round {round:03}"),
        _ => format!("SLOW 2 round {round:03}"),
    }
}

struct WaitSession<'a> {
    agent: &'static dyn ConformanceAgent,
    program_dirs: &'a [PathBuf],
    mode: EvidenceMode,
}

impl WaitSession<'_> {
    fn run_rounds(&self, rounds: &[usize], tally: &mut WaitTally) {
        let sandbox = AgentSandbox::open(&SandboxOptions {
            agent: self.agent,
            program_dirs: self.program_dirs,
            mode: self.mode,
            trusted: true,
            size: PaneSize(120, 40),
            save_hook_payloads: false,
        });
        let driver = ScenarioDriver { agent: self.agent, sandbox: &sandbox, mode: self.mode, recorder: None };
        if let Err(DriveError(why)) = driver.start(&LaunchMode::Plain) {
            return tally.faults.push(format!("{} does not start: {why}", self.agent.name()));
        }
        for round in rounds {
            if let Err(why) = run_round(&sandbox, *round, tally) {
                let screen = sandbox.capture().screen;
                tally.faults.push(format!("round {round}: {why}; the screen:\n{}", screen.trim_end()));
                return;
            }
        }
    }
}

/// Sends one prompt and waits for the end of its turn. Every other round uses one command for both.
fn run_round(sandbox: &AgentSandbox, round: usize, tally: &mut WaitTally) -> Result<(), String> {
    let (text, pane) = (prompt(round), sandbox.pane.as_str());
    let text_option = format!("--text={text}");
    let one_command = round % 8 >= 4;
    if !one_command {
        let (sent, _, error) = sandbox.run_agtmux(&["send", pane, &text_option]);
        if !sent {
            return Err(format!("not sent: {error}"));
        }
    }
    let wait = match one_command {
        true => vec!["send", pane, &text_option, "--wait", "--timeout", WAIT_LIMIT],
        false => vec!["wait", pane, "--for", "finished", "--timeout", WAIT_LIMIT],
    };
    let output = sandbox.agtmux_command().args(wait).output().map_err(|error| error.to_string())?;
    let ended_at = Instant::now();
    tally.rounds += 1;
    let answered_at = sandbox.model.find_request(&text).and_then(|request| request.answer_ended);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    match (output.status.code(), answered_at) {
        (Some(0), Some(at)) => tally.lags.push(ended_at.saturating_duration_since(at)),
        (Some(0), None) => {
            tally.early += 1;
            print_line(&format!("early in round {round}: {}", sandbox.explain_output()));
        }
        (Some(TIMED_OUT), _) => {
            tally.hanging += 1;
            print_line(&format!("hangs in round {round}: {error}{}", sandbox.explain_output()));
        }
        (code, _) => return Err(format!("the wait failed with {code:?}: {error}")),
    }
    let is_answered = || sandbox.model.find_request(&text)?.answer_ended;
    poll_until(AGENT_TIMEOUT, is_answered).map(|_| ()).ok_or_else(|| "the model was not asked".to_owned())
}

/// `make test` runs two rounds, a soak run 100, or as many as `AGTMUX_WAIT_ROUNDS` says.
fn rounds() -> usize {
    let given = std::env::var("AGTMUX_WAIT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    given.unwrap_or(if soak() { 100 } else { 2 })
}

#[track_caller]
fn check(agent: &str, mode: EvidenceMode) {
    let agent: &'static dyn ConformanceAgent =
        real_agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let rounds: Vec<usize> = (0..rounds()).collect();
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&format!("{} waits: {why}", rounds.len())),
    };
    let name = format!("{} {}", agent.name(), mode.as_str());
    let mut tally = WaitTally::default();
    for session in rounds.chunks(ROUNDS_PER_SESSION) {
        WaitSession { agent, program_dirs: &installed.program_dirs, mode }.run_rounds(session, &mut tally);
        print_line(&format!("{name}, {tally}"));
    }
    assert!(tally.faults.is_empty(), "{name}: {tally}\n{}", tally.faults.join("\n"));
    assert_eq!((tally.early, tally.hanging), (0, 0), "{name}: {tally}");
}

#[track_caller]
fn check_in_soak_run(agent: &str, mode: EvidenceMode) {
    if !skip_outside_soak() {
        check(agent, mode);
    }
}

mod waits_after_sends {
    use super::*;

    #[test]
    fn claude_with_hooks() {
        check("claude", EvidenceMode::Hooks);
    }

    #[test]
    fn claude_without_hooks() {
        check("claude", EvidenceMode::NoHooks);
    }

    #[test]
    fn codex_with_hooks() {
        check_in_soak_run("codex", EvidenceMode::Hooks);
    }

    #[test]
    fn codex_without_hooks() {
        check_in_soak_run("codex", EvidenceMode::NoHooks);
    }

    #[test]
    fn gemini_with_hooks() {
        check_in_soak_run("gemini", EvidenceMode::Hooks);
    }

    #[test]
    fn gemini_without_hooks() {
        check_in_soak_run("gemini", EvidenceMode::NoHooks);
    }

    #[test]
    fn copilot_with_hooks() {
        check_in_soak_run("copilot", EvidenceMode::Hooks);
    }

    #[test]
    fn copilot_without_hooks() {
        check_in_soak_run("copilot", EvidenceMode::NoHooks);
    }

    #[test]
    fn opencode_with_hooks() {
        check_in_soak_run("opencode", EvidenceMode::Hooks);
    }

    #[test]
    fn opencode_without_hooks() {
        check_in_soak_run("opencode", EvidenceMode::NoHooks);
    }

    #[test]
    fn pi_with_hooks() {
        check_in_soak_run("pi", EvidenceMode::Hooks);
    }

    #[test]
    fn pi_without_hooks() {
        check_in_soak_run("pi", EvidenceMode::NoHooks);
    }

    #[test]
    fn qwen_with_hooks() {
        check_in_soak_run("qwen", EvidenceMode::Hooks);
    }

    #[test]
    fn qwen_without_hooks() {
        check_in_soak_run("qwen", EvidenceMode::NoHooks);
    }
}
