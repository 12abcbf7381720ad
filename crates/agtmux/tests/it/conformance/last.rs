//! `agtmux ask` and `agtmux last` with the real agents: the text is what the model sent.

use std::process::Output;
use std::time::Duration;

use agtmux_testkit::model::QUOTED_TEXT;
use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ASKED_TOOL, ConformanceAgent, LaunchMode, SlashCommand, poll_until};
use agtmux_testkit::{skip, skip_outside_soak};
use serde_json::Value;

use super::driver::{DriveError, ScenarioDriver};
use super::run::{install_agent, rounds};

const AGENT_TIMEOUT: Duration = Duration::from_secs(60);
const ASK_LIMIT: &str = "60s";
/// The exit code of `ask` if the agent opens a dialog.
const ASKS: i32 = 6;
/// What the model says before it calls a tool.
const BEFORE_TOOL: &str = "I will use a tool.";

struct AskedAgent<'a> {
    sandbox: &'a AgentSandbox,
    agent: &'static dyn ConformanceAgent,
}

impl AskedAgent<'_> {
    fn run(&self, args: &[&str]) -> Output {
        self.sandbox.agtmux_command().args(args).output().expect("agtmux can be started")
    }

    /// Asks, and returns the exit code, the answer and the messages.
    fn ask(&self, text: &str) -> (Option<i32>, String, String) {
        let done = self.run(&["ask", &self.sandbox.pane, "--text", text, "--timeout", ASK_LIMIT]);
        let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), read(&done.stdout), read(&done.stderr))
    }

    #[track_caller]
    fn check_answer(&self, text: &str, expected: &str) {
        let (code, answer, errors) = self.ask(text);
        let name = self.agent.name();
        assert_eq!((code, answer.as_str()), (Some(0), &*format!("{expected}\n")), "{name} {text}: {errors}\n{self}");
        self.check_last(text, expected);
    }

    #[track_caller]
    fn check_last(&self, prompt: &str, expected: &str) {
        let done = self.run(&["last", &self.sandbox.pane, "--json"]);
        let last: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        let turn = &last["turns"][0];
        let found = (last["source"].as_str(), turn["prompt"].as_str(), turn["answer"].as_str());
        let wanted = (Some("transcript"), Some(prompt), Some(expected));
        assert_eq!(found, wanted, "{} {}\n{self}", self.agent.name(), String::from_utf8_lossy(&done.stderr));
    }

    /// Lets the agent ask for permission, and denies it.
    fn check_denied_tool(&self) {
        let prompt = format!("RUN {ASKED_TOOL} 1");
        let (code, answer, errors) = self.ask(&prompt);
        assert_eq!((code, answer.as_str()), (Some(ASKS), ""), "{}: {errors}\n{self}", self.agent.name());
        // The dialog may still be drawn when it is first seen.
        let mut errors = String::new();
        let denied = poll_until(AGENT_TIMEOUT, || {
            let denied = self.run(&["respond", &self.sandbox.pane, "deny"]);
            errors = String::from_utf8_lossy(&denied.stderr).into_owned();
            denied.status.success().then_some(())
        });
        assert!(denied.is_some(), "{}: {errors}\n{self}", self.agent.name());
        self.check_last(&prompt, BEFORE_TOOL);
        let rests = self.run(&["wait", &self.sandbox.pane, "--for", "idle,completed", "--timeout", ASK_LIMIT]);
        assert!(rests.status.success(), "{}: {}", self.agent.name(), String::from_utf8_lossy(&rests.stderr));
    }

    /// Begins a new conversation.
    fn clear(&self) {
        let text = format!("--text={}", self.agent.slash_command(SlashCommand::Clear));
        let sent = self.run(&["send", &self.sandbox.pane, &text]);
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let is_clear = || (!self.sandbox.capture().screen.contains("end-of-quote.")).then_some(());
        poll_until(AGENT_TIMEOUT, is_clear).expect("the screen is cleared");
    }
}

impl std::fmt::Display for AskedAgent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.sandbox.explain_output(), self.sandbox.capture().screen.trim_end())
    }
}

/// `make test` runs one round, a soak run 20.
#[track_caller]
fn check(name: &str) {
    let agent: &'static dyn ConformanceAgent =
        real_agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&why),
    };
    let mode = EvidenceMode::Hooks;
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: &installed.program_dirs,
        mode,
        trusted: true,
        size: PaneSize(120, 40),
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode, recorder: None };
    if let Err(DriveError(why)) = driver.start(&LaunchMode::Plain) {
        panic!("{name} does not start: {why}");
    }
    let asked = AskedAgent { sandbox: &sandbox, agent };
    for round in 0..rounds(1) {
        let text = format!("round {round}: *a* `b` – 日本 é");
        asked.check_answer(&format!("SAY {text}"), &text);
        asked.check_answer("QUOTE", QUOTED_TEXT);
        asked.check_denied_tool();
        asked.clear();
        asked.check_answer("SAY after the clear", "after the clear");
    }
}

#[track_caller]
fn check_in_soak_run(agent: &str) {
    if !skip_outside_soak() {
        check(agent);
    }
}

mod answers {
    use super::*;

    #[test]
    fn claude() {
        check("claude");
    }

    #[test]
    fn codex() {
        check_in_soak_run("codex");
    }

    #[test]
    fn gemini() {
        check_in_soak_run("gemini");
    }

    #[test]
    fn copilot() {
        check_in_soak_run("copilot");
    }

    #[test]
    fn opencode() {
        check_in_soak_run("opencode");
    }

    #[test]
    fn pi() {
        check_in_soak_run("pi");
    }

    #[test]
    fn qwen() {
        check_in_soak_run("qwen");
    }
}
