//! Checks that `agtmux respond` answers the intended dialog of a real agent, and no other dialog.

mod bridge;
mod in_interface;
mod soak;
mod swaps;
mod web;

use std::path::PathBuf;
use std::time::Duration;

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::model::ModelFailure;
use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::poll_until;
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions, write_tool};
use agtmux_testkit::real_agents::states::{EvidenceMode, ScreenState};
use agtmux_testkit::real_agents::{self, ConformanceAgent, DialogReply, LaunchMode};
use serde_json::Value;

use super::driver::ScenarioDriver;
use super::run::install_agent;

/// Agents that are tested only when AGTMUX_SOAK is set.
pub(crate) const SOAK_ONLY_AGENTS: [&str; 3] = ["copilot", "qwen", "aider"];

/// Some agents need half a minute for a turn on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Agents that show all options in one row.
const OPTIONS_IN_ONE_ROW: [&str; 1] = ["opencode"];

/// Agents whose options have letters instead of numbers.
const LETTER_OPTIONS: [&str; 1] = ["aider"];

/// Tests one agent. The error is the reason to skip the test.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &check_core);
    if soak() {
        soak::check(agent, &installed.program_dirs);
    }
    Ok(())
}

/// Runs the same checks over the HTTP API of the tmux-bridge document, which covers only Claude.
pub(crate) fn check_bridge() -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &bridge::check);
    Ok(())
}

/// Answers in the web dashboard.
pub(crate) fn check_web() -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &web::check);
    Ok(())
}

/// Swaps dialogs while they are answered.
pub(crate) fn check_swaps() -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &swaps::check);
    Ok(())
}

/// Answers questions of Claude without hooks, so that only the screen shows them: 3 of them, 20 in a soak run.
/// Answers a dialog of the agent in the terminal interface.
pub(crate) fn check_in_the_interface(name: &str) -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &in_interface::check_answer);
    Ok(())
}

/// Swaps dialogs while they are answered in the terminal interface.
pub(crate) fn check_swaps_in_the_interface() -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_started_agent(agent, &installed.program_dirs, &LaunchMode::Plain, &in_interface::check);
    Ok(())
}

pub(crate) fn check_questions_without_hooks() -> Result<(), String> {
    let agent = real_agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = install_agent(agent, AgentVersionChoice::Pinned)?;
    with_shell_in(EvidenceMode::NoHooks, agent, &installed.program_dirs, true, &|tester| {
        tester.driver.start(&LaunchMode::Plain).unwrap_or_else(|error| panic!("{}", error.0));
        for n in 0..if soak() { 20 } else { 3 } {
            tester.prompt_for_dialog(&format!("ASK {n}"), "colour");
            tester.answer_confirmed(&["2"]);
            tester.wait_for_model_text("Blue");
        }
    });
    Ok(())
}

/// Starts the agent, waits until it is ready and runs the checks.
fn with_started_agent(
    agent: &'static dyn ConformanceAgent,
    programs: &[PathBuf],
    launch: &LaunchMode,
    check: &dyn Fn(&DialogTester<'_>),
) {
    with_shell(agent, programs, true, &|tester| {
        tester.driver.start(launch).unwrap_or_else(|error| panic!("{}", error.0));
        check(tester);
    });
}

/// Opens a shell in which the checks can start the agent. The agent has hooks if agtmux supports them.
fn with_shell(
    agent: &'static dyn ConformanceAgent,
    programs: &[PathBuf],
    trusted: bool,
    check: &dyn Fn(&DialogTester<'_>),
) {
    let mode = if agent.modes().contains(&EvidenceMode::Hooks) { EvidenceMode::Hooks } else { EvidenceMode::NoHooks };
    with_shell_in(mode, agent, programs, trusted, check);
}

fn with_shell_in(
    mode: EvidenceMode,
    agent: &'static dyn ConformanceAgent,
    programs: &[PathBuf],
    trusted: bool,
    check: &dyn Fn(&DialogTester<'_>),
) {
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: programs,
        mode,
        trusted,
        size: PaneSize(120, 40),
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode, recorder: None };
    check(&DialogTester { driver });
}

struct DialogTester<'a> {
    driver: ScenarioDriver<'a>,
}

impl DialogTester<'_> {
    fn sandbox(&self) -> &AgentSandbox {
        self.driver.sandbox
    }

    /// Submits the prompt and returns the dialog as soon as agtmux reports it.
    #[track_caller]
    fn prompt_for_dialog(&self, prompt: &str, about: &str) -> Value {
        // The previous dialog must be closed first, because the next one may look the same.
        poll_until(RESPONSE_TIMEOUT, || self.dialog().is_null().then_some(())).expect("the previous dialog is closed");
        // The agent would queue a prompt during a turn, and the model would receive it in another form.
        poll_until(RESPONSE_TIMEOUT, || self.is_at_rest().then_some(()));
        self.driver.submit(prompt, |text| self.sandbox().paste(text)).unwrap_or_else(|error| panic!("{}", error.0));
        self.wait_for_dialog(about)
    }

    #[track_caller]
    fn wait_for_dialog(&self, about: &str) -> Value {
        let asked =
            poll_until(RESPONSE_TIMEOUT, || Some(self.dialog()).filter(|dialog| dialog.to_string().contains(about)));
        asked.unwrap_or_else(|| panic!("no dialog mentions {about}; {}", self.driver.screen_text()))
    }

    fn dialog(&self) -> Value {
        self.listed_item()["dialog"].clone()
    }

    fn is_at_rest(&self) -> bool {
        !matches!(self.listed_item()["state"].as_str(), Some("running" | "waiting_approval" | "waiting_input"))
    }

    /// The item of the agent in `agtmux list`.
    fn listed_item(&self) -> Value {
        let (_, output, _) = self.sandbox().run_agtmux(&["list", "panes", "--json"]);
        let list: Value = serde_json::from_str(&output).unwrap_or_default();
        list["items"][0].clone()
    }

    /// Answers the dialog, checks that the answer is confirmed, and returns the response.
    #[track_caller]
    fn answer_confirmed(&self, answer: &[&str]) -> Value {
        let (succeeded, output, error) = self.respond(answer);
        assert!(succeeded, "{answer:?}: {error}{output}\n{}", self.driver.screen_text());
        let output: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(output["verified"], "confirmed", "{answer:?}: {output}");
        output
    }

    fn respond(&self, answer: &[&str]) -> (bool, String, String) {
        self.sandbox().run_agtmux(&[&["respond", &self.sandbox().pane, "--json"], answer].concat())
    }

    fn file_exists(&self, file: &str) -> bool {
        self.sandbox().workspace.project.join(file).exists()
    }

    #[track_caller]
    fn wait_for_screen(&self, state: ScreenState) {
        self.driver.wait_for_screen(state).unwrap_or_else(|error| panic!("{}", error.0));
    }

    /// Waits until a recent request to the model contains the text.
    #[track_caller]
    fn wait_for_model_text(&self, text: &str) {
        let has_text =
            || self.sandbox().model.requests().iter().rev().take(4).any(|request| request.body.contains(text));
        let is_received = poll_until(RESPONSE_TIMEOUT, || has_text().then_some(()));
        assert!(is_received.is_some(), "the model did not receive `{text}`; {}", self.driver.screen_text());
    }

    #[track_caller]
    fn wait_for_file(&self, file: &str) {
        poll_until(RESPONSE_TIMEOUT, || self.file_exists(file).then_some(()))
            .unwrap_or_else(|| panic!("the agent did not create {file}; {}", self.driver.screen_text()));
    }
}

fn check_core(agent: &DialogTester<'_>) {
    agent.prompt_for_dialog("RUN touch approved.txt", "approved.txt");
    let output = agent.answer_confirmed(&["approve"]);
    assert!(output["dialog"].to_string().contains("approved.txt"), "{output}");
    agent.wait_for_file("approved.txt");
    check_replaced_dialog(agent);
    if agent.driver.agent.name() == "claude" {
        check_panels(agent);
    }
    if !LETTER_OPTIONS.contains(&agent.driver.agent.name()) {
        check_option_number(agent);
    }
    if agent.driver.agent.name() == "claude" {
        check_agent_is_refused(agent);
    }
}

/// An answer to a dialog is refused after the user closed that dialog and another one opened.
fn check_replaced_dialog(agent: &DialogTester<'_>) {
    let first = agent.prompt_for_dialog("RUN touch first.txt", "first.txt");
    agent.driver.press_all(agent.driver.agent.keys(DialogReply::Deny));
    agent.wait_for_screen(ScreenState::Denied);
    let second = agent.prompt_for_dialog("RUN touch second.txt", "second.txt");
    let fingerprint = first["fingerprint"].as_str().expect("a dialog has a fingerprint");
    let (succeeded, _, error) = agent.respond(&["approve", "--if-dialog", fingerprint]);
    assert!(!succeeded && error.contains("the expected dialog is no longer open"), "{error}");
    let (succeeded, _, error) = agent.sandbox().run_agtmux(&["send", &agent.sandbox().pane, "--text", "1"]);
    assert!(!succeeded && error.contains("agtmux respond"), "{error}");
    // The second dialog is still open, so the refused calls typed nothing.
    agent.answer_confirmed(&[
        "deny",
        "--if-dialog",
        second["fingerprint"].as_str().expect("a dialog has a fingerprint"),
    ]);
    agent.wait_for_screen(ScreenState::Denied);
    assert!(!agent.file_exists("first.txt") && !agent.file_exists("second.txt"));
}

/// Menus and panels that the user opened after a failed turn are listed and can be left.
fn check_panels(agent: &DialogTester<'_>) {
    let submit = |text: &str| {
        let typed = agent.driver.submit(text, |text| agent.sandbox().type_text(text));
        typed.unwrap_or_else(|error| panic!("{}", error.0));
    };
    submit(ModelFailure::Status(400).prompt());
    agent.wait_for_screen(ScreenState::Failed);
    poll_until(RESPONSE_TIMEOUT, || (agent.listed_item()["state"] == "error").then_some(())).expect("the turn failed");
    let pane = agent.sandbox().pane.clone();
    let ways: [(&str, &str, &[&str]); 3] = [
        ("/model", "Default", &["respond", &pane, "deny"]),
        ("/status", "Settings", &["respond", &pane, "deny"]),
        ("/status", "Settings", &["send", &pane, "--key", "Escape"]),
    ];
    for (command, title, way) in ways {
        submit(command);
        agent.wait_for_dialog(title);
        assert_eq!(agent.listed_item()["state"], "waiting_input", "{command}");
        let (succeeded, output, error) = agent.sandbox().run_agtmux(way);
        assert!(succeeded, "{command}: {way:?}: {output}{error}");
        let closed = poll_until(RESPONSE_TIMEOUT, || agent.dialog().is_null().then_some(()));
        assert!(closed.is_some(), "{command} is still open after {way:?}; {}", agent.driver.screen_text());
    }
}

/// Moves the selection and then answers with the number of an option. The chosen option lets later commands run without
/// a dialog, so this check runs last.
fn check_option_number(agent: &DialogTester<'_>) {
    let in_a_row = OPTIONS_IN_ONE_ROW.contains(&agent.driver.agent.name());
    agent.prompt_for_dialog("RUN touch chosen.txt", "chosen.txt");
    let before = agent.sandbox().capture_with_colours();
    agent.driver.press_all(&[if in_a_row { "Left" } else { "Down" }]);
    poll_until(RESPONSE_TIMEOUT, || (agent.sandbox().capture_with_colours() != before).then_some(()))
        .expect("the selection moves");
    let output = agent.answer_confirmed(&["2"]);
    if in_a_row {
        assert!(output["asks_now"].to_string().contains("Always allow"), "{output}");
        assert!(!agent.file_exists("chosen.txt"));
        agent.answer_confirmed(&["approve"]);
    }
    agent.wait_for_file("chosen.txt");
}

/// Runs agtmux commands from the agent's shell, and again from a detached process.
const AGTMUX_CALLS_SCRIPT: &str = r#"#!/bin/sh
case $1 in
left) ;;
*) setsid -f "$0" left; set -- child ;;
esac
try() { name=$1; shift; agtmux "$@" >"$0.$name.output" 2>&1; echo $? >"$0.$name"; }
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
        .unwrap_or_else(|error| panic!("{}", error.0));
    for who in ["child", "left"] {
        agent.wait_for_file(&format!("free-tool.{who}-end"));
        let read = |what: &str| {
            let path = agent.sandbox().workspace.project.join(format!("free-tool.{who}-{what}"));
            std::fs::read_to_string(&path).unwrap_or_default()
        };
        for refused in ["respond", "send", "kill"] {
            let output = read(&format!("{refused}.output"));
            assert_ne!(read(refused).trim(), "0", "{who} {refused}: {output}");
            assert!(output.contains(&format!("agents may not {refused}")), "{who} {refused}: {output}");
        }
        for allowed in ["list", "explain"] {
            assert_eq!(read(allowed).trim(), "0", "{who} {allowed}: {}", read(&format!("{allowed}.output")));
        }
    }
}
