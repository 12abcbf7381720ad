//! Agents are recognised by their processes and followed until they end.

use std::time::{Duration, Instant};

use agtmux_api::wire::PaneItem;
use agtmux_core::state::{ReasonCode, State};
use agtmux_testkit::agtmux::world;
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

use super::entries;

const SOON: Duration = Duration::from_secs(20);

/// The body of a fake agent: reads until its input ends.
const READ_LOOP: &str = "'while read -r line; do :; done'";

struct AgentPaneFixture {
    tmux: TestTmuxServer,
    world: TestWorld,
}

impl AgentPaneFixture {
    fn new() -> Self {
        let world = world();
        let tmux = world.tmux("first");
        tmux.new_session("fixture", "exec cat");
        Self { tmux, world }
    }

    /// Opens a pane with this command. Returns its id.
    fn new_pane(&self, command: &str) -> String {
        self.tmux.run(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=fixture:", command])
    }

    /// Opens a pane with a shell and types this line.
    fn shell_with_line(&self, typed: &str) -> String {
        let pane = self.new_pane("exec sh -i");
        self.type_line(&pane, typed);
        pane
    }

    fn type_line(&self, pane: &str, line: &str) {
        self.tmux.run(&["send-keys", "-t", pane, "-l", line, ";", "send-keys", "-t", pane, "Enter"]);
    }

    fn press(&self, pane: &str, key: &str) {
        self.tmux.run(&["send-keys", "-t", pane, key]);
    }

    #[track_caller]
    fn wait_for_pane(&self, what: &str, pane: &str, is_so: impl Fn(&PaneItem) -> bool) -> PaneItem {
        wait_for(what, SOON, || {
            let panes = entries::listed::<PaneItem>(&self.world, "panes")?;
            let seen = panes.into_iter().find(|item| item.identity.pane_id.to_string() == pane);
            let seen = seen.ok_or("no such pane")?;
            if is_so(&seen) { Ok(seen) } else { Err(format!("{seen:?}")) }
        })
    }

    /// Waits for an agent whose state cannot be read.
    #[track_caller]
    fn wait_for_agent(&self, agent: &str, pane: &str) -> PaneItem {
        let item = self.wait_for_pane(&format!("{agent} in {pane}"), pane, |item| {
            agent_of(item) == Some(agent) && item.reason_code == Some(ReasonCode::UnsupportedSignal)
        });
        assert!(item.state == Some(State::Unknown) && item.runtime_id.is_some(), "not a running agent: {item:?}");
        item
    }

    /// Waits until tmux shows how the pane died. Under load tmux may notice the death only when another child ends.
    fn wait_for_death_status(&self, pane: &str) {
        wait_until("tmux to show how the pane died", SOON, || {
            self.tmux.run(&["run-shell", "true"]);
            let rows = self.tmux.rows(&["list-panes", "-a"], &["pane_id", "pane_dead_status", "pane_dead_signal"]);
            rows.iter().any(|row| row[0] == pane.as_bytes() && !(row[1].is_empty() && row[2].is_empty()))
        });
    }

    /// The pid of the process with this program name in the pane.
    #[track_caller]
    fn agent_process(&self, pane: &str, program: &str) -> u32 {
        let root = self.tmux.panes().into_iter().find(|row| row.pane_id == pane).expect("the pane exists").pid;
        let is_program =
            |pid: &u32| process::argv(*pid).first().is_some_and(|argv0| argv0.ends_with(program.as_bytes()));
        wait_for("the agent's process", SOON, || {
            std::iter::once(root).chain(process::descendants(root)).find(|pid| is_program(pid))
        })
    }
}

fn agent_of(item: &PaneItem) -> Option<&str> {
    item.agent_type.as_ref().map(|agent| agent.as_str())
}

fn is_without_agent(item: &PaneItem) -> bool {
    (&item.agent_type, &item.runtime_id, item.state, item.reason_code, item.since) == (&None, &None, None, None, None)
}

#[test]
fn every_agent_is_recognized_by_its_program() {
    let fixture = AgentPaneFixture::new();
    let programs = ["claude", "codex", "gemini", "copilot", "cursor-agent", "opencode", "pi", "qwen", "aider"];
    let panes: Vec<String> =
        programs.iter().map(|program| fixture.new_pane(&fixture.world.fake_agent_command(program))).collect();
    for (program, pane) in programs.iter().zip(&panes) {
        fixture.wait_for_agent(program.strip_suffix("-agent").unwrap_or(program), pane);
    }
    fixture.wait_for_pane("no agent in a pane without one", "%0", is_without_agent);
}

#[test]
fn an_agent_is_found_behind_wrappers() {
    let fixture = AgentPaneFixture::new();
    let claude = fixture.world.shell_copy("claude").display().to_string();
    let script = fixture.world.home().join("start-it");
    std::fs::write(&script, format!("#!/bin/sh\n{claude} -c {READ_LOOP}\nexit 3\n")).expect("the home is writable");
    let wrapped = [
        format!("sh -c \"{claude} -c {READ_LOOP}; exit 3\""),
        format!("env -u NOTHING SOME=thing {claude} -c {READ_LOOP}"),
        format!("({claude} -c {READ_LOOP}; exit 3); exit 4"),
        format!("sh {}; exit 5", script.display()),
    ];
    let panes: Vec<String> = wrapped.iter().map(|command| fixture.new_pane(command)).collect();
    for pane in &panes {
        fixture.wait_for_agent("claude", pane);
    }
}

#[test]
fn a_suspended_agent_keeps_its_runtime() {
    let fixture = AgentPaneFixture::new();
    let claude = fixture.world.shell_copy("claude").display().to_string();
    let pane = fixture.shell_with_line(&format!("{claude} -c {READ_LOOP}"));
    let running = fixture.wait_for_agent("claude", &pane);
    fixture.press(&pane, "C-z");
    let suspended =
        fixture.wait_for_pane("a suspended agent", &pane, |item| item.reason_code == Some(ReasonCode::Suspended));
    assert_eq!((suspended.state, agent_of(&suspended)), (Some(State::Unknown), Some("claude")));
    assert_eq!(suspended.runtime_id, running.runtime_id);
    fixture.type_line(&pane, "fg");
    let resumed = fixture.wait_for_agent("claude", &pane);
    assert_eq!(resumed.runtime_id, running.runtime_id);
    assert!(resumed.state_version > suspended.state_version, "the state version increases");
}

#[test]
fn the_pane_stays_after_its_agent_exits() {
    let fixture = AgentPaneFixture::new();
    let claude = fixture.world.shell_copy("claude").display().to_string();
    let pane = fixture.shell_with_line(&format!("{claude} -c {READ_LOOP}"));
    let first = fixture.wait_for_agent("claude", &pane);
    fixture.press(&pane, "C-d");
    fixture.wait_for_pane("a pane without its agent", &pane, is_without_agent);
    fixture.type_line(&pane, &format!("{claude} -c {READ_LOOP}"));
    let second = fixture.wait_for_agent("claude", &pane);
    assert_ne!(second.runtime_id, first.runtime_id, "a new runtime");
}

/// The agent prints nothing when it dies, so only its process shows the end.
#[test]
fn a_killed_agent_is_removed() {
    let fixture = AgentPaneFixture::new();
    let claude = fixture.world.shell_copy("claude").display().to_string();
    let pane = fixture.new_pane(&format!("exec 2>/dev/null; {claude} -c {READ_LOOP}; exec cat"));
    fixture.wait_for_agent("claude", &pane);
    let pid = fixture.agent_process(&pane, "/claude");
    process::signal(pid, Signal::KILL);
    let killed = Instant::now();
    fixture.wait_for_pane("a pane without its killed agent", &pane, is_without_agent);
    println!("the killed agent was removed after {:?}", killed.elapsed());
}

#[test]
fn a_respawned_pane_has_a_new_runtime() {
    let fixture = AgentPaneFixture::new();
    let command = fixture.world.fake_agent_command("claude");
    let pane = fixture.new_pane(&command);
    let first = fixture.wait_for_agent("claude", &pane);
    fixture.tmux.run(&["respawn-pane", "-k", "-t", &pane, &command]);
    let is_another = |item: &PaneItem| item.runtime_id.is_some() && item.runtime_id != first.runtime_id;
    let second = fixture.wait_for_pane("the agent after the respawn", &pane, is_another);
    assert_eq!(agent_of(&second), Some("claude"));
}

#[test]
fn a_dead_pane_has_no_agent_and_shows_its_exit_status() {
    let fixture = AgentPaneFixture::new();
    fixture.tmux.run(&["set-option", "-wg", "remain-on-exit", "on"]);
    let claude = fixture.world.shell_copy("claude").display().to_string();
    let exits = fixture.new_pane(&format!("exec {claude} -c 'read -r line; exit 7'"));
    let killed = fixture.new_pane(&fixture.world.fake_agent_command("codex"));
    let first = fixture.wait_for_agent("claude", &exits);
    fixture.wait_for_agent("codex", &killed);
    fixture.press(&exits, "Enter");
    process::signal(fixture.agent_process(&killed, "/codex"), Signal::KILL);
    fixture.wait_for_death_status(&exits);
    fixture.wait_for_death_status(&killed);
    let died_with =
        |code, signal| move |item: &PaneItem| item.dead.is_some_and(|d| (d.exit_code, d.signal) == (code, signal));
    let item = fixture.wait_for_pane("an exit code", &exits, died_with(Some(7), None));
    assert!(is_without_agent(&item), "a dead pane has no agent: {item:?}");
    let item = fixture.wait_for_pane("a signal", &killed, died_with(None, Some(9)));
    assert!(is_without_agent(&item), "a dead pane has no agent: {item:?}");
    fixture.tmux.run(&["respawn-pane", "-t", &exits, &format!("exec {claude} -c {READ_LOOP}")]);
    let revived = fixture.wait_for_agent("claude", &exits);
    assert_eq!(revived.dead, None);
    assert_ne!(revived.runtime_id, first.runtime_id);
}
