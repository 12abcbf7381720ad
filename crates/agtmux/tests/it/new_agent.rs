//! `agtmux new` and `agtmux rename` with fake agents: where the agent starts, and how its first prompt arrives.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, run};
use agtmux_testkit::fake_agent::{FAKE_AGENT_SCRIPT, FakeAgent};
use agtmux_testkit::{process, wait_for, wait_until};
use serde_json::{Value, json};

const KEPT: i32 = 6;

/// A world with a tmux server whose shells find the fake `claude`.
struct StartFixture {
    actions: ActionFixture,
    project: PathBuf,
}

impl StartFixture {
    fn new() -> Self {
        let actions = ActionFixture::new("");
        let project = actions.world.home().join("it's #{pid} %d");
        fs::create_dir(&project).expect("the world is writable");
        let server = &actions.server;
        server.new_session("work", "exec cat");
        let programs = actions.world.shell_copy("claude").parent().expect("a directory").display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").expect("PATH is set"));
        server.run(&["set-environment", "-g", "PATH", &path]);
        server.run(&["set-option", "-g", "default-command", "PS1='ready> ' exec sh -i"]);
        Self { actions, project }
    }

    /// The arguments after `agtmux new claude`, for an agent that writes its files to `dir`.
    fn command(&self, options: &[&str], dir: &std::path::Path) -> Command {
        let mut command = self.actions.world.agtmux();
        command.args(["new", "claude", "--in"]).arg(&self.project).args(options);
        command.arg("--").arg(FAKE_AGENT_SCRIPT).arg(dir);
        command
    }

    /// Starts a fake agent. Returns the result of the command and the agent.
    fn start(&self, options: &[&str]) -> (CommandResult, FakeAgent) {
        let dir = FakeAgent::fresh_dir(&self.actions.world);
        self.start_in(options, dir)
    }

    fn start_in(&self, options: &[&str], dir: PathBuf) -> (CommandResult, FakeAgent) {
        let done = run(&mut self.command(&[options, &["--json"]].concat(), &dir));
        let outcome: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        let pane = outcome["pane_id"].as_str().expect("a pane").to_owned();
        (done, FakeAgent::wait_for_start(&self.actions.server, pane, dir))
    }

    fn tmux(&self, pane: &str, format: &str) -> String {
        self.actions.server.run(&["display-message", "-p", "-t", pane, format])
    }

    fn pane_count(&self) -> usize {
        self.actions.server.panes().len()
    }
}

/// A prompt of 3 kB with several lines and characters that shells and tmux interpret.
fn long_prompt() -> String {
    let line = "Fix `it's` $HOME #{pid} %d; \"quotes\" \\ and é 日本 – then run the tests.";
    (0..40).map(|n| format!("{n:02} {line}\n")).collect::<String>() + "done"
}

#[test]
fn an_agent_starts_in_a_new_window_and_gets_its_prompt_once() {
    let fixture = StartFixture::new();
    let prompt = long_prompt();
    assert!(prompt.len() > 3000, "{}", prompt.len());
    let before = fixture.tmux("=work:", "#{window_id}");
    let (done, agent) = fixture.start(&["--name", "fixer", "--session", "work", "--prompt", &prompt]);
    let outcome = done.json();
    assert_eq!(agent.submitted_texts(), [prompt.as_str()]);
    let found = (&outcome["agent_type"], &outcome["name"], &outcome["session_name"], &outcome["prompt"]["status"]);
    assert_eq!(found, (&json!("claude"), &json!("fixer"), &json!("work"), &json!("sent")), "{outcome}");
    assert_eq!(outcome["prompt"]["sent"]["verified"], "confirmed", "{outcome}");
    assert_eq!(outcome["cwd"].as_str(), fixture.project.to_str());
    assert_eq!(fixture.tmux(&agent.pane, "#{pane_current_path}"), fixture.project.display().to_string());
    assert_eq!(fixture.tmux(&agent.pane, "#{window_name}"), "fixer");
    assert_eq!(fixture.tmux("=work:", "#{window_id}"), before, "the current window stays");
    let shell: u32 = fixture.tmux(&agent.pane, "#{pane_pid}").parse().expect("a pid");
    let lines: Vec<Vec<Vec<u8>>> = process::descendants(shell).into_iter().chain([shell]).map(process::argv).collect();
    let mentions = |line: &Vec<Vec<u8>>| line.iter().any(|word| String::from_utf8_lossy(word).contains("quotes"));
    assert!(!lines.iter().any(mentions), "a command line contains the prompt");
    // The name is a reference, and the agent ends into a shell.
    let listed = agtmux(&fixture.actions.world, &["explain", "fixer"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let kinds: Vec<Value> = fixture.actions.audit().iter().map(|record| record["kind"].clone()).collect();
    assert!(kinds.contains(&json!("new")) && kinds.contains(&json!("send")), "{kinds:?}");
}

#[test]
fn a_prompt_is_kept_behind_a_dialog_and_over_a_restart_of_the_daemon() {
    let fixture = StartFixture::new();
    let dir = FakeAgent::fresh_dir(&fixture.actions.world);
    fs::write(dir.join("scene"), "dialog\n").expect("the world is writable");
    let (done, agent) = fixture.start_in(&["--session", "work", "--prompt", "first\nprompt"], dir);
    let outcome: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((done.code, &outcome["prompt"]["status"]), (Some(KEPT), &json!("kept")), "{done:?}");
    assert_eq!(outcome["state"], "waiting_approval", "{outcome}");
    let reason = outcome["prompt"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("Do you want to proceed?"), "{outcome}");
    assert!(outcome["dialog"]["options"].is_array(), "{outcome}");
    assert_eq!(agtmux(&fixture.actions.world, &["daemon", "restart"]).code, Some(0));
    agent.assert_no_input();
    agent.draw_scene("idle");
    wait_until("the prompt to arrive", SOON, || agent.input_so_far().ends_with(b"\r"));
    assert_eq!(agent.submitted_texts(), ["first\nprompt"]);
    // Another restart does not send it again.
    let prompts = fixture.actions.world.state_dir().join("prompts");
    wait_until("the prompt to be forgotten", SOON, || fs::read_dir(&prompts).is_ok_and(|mut dir| dir.next().is_none()));
    assert_eq!(agtmux(&fixture.actions.world, &["daemon", "restart"]).code, Some(0));
    let listed = agtmux(&fixture.actions.world, &["wait", &agent.pane, "--for", "idle,completed", "--timeout", "10s"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(agent.submitted_texts(), ["first\nprompt"]);
}

#[test]
fn the_place_is_a_session_a_new_session_the_next_window_or_a_split() {
    let fixture = StartFixture::new();
    let (_, in_new) = fixture.start(&["--session", "fresh one"]);
    assert_eq!(fixture.tmux(&in_new.pane, "#{session_name}"), "fresh one");
    let (done, in_project) = fixture.start(&[]);
    assert_eq!(
        fixture.tmux(&in_project.pane, "#{session_name}"),
        done.json()["session_name"].as_str().unwrap_or_default()
    );
    let inside = |option: &str| {
        let dir = FakeAgent::fresh_dir(&fixture.actions.world);
        let mut command = fixture.command(&[option, "--json"], &dir);
        let socket = fixture.actions.server.socket().display().to_string();
        command.env("TMUX", format!("{socket},1,0")).env("TMUX_PANE", "%0");
        let outcome = run(&mut command).json();
        FakeAgent::wait_for_start(&fixture.actions.server, outcome["pane_id"].as_str().expect("a pane").to_owned(), dir)
    };
    let first = fixture.tmux("%0", "#{window_id} #{window_index}");
    let after = inside("--window");
    let index = |text: &str| text.rsplit(' ').next().and_then(|index| index.parse::<u32>().ok()).expect("an index");
    assert_eq!(index(&fixture.tmux(&after.pane, "#{window_id} #{window_index}")), index(&first) + 1);
    let beside = inside("--split");
    assert_eq!(fixture.tmux(&beside.pane, "#{window_id} #{window_index}"), first);
    let outside = run(&mut fixture.command(&["--split"], &in_new.dir));
    assert!(outside.code == Some(2) && outside.stderr.contains("not a tmux pane"), "{outside:?}");
}

#[test]
fn what_cannot_start_is_refused_before_a_pane_is_opened() {
    let fixture = StartFixture::new();
    let panes = fixture.pane_count();
    let refused = |body: Value, status: u16, why: &str| {
        let answer = fixture.actions.post("new", &body);
        let error = answer.json().to_string();
        assert!(answer.status == status && error.contains(why), "{body}: {} {error}", answer.status);
    };
    let cwd = fixture.project.display().to_string();
    refused(json!({"agent": "nonesuch", "cwd": cwd}), 400, "does not know an agent 'nonesuch'");
    refused(json!({"agent": "claude", "cwd": "relative"}), 400, "not an absolute path");
    refused(json!({"agent": "claude", "cwd": "/nonexistent"}), 400, "not a directory");
    refused(json!({"agent": "claude", "cwd": cwd, "name": "a b"}), 400, "not a valid name");
    refused(json!({"agent": "claude", "cwd": cwd, "prompt": "a\u{1b}[201~b"}), 400, "control character");
    refused(json!({"agent": "claude", "cwd": cwd, "arguments": ["a\nb"]}), 400, "control character");
    refused(json!({"agent": "claude", "cwd": cwd, "place": {"session": "a:b"}}), 400, "not a usable session name");
    refused(json!({"agent": "claude", "cwd": cwd, "place": {"window": "3"}}), 400, "not a pane id");
    refused(json!({"agent": "claude", "cwd": cwd, "target": "nowhere"}), 404, "no target named 'nowhere'");
    refused(json!({"agent": "claude", "if_state": "idle"}), 400, "unknown field");
    assert_eq!(fixture.pane_count(), panes);
    // A program that is not installed is known only after the shell has tried to run it.
    let gone = run(fixture.actions.world.agtmux().args(["new", "codex", "--session", "work"]));
    assert!(gone.code == Some(5) && gone.stderr.contains("codex did not start"), "{gone:?}");
}

#[test]
fn a_repeated_request_starts_one_agent() {
    let fixture = StartFixture::new();
    let dir = FakeAgent::fresh_dir(&fixture.actions.world);
    let again = ["--session", "work", "--prompt", "once", "--request-ref", "r1", "--json"];
    let first = run(&mut fixture.command(&again, &dir)).json();
    let second = run(&mut fixture.command(&again, &dir)).json();
    assert_eq!((&first["pane_id"], &second["repeated"]), (&second["pane_id"], &json!(true)), "{second}");
    let agent =
        FakeAgent::wait_for_start(&fixture.actions.server, first["pane_id"].as_str().expect("a pane").into(), dir);
    assert_eq!(agent.submitted_texts(), ["once"]);
}

#[test]
fn names_are_unique_and_can_be_changed() {
    let fixture = StartFixture::new();
    let (_, one) = fixture.start(&["--session", "work", "--name", "one"]);
    let (_, two) = fixture.start(&["--session", "work"]);
    let world = &fixture.actions.world;
    let dir = FakeAgent::fresh_dir(world);
    let taken = run(&mut fixture.command(&["--name", "one"], &dir));
    assert!(taken.code == Some(5) && taken.stderr.contains("already named 'one'"), "{taken:?}");
    let taken = agtmux(world, &["rename", &two.pane, "one"]);
    assert!(taken.code == Some(5) && taken.stderr.contains("already named 'one'"), "{taken:?}");
    let bad = agtmux(world, &["rename", &two.pane, "a b"]);
    assert!(bad.code == Some(5) && bad.stderr.contains("not a valid name"), "{bad:?}");
    let named = agtmux(world, &["rename", &one.pane, "first"]);
    assert!(named.code == Some(0) && named.text().contains("(before: one)"), "{named:?}");
    assert_eq!(agtmux(world, &["rename", &two.pane, "one"]).code, Some(0));
    assert_eq!(agtmux(world, &["daemon", "restart"]).code, Some(0));
    let name_of = |agent: &FakeAgent| {
        let listing = agtmux_testkit::agtmux::list(world);
        let items = agtmux_testkit::agtmux::items(&listing);
        let item = items.iter().find(|item| item["identity"]["pane_id"] == agent.pane.as_str());
        item.and_then(|item| item["name"].as_str().map(str::to_owned))
    };
    wait_for("the names after the restart", SOON, || {
        let names = (name_of(&one), name_of(&two));
        if names == (Some("first".into()), Some("one".into())) { Ok(()) } else { Err(format!("{names:?}")) }
    });
}
