//! `agtmux new` with the real agents: the first prompt arrives unchanged and once, also after a trust dialog.

use std::fmt;
use std::time::Duration;

use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ConformanceAgent, DialogReply, LaunchMode, poll_until};
use agtmux_testkit::{skip, skip_outside_soak};
use serde_json::Value;

use super::run::{install_agent, print_line, rounds};
use super::send::arrived_unchanged;

const AGENT_TIMEOUT: Duration = Duration::from_secs(60);
/// The exit code of `new` if the agent asks something and the prompt is kept.
const KEPT: i32 = 6;

struct StartTally {
    rounds: usize,
    /// How long `agtmux new` took.
    times: Vec<Duration>,
}

impl fmt::Display for StartTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.times.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).map_or(0, Duration::as_millis);
        let longest = times.last().map_or(0, Duration::as_millis);
        write!(f, "{} prompts arrived unchanged and once; median {median} ms, longest {longest} ms", self.rounds)
    }
}

/// A prompt of 3 kB with many lines. The last line tells the mock model what to answer.
fn prompt(round: usize) -> String {
    let line = "Look at `it's` $HOME #{pid} %d \"quoted\" \\ é 日本 – and go on.";
    let text: String = (0..45).map(|n| format!("{n:02} {line}\n")).collect();
    format!("{text}SAY round {round}")
}

struct StartRound<'a> {
    sandbox: &'a AgentSandbox,
    agent: &'static dyn ConformanceAgent,
    round: usize,
}

impl StartRound<'_> {
    fn run(&self, trusted: bool, tally: &mut StartTally) -> Result<(), String> {
        let text = prompt(self.round);
        let began = std::time::Instant::now();
        let (code, pane, outcome) = self.start(&text)?;
        tally.times.push(began.elapsed());
        let status = outcome["prompt"]["status"].as_str().unwrap_or_default().to_owned();
        match (trusted, code, status.as_str()) {
            (true, Some(0), "sent") => {}
            // Some agents ask about trust only once.
            (false, Some(0), "sent") if self.round > 0 => {}
            (false, Some(KEPT), "kept") => self.trust(&pane, &outcome)?,
            _ => return Err(format!("exit code {code:?}: {outcome}")),
        }
        let unchanged = |part: &String| arrived_unchanged(self.agent.name(), part, &text);
        let arrived = || {
            let requests = self.sandbox.model.requests();
            let asked = requests.into_iter().filter(|request| !request.is_side_request);
            let count = asked.filter(|request| request.prompt_parts.iter().any(unchanged)).count();
            (count > 0).then_some(count)
        };
        let count = poll_until(AGENT_TIMEOUT, arrived).ok_or("the model did not get the prompt")?;
        tally.rounds += 1;
        if count != 1 {
            return Err(format!("the prompt arrived {count} times"));
        }
        Ok(())
    }

    /// Starts the agent. Returns the exit code, the pane and the outcome.
    fn start(&self, text: &str) -> Result<(Option<i32>, String, Value), String> {
        let line = self.agent.launch(&LaunchMode::Plain);
        // No argument of an agent contains a blank.
        let arguments = line.split(' ').skip(1).map(|word| word.replace('\'', ""));
        let mut command = self.sandbox.agtmux_command();
        command.args(["new", self.agent.name(), "--session", "work", "--json", "--prompt", text, "--in"]);
        command.arg(&self.sandbox.workspace.project).arg("--").args(arguments);
        let done = command.output().map_err(|error| error.to_string())?;
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        let outcome: Value = serde_json::from_slice(&done.stdout).map_err(|_| errors)?;
        let pane = outcome["pane_id"].as_str().ok_or("no pane")?.to_owned();
        Ok((done.status.code(), pane, outcome))
    }

    /// Answers the trust dialog as a person would.
    fn trust(&self, pane: &str, outcome: &Value) -> Result<(), String> {
        if outcome["state"] != "waiting_approval" && outcome["state"] != "waiting_input" {
            return Err(format!("the state is not that of a dialog: {outcome}"));
        }
        let tmux = &self.sandbox.server;
        for key in self.agent.keys(DialogReply::Trust) {
            let before = tmux.run(&["capture-pane", "-p", "-t", pane]);
            tmux.run(&["send-keys", "-t", pane, key]);
            let changed = || (tmux.run(&["capture-pane", "-p", "-t", pane]) != before).then_some(());
            poll_until(Duration::from_secs(5), changed);
        }
        Ok(())
    }

    fn close(&self) {
        let panes = self.sandbox.server.run(&["list-panes", "-s", "-t", "=work:", "-F", "#{pane_id}"]);
        for pane in panes.lines().filter(|pane| *pane != self.sandbox.pane) {
            self.sandbox.server.run(&["kill-pane", "-t", pane]);
        }
    }
}

/// `make test` runs two rounds, a soak run 20.
#[track_caller]
fn check(name: &str, trusted: bool) {
    let agent: &'static dyn ConformanceAgent =
        real_agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&why),
    };
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: &installed.program_dirs,
        mode: EvidenceMode::Hooks,
        trusted,
        size: PaneSize(120, 40),
        save_hook_payloads: false,
    });
    let own = agtmux_testkit::agtmux::agtmux_program();
    let own = own.parent().expect("a program path has a parent directory").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = installed.program_dirs.iter().cloned().chain([own]).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(dirs).expect("the directories contain no colon");
    sandbox.server.run(&["set-environment", "-t", "=work:", "PATH", &path.to_string_lossy()]);
    sandbox.server.run(&["set-option", "-g", "default-command", "PS1='sh$ ' exec sh -i"]);
    let mut tally = StartTally { rounds: 0, times: Vec::new() };
    for round in 0..rounds(2) {
        let start = StartRound { sandbox: &sandbox, agent, round };
        if let Err(why) = start.run(trusted, &mut tally) {
            let panes = sandbox.server.run(&["list-panes", "-s", "-t", "=work:", "-F", "#{pane_id}"]);
            let shown: Vec<String> =
                panes.lines().map(|pane| sandbox.server.run(&["capture-pane", "-p", "-t", pane])).collect();
            panic!("{name}, round {round}: {why}\n{}", shown.join("\n----\n"));
        }
        start.close();
    }
    print_line(&format!("{name}, trusted {trusted}: {tally}"));
}

#[track_caller]
fn check_in_soak_run(agent: &str, trusted: bool) {
    if !skip_outside_soak() {
        check(agent, trusted);
    }
}

mod first_prompts {
    use super::*;

    #[test]
    fn claude() {
        check("claude", true);
    }

    #[test]
    fn claude_behind_a_trust_dialog() {
        check_in_soak_run("claude", false);
    }

    #[test]
    fn codex() {
        check("codex", true);
    }

    #[test]
    fn codex_behind_a_trust_dialog() {
        check_in_soak_run("codex", false);
    }

    #[test]
    fn gemini() {
        check_in_soak_run("gemini", true);
    }

    #[test]
    fn gemini_behind_a_trust_dialog() {
        check_in_soak_run("gemini", false);
    }

    #[test]
    fn copilot() {
        check_in_soak_run("copilot", true);
    }

    #[test]
    fn copilot_behind_a_trust_dialog() {
        check_in_soak_run("copilot", false);
    }

    #[test]
    fn opencode() {
        check_in_soak_run("opencode", true);
    }
}
