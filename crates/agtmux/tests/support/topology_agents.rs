//! Agents are recognised by their processes, and followed until they end.

use std::time::{Duration, Instant};

use agtmux_api::wire::PaneItem;
use agtmux_core::state::{ReasonCode, State};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

use super::{picture, world};

const SOON: Duration = Duration::from_secs(20);

/// What a stand-in does: it reads until its input ends.
const READ_LOOP: &str = "'while read -r line; do :; done'";

struct AgentPaneFixture {
    tmux: TestTmuxServer,
    world: TestWorld,
}

impl AgentPaneFixture {
    fn new() -> Self {
        let world = world();
        let tmux = world.tmux("first");
        tmux.new_session("stage", "exec cat");
        Self { tmux, world }
    }

    /// A pane of its own for this command. Gives its id.
    fn new_pane(&self, command: &str) -> String {
        self.tmux.run(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=stage:", command])
    }

    /// A pane with a shell into which somebody typed this.
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
            let panes = picture::listed::<PaneItem>(&self.world, "panes")?;
            let seen = panes.into_iter().find(|item| item.identity.pane_id.to_string() == pane);
            let seen = seen.ok_or("no such pane")?;
            if is_so(&seen) { Ok(seen) } else { Err(format!("{seen:?}")) }
        })
    }

    /// An agent that runs, and whose state nothing reads.
    #[track_caller]
    fn wait_for_agent(&self, agent: &str, pane: &str) -> PaneItem {
        let item = self.wait_for_pane(&format!("{agent} in {pane}"), pane, |item| {
            agent_of(item) == Some(agent) && item.reason_code == Some(ReasonCode::UnsupportedSignal)
        });
        assert!(item.state == Some(State::Unknown) && item.runtime_id.is_some(), "not what an agent is: {item:?}");
        item
    }

    /// Under load tmux may miss the end of a child until the next one ends.
    fn wait_for_death_status(&self, pane: &str) {
        wait_until("tmux to say how a pane died", SOON, || {
            self.tmux.run(&["run-shell", "true"]);
            let told = self.tmux.rows(&["list-panes", "-a"], &["pane_id", "pane_dead_status", "pane_dead_signal"]);
            told.iter().any(|row| row[0] == pane.as_bytes() && !(row[1].is_empty() && row[2].is_empty()))
        });
    }

    /// The process of the agent's name below the pane.
    #[track_caller]
    fn agent_process(&self, pane: &str, program: &str) -> u32 {
        let root = self.tmux.panes().into_iter().find(|row| row.pane_id == pane).expect("the pane is there").pid;
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
fn every_agent_is_known_by_its_program() {
    let stage = AgentPaneFixture::new();
    let programs = ["claude", "codex", "gemini", "copilot", "cursor-agent", "opencode", "pi", "qwen", "aider"];
    let panes: Vec<String> =
        programs.iter().map(|program| stage.new_pane(&stage.world.fake_agent_command(program))).collect();
    for (program, pane) in programs.iter().zip(&panes) {
        stage.wait_for_agent(program.strip_suffix("-agent").unwrap_or(program), pane);
    }
    stage.wait_for_pane("no agent in a pane without one", "%0", is_without_agent);
}

#[test]
fn an_agent_is_found_behind_wrappers() {
    let stage = AgentPaneFixture::new();
    let claude = stage.world.shell_copy("claude").display().to_string();
    let script = stage.world.home().join("start-it");
    std::fs::write(&script, format!("#!/bin/sh\n{claude} -c {READ_LOOP}\nexit 3\n")).expect("the home is writable");
    let wrapped = [
        format!("sh -c \"{claude} -c {READ_LOOP}; exit 3\""),
        format!("env -u NOTHING SOME=thing {claude} -c {READ_LOOP}"),
        format!("({claude} -c {READ_LOOP}; exit 3); exit 4"),
        format!("sh {}; exit 5", script.display()),
    ];
    let panes: Vec<String> = wrapped.iter().map(|command| stage.new_pane(command)).collect();
    for pane in &panes {
        stage.wait_for_agent("claude", pane);
    }
}

#[test]
fn a_suspended_agent_stays_the_same_agent() {
    let stage = AgentPaneFixture::new();
    let claude = stage.world.shell_copy("claude").display().to_string();
    let pane = stage.shell_with_line(&format!("{claude} -c {READ_LOOP}"));
    let running = stage.wait_for_agent("claude", &pane);
    stage.press(&pane, "C-z");
    let suspended =
        stage.wait_for_pane("a suspended agent", &pane, |item| item.reason_code == Some(ReasonCode::Suspended));
    assert_eq!((suspended.state, agent_of(&suspended)), (Some(State::Unknown), Some("claude")));
    assert_eq!(suspended.runtime_id, running.runtime_id);
    stage.type_line(&pane, "fg");
    let resumed = stage.wait_for_agent("claude", &pane);
    assert_eq!(resumed.runtime_id, running.runtime_id);
    assert!(resumed.state_version > suspended.state_version, "each state has its own number");
}

#[test]
fn the_end_of_an_agent_leaves_its_pane() {
    let stage = AgentPaneFixture::new();
    let claude = stage.world.shell_copy("claude").display().to_string();
    let pane = stage.shell_with_line(&format!("{claude} -c {READ_LOOP}"));
    let first = stage.wait_for_agent("claude", &pane);
    stage.press(&pane, "C-d");
    stage.wait_for_pane("a pane without its agent", &pane, is_without_agent);
    stage.type_line(&pane, &format!("{claude} -c {READ_LOOP}"));
    let second = stage.wait_for_agent("claude", &pane);
    assert_ne!(second.runtime_id, first.runtime_id, "another life of the pane");
}

/// Nothing is printed when it dies: only its process tells.
#[test]
fn a_killed_agent_is_gone_at_once() {
    let stage = AgentPaneFixture::new();
    let claude = stage.world.shell_copy("claude").display().to_string();
    let pane = stage.new_pane(&format!("exec 2>/dev/null; {claude} -c {READ_LOOP}; exec cat"));
    stage.wait_for_agent("claude", &pane);
    let pid = stage.agent_process(&pane, "/claude");
    process::signal(pid, Signal::KILL);
    let killed = Instant::now();
    stage.wait_for_pane("a pane without its killed agent", &pane, is_without_agent);
    println!("the end of a killed agent was listed after {:?}", killed.elapsed());
}

#[test]
fn a_respawned_pane_has_another_agent() {
    let stage = AgentPaneFixture::new();
    let command = stage.world.fake_agent_command("claude");
    let pane = stage.new_pane(&command);
    let first = stage.wait_for_agent("claude", &pane);
    stage.tmux.run(&["respawn-pane", "-k", "-t", &pane, &command]);
    let is_another = |item: &PaneItem| item.runtime_id.is_some() && item.runtime_id != first.runtime_id;
    let second = stage.wait_for_pane("the agent of the next life", &pane, is_another);
    assert_eq!(agent_of(&second), Some("claude"));
}

#[test]
fn a_dead_pane_has_no_agent_and_tells_how_it_died() {
    let stage = AgentPaneFixture::new();
    stage.tmux.run(&["set-option", "-wg", "remain-on-exit", "on"]);
    let claude = stage.world.shell_copy("claude").display().to_string();
    let exits = stage.new_pane(&format!("exec {claude} -c 'read -r line; exit 7'"));
    let killed = stage.new_pane(&stage.world.fake_agent_command("codex"));
    let first = stage.wait_for_agent("claude", &exits);
    stage.wait_for_agent("codex", &killed);
    stage.press(&exits, "Enter");
    process::signal(stage.agent_process(&killed, "/codex"), Signal::KILL);
    stage.wait_for_death_status(&exits);
    stage.wait_for_death_status(&killed);
    let how =
        |code, signal| move |item: &PaneItem| item.dead.is_some_and(|d| (d.exit_code, d.signal) == (code, signal));
    let item = stage.wait_for_pane("an exit code", &exits, how(Some(7), None));
    assert!(is_without_agent(&item), "the dead have no agent: {item:?}");
    let item = stage.wait_for_pane("a signal", &killed, how(None, Some(9)));
    assert!(is_without_agent(&item), "the dead have no agent: {item:?}");
    stage.tmux.run(&["respawn-pane", "-t", &exits, &format!("exec {claude} -c {READ_LOOP}")]);
    let revived = stage.wait_for_agent("claude", &exits);
    assert_eq!(revived.dead, None);
    assert_ne!(revived.runtime_id, first.runtime_id);
}
