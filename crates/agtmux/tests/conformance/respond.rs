//! Whether `agtmux respond` answers the dialogs of the real agents, and only those that were meant.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::agents::{self, ConformanceAgent, DialogReply, LaunchMode};
use super::driver::ScenarioDriver;
use super::options::{AgentVersionChoice, PaneSize};
use super::poll_until;
use super::run::install_agent;
use super::sandbox::{AgentSandbox, SandboxOptions, write_tool};
use super::states::{EvidenceMode, ScreenState};

#[path = "respond_bridge.rs"]
mod bridge;
#[path = "respond_more.rs"]
mod more;

/// Tried in the long form only.
pub(crate) const SOAK_ONLY_AGENTS: [&str; 3] = ["copilot", "qwen", "aider"];

/// Some take half a minute for a turn on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The agents whose options stand in one row.
const OPTIONS_IN_ONE_ROW: [&str; 1] = ["opencode"];

/// The agents whose options have letters instead of numbers.
const LETTER_OPTIONS: [&str; 1] = ["aider"];

/// The error says why it could not be tried.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &check_core);
    if std::env::var_os("AGTMUX_SOAK").is_some() {
        more::check(agent, &installed.program_dirs);
    }
    Ok(())
}

/// The same over HTTP, in the words of the tmux-bridge document, which knows Claude only.
pub(crate) fn check_bridge() -> Result<(), String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &bridge::check);
    Ok(())
}

/// One life of the agent, in which it is ready.
fn with_started_agent(
    agent: &'static dyn ConformanceAgent,
    programs: &[PathBuf],
    launch: &LaunchMode,
    play: &dyn Fn(&DialogTester<'_>),
) {
    with_shell(agent, programs, true, &|room| {
        room.driver.start(launch).unwrap_or_else(|lost| panic!("{}", lost.0));
        play(room);
    });
}

/// A shell in which it can be started.
fn with_shell(
    agent: &'static dyn ConformanceAgent,
    programs: &[PathBuf],
    trusted: bool,
    play: &dyn Fn(&DialogTester<'_>),
) {
    let mode = if agent.modes().contains(&EvidenceMode::Hooks) { EvidenceMode::Hooks } else { EvidenceMode::NoHooks };
    let room = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: programs,
        mode,
        trusted,
        size: PaneSize(120, 40),
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &room, mode, recorder: None };
    play(&DialogTester { driver });
}

struct DialogTester<'a> {
    driver: ScenarioDriver<'a>,
}

impl DialogTester<'_> {
    fn sandbox(&self) -> &AgentSandbox {
        self.driver.sandbox
    }

    /// Prompts, and returns what it asks once agtmux knows of it.
    #[track_caller]
    fn prompt_for_dialog(&self, prompt: &str, about: &str) -> Value {
        // What was answered before must be over: the same may be asked again.
        poll_until(RESPONSE_TIMEOUT, || self.dialog().is_null().then_some(())).expect("it asks nothing");
        // A prompt in the middle of a turn is put in a queue, and the model gets it in another shape.
        poll_until(RESPONSE_TIMEOUT, || self.is_at_rest().then_some(()));
        self.driver.submit(prompt, |text| self.sandbox().paste(text)).unwrap_or_else(|lost| panic!("{}", lost.0));
        self.wait_for_dialog(about)
    }

    #[track_caller]
    fn wait_for_dialog(&self, about: &str) -> Value {
        let asked =
            poll_until(RESPONSE_TIMEOUT, || Some(self.dialog()).filter(|dialog| dialog.to_string().contains(about)));
        asked.unwrap_or_else(|| panic!("it does not ask about {about}; {}", self.driver.screen_text()))
    }

    fn dialog(&self) -> Value {
        self.listed_item()["dialog"].clone()
    }

    fn is_at_rest(&self) -> bool {
        !matches!(self.listed_item()["state"].as_str(), Some("running" | "waiting_approval" | "waiting_input"))
    }

    /// What agtmux lists of it.
    fn listed_item(&self) -> Value {
        let (_, said, _) = self.sandbox().run_agtmux(&["list", "panes", "--json"]);
        let list: Value = serde_json::from_str(&said).unwrap_or_default();
        list["items"][0].clone()
    }

    /// Answers, and gives back what agtmux says of that.
    #[track_caller]
    fn answer_confirmed(&self, answer: &[&str]) -> Value {
        let (worked, said, error) = self.respond(answer);
        assert!(worked, "{answer:?}: {error}{said}\n{}", self.driver.screen_text());
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["verified"], "confirmed", "{answer:?}: {said}");
        said
    }

    fn respond(&self, answer: &[&str]) -> (bool, String, String) {
        self.sandbox().run_agtmux(&[&["respond", &self.sandbox().pane, "--json"], answer].concat())
    }

    fn file_exists(&self, file: &str) -> bool {
        self.sandbox().workspace.project.join(file).exists()
    }

    #[track_caller]
    fn wait_for_screen(&self, scene: ScreenState) {
        self.driver.wait_for_screen(scene).unwrap_or_else(|lost| panic!("{}", lost.0));
    }

    /// The model was told.
    #[track_caller]
    fn wait_for_model_text(&self, text: &str) {
        let told = || self.sandbox().model.requests().iter().rev().take(4).any(|request| request.body.contains(text));
        let heard = poll_until(RESPONSE_TIMEOUT, || told().then_some(()));
        assert!(heard.is_some(), "the model was not told `{text}`; {}", self.driver.screen_text());
    }

    #[track_caller]
    fn wait_for_file(&self, file: &str) {
        poll_until(RESPONSE_TIMEOUT, || self.file_exists(file).then_some(()))
            .unwrap_or_else(|| panic!("no {file}; {}", self.driver.screen_text()));
    }
}

fn check_core(agent: &DialogTester<'_>) {
    agent.prompt_for_dialog("RUN touch approved.txt", "approved.txt");
    let said = agent.answer_confirmed(&["approve"]);
    assert!(said["dialog"].to_string().contains("approved.txt"), "{said}");
    agent.wait_for_file("approved.txt");
    check_replaced_dialog(agent);
    if !LETTER_OPTIONS.contains(&agent.driver.agent.name()) {
        check_option_number(agent);
    }
    if agent.driver.agent.name() == "claude" {
        check_agent_is_refused(agent);
    }
}

/// What was asked first has been answered by somebody else, and something else is asked since.
fn check_replaced_dialog(agent: &DialogTester<'_>) {
    let first = agent.prompt_for_dialog("RUN touch first.txt", "first.txt");
    agent.driver.press_all(agent.driver.agent.keys(DialogReply::Deny));
    agent.wait_for_screen(ScreenState::Denied);
    let second = agent.prompt_for_dialog("RUN touch second.txt", "second.txt");
    let fingerprint = first["fingerprint"].as_str().expect("it has one");
    let (worked, _, error) = agent.respond(&["approve", "--if-dialog", fingerprint]);
    assert!(!worked && error.contains("that dialog is not open any more"), "{error}");
    let (worked, _, error) = agent.sandbox().run_agtmux(&["send", &agent.sandbox().pane, "--text", "1"]);
    assert!(!worked && error.contains("agtmux respond"), "{error}");
    // Anything that was typed would have answered it.
    agent.answer_confirmed(&["deny", "--if-dialog", second["fingerprint"].as_str().expect("it has one")]);
    agent.wait_for_screen(ScreenState::Denied);
    assert!(!agent.file_exists("first.txt") && !agent.file_exists("second.txt"));
}

/// By its number, wherever the selection stands. It opens what can be opened without asking any more, so it comes last.
fn check_option_number(agent: &DialogTester<'_>) {
    let in_a_row = OPTIONS_IN_ONE_ROW.contains(&agent.driver.agent.name());
    agent.prompt_for_dialog("RUN touch chosen.txt", "chosen.txt");
    let before = agent.sandbox().capture_with_colours();
    agent.driver.press_all(&[if in_a_row { "Left" } else { "Down" }]);
    poll_until(RESPONSE_TIMEOUT, || (agent.sandbox().capture_with_colours() != before).then_some(()))
        .expect("the selection moves");
    let said = agent.answer_confirmed(&["2"]);
    if in_a_row {
        assert!(said["asks_now"].to_string().contains("Always allow"), "{said}");
        assert!(!agent.file_exists("chosen.txt"));
        agent.answer_confirmed(&["approve"]);
    }
    agent.wait_for_file("chosen.txt");
}

/// What the agent's own shell may do: look, but not act. Also what has left its parents behind.
const AGTMUX_CALLS_SCRIPT: &str = r#"#!/bin/sh
case $1 in
left) ;;
*) setsid -f "$0" left; set -- child ;;
esac
try() { name=$1; shift; agtmux "$@" >"$0.$name.said" 2>&1; echo $? >"$0.$name"; }
try "$1-respond" respond "$TMUX_PANE" approve
try "$1-send" send "$TMUX_PANE" --text hello
try "$1-kill" kill "$TMUX_PANE" --yes
try "$1-list" list panes --json
try "$1-explain" explain "$TMUX_PANE"
try "$1-end" --version
"#;

fn check_agent_is_refused(agent: &DialogTester<'_>) {
    agent.sandbox().forbid_agent_actions();
    write_tool(agent.sandbox(), AGTMUX_CALLS_SCRIPT);
    agent
        .driver
        .submit("DO ./free-tool 1", |text| agent.sandbox().paste(text))
        .unwrap_or_else(|lost| panic!("{}", lost.0));
    for who in ["child", "left"] {
        agent.wait_for_file(&format!("free-tool.{who}-end"));
        let read = |what: &str| {
            let path = agent.sandbox().workspace.project.join(format!("free-tool.{who}-{what}"));
            std::fs::read_to_string(&path).unwrap_or_default()
        };
        for refused in ["respond", "send", "kill"] {
            let said = read(&format!("{refused}.said"));
            assert_ne!(read(refused).trim(), "0", "{who} {refused}: {said}");
            assert!(said.contains(&format!("an agent may not {refused} by itself")), "{who} {refused}: {said}");
        }
        for allowed in ["list", "explain"] {
            assert_eq!(read(allowed).trim(), "0", "{who} {allowed}: {}", read(&format!("{allowed}.said")));
        }
    }
}
