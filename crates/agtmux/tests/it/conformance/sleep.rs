//! The machine sleeps while a real agent runs a tool. Every process is stopped and continued.

use std::iter;
use std::time::{Duration, Instant};

use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::{EvidenceMode, ReportedState};
use agtmux_testkit::real_agents::{self, LaunchMode, poll_until};
use agtmux_testkit::{process, skip, skip_outside_soak, wait_until};
use rustix::process::Signal;

use super::driver::ScenarioDriver;
use super::run::install_agent;

const SOON: Duration = Duration::from_secs(45);
const SLEEP: Duration = Duration::from_secs(15);
/// How long the state is followed after the sleep. The tool runs longer than that.
const AFTER: Duration = Duration::from_secs(10);
const TOOL: &str = "DO ./free-tool 60";

#[track_caller]
fn check(name: &str, mode: EvidenceMode) {
    if skip_outside_soak() {
        return;
    }
    let agent = *real_agents::ALL.iter().find(|agent| agent.name() == name).expect("a known agent");
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&why),
    };
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: &installed.program_dirs,
        mode,
        trusted: true,
        size: PaneSize(120, 40),
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode, recorder: None };
    driver.start(&LaunchMode::Plain).expect("the agent starts");
    let state = || sandbox.watch.state_reports().last().map_or(ReportedState::NoAgent, |report| report.state);
    // The screen shows the end of an earlier turn.
    driver.submit("SAY hello there", |text| sandbox.paste(text)).expect("submitted");
    let ended = || {
        matches!(state(), ReportedState::Completed | ReportedState::Idle)
            && sandbox.capture().screen.contains("hello there")
    };
    poll_until(SOON, || ended().then_some(())).expect("the first turn ends");
    driver.submit(TOOL, |text| sandbox.paste(text)).expect("submitted");
    let began = sandbox.workspace.project.join("free-tool.began");
    poll_until(SOON, || (began.exists() && state() == ReportedState::Running).then_some(())).expect("the tool runs");
    let before = sandbox.watch.state_reports().len();
    sleep_machine(&sandbox);
    poll_until(AFTER, || (sandbox.watch.state_reports().len() > before).then_some(()));
    let after = &sandbox.watch.state_reports()[before..];
    assert!(
        after.is_empty(),
        "{name} {}: {after:?}\n{}\n{}",
        mode.as_str(),
        sandbox.explain_output(),
        sandbox.capture().screen
    );
}

/// Stops parents before their children, and continues children before their parents. A shell that sees its child stop
/// takes the terminal back, which a sleeping machine does not do.
fn sleep_machine(sandbox: &AgentSandbox) {
    let mut pids = sandbox.world().processes();
    pids.sort_by_cached_key(|pid| depth(*pid));
    for pid in &pids {
        process::signal(*pid, Signal::STOP);
        wait_until("the process to stop", SOON, || is_at_rest(pid));
    }
    let slept = Instant::now();
    wait_until("the end of the sleep", SOON, || slept.elapsed() >= SLEEP);
    pids.iter().rev().for_each(|pid| {
        process::signal(*pid, Signal::CONT);
    });
}

/// The number of ancestors. Pids do not tell: they start again at a low number after the highest one.
fn depth(pid: u32) -> usize {
    iter::successors(process::parent(pid), |pid| process::parent(*pid)).count()
}

/// Whether the process is stopped. A client that the daemon had just started may have ended instead.
fn is_at_rest(pid: &u32) -> bool {
    process::is_stopped(*pid) || !process::is_alive(*pid)
}

#[test]
fn claude_with_hooks_keeps_running() {
    check("claude", EvidenceMode::Hooks);
}

#[test]
fn claude_without_hooks_keeps_running() {
    check("claude", EvidenceMode::NoHooks);
}

#[test]
fn codex_with_hooks_keeps_running() {
    check("codex", EvidenceMode::Hooks);
}

#[test]
fn codex_without_hooks_keeps_running() {
    check("codex", EvidenceMode::NoHooks);
}
