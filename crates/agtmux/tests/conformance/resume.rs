//! `agtmux resume` on the real agents: what was said before they ended is there again.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::agents::{self, LaunchMode};
use super::driver::{DriveError, ScenarioDriver};
use super::options::{AgentVersionChoice, PaneSize};
use super::sandbox::{AgentSandbox, SandboxOptions};
use super::states::EvidenceMode;
use super::{poll_until, run, scenario};

/// How long an agent may take to show its past, and to say which session it is.
const RESUME_TIMEOUT: Duration = Duration::from_secs(45);

const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// What it was told before it ended: the model answers with the words.
const EARLIER_TEXT: &str = "hello there";

const TRUST_HOOKS: &str = "2. Trust all and continue";

/// The inner one is why it went wrong; the outer one, why it could not be tried.
pub(crate) fn check_resume(name: &str) -> Result<Result<(), String>, String> {
    let Some(agent) = agents::ALL.into_iter().find(|agent| agent.name() == name) else {
        return Ok(Err(format!("there is no agent '{name}'")));
    };
    let (installed, _) = run::install_agent(agent, AgentVersionChoice::Pinned)?;
    let programs = &installed.program_dirs;
    let (mode, size) = (EvidenceMode::Hooks, PaneSize(120, 40));
    let room = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: programs,
        mode,
        trusted: true,
        size,
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &room, mode, recorder: None };
    Ok(run_resume(&driver).map_err(|DriveError(why)| why))
}

fn run_resume(driver: &ScenarioDriver<'_>) -> Result<(), DriveError> {
    driver.start(&LaunchMode::Plain)?;
    run_scenario(driver, "complete")?;
    let before = wait_for_session(driver, None, RESUME_TIMEOUT)?;
    run_scenario(driver, "exit")?;
    let runtime = before["runtime_id"].as_str().unwrap_or_default().to_owned();
    // As a person would, who sees nothing of what was there.
    driver.sandbox.type_text("clear");
    driver.sandbox.press("Enter");
    poll_until(RESUME_TIMEOUT, || (!driver.sandbox.capture().screen.contains(EARLIER_TEXT)).then_some(()));
    let resumed = stdout_of(driver.sandbox.agtmux_command().args(["resume", &format!("runtime:{runtime}"), "--json"]))?;
    let resumed: Value = serde_json::from_str(&resumed).map_err(|error| DriveError(format!("{error} in {resumed}")))?;
    let mut trusted = false;
    let shown = poll_until(RESUME_TIMEOUT, || {
        let screen = driver.sandbox.capture().screen;
        // Codex was started with a word for its hooks before; nobody types that for it now.
        if screen.contains(TRUST_HOOKS) && !trusted {
            trusted = screen.contains("› 2. ");
            // A key that comes while it draws may be lost: the next one waits until this one is seen.
            driver.sandbox.press(if trusted { "Enter" } else { "Down" });
            poll_until(SHORT_TIMEOUT, || (driver.sandbox.capture().screen != screen).then_some(()));
        }
        screen.contains(EARLIER_TEXT).then_some(())
    });
    shown.ok_or_else(|| {
        DriveError(format!("`{EARLIER_TEXT}` did not come back: {resumed}\n{}", driver.sandbox.capture().screen))
    })?;
    let session = before["agent_id"].as_str();
    let after = wait_for_session(driver, session, SHORT_TIMEOUT).or_else(|_| {
        // Copilot says which session it is with its next turn.
        run_scenario(driver, "complete")?;
        wait_for_session(driver, session, RESUME_TIMEOUT)
    })?;
    let lives = after["runtime_id"].as_str();
    if lives == Some(&runtime) || lives != resumed["resumed_runtime_id"].as_str() {
        return Err(DriveError(format!("{lives:?} lives there now, but {resumed} was told")));
    }
    Ok(())
}

fn run_scenario(driver: &ScenarioDriver<'_>, name: &str) -> Result<(), DriveError> {
    let all = scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == name).ok_or_else(|| DriveError(format!("no {name}")))?;
    match driver.run_scenario(scenario, &LaunchMode::Plain) {
        (_, Some(lost)) => Err(lost),
        (_, None) => Ok(()),
    }
}

/// The pane once its agent has told which session it is, or that it is this one.
fn wait_for_session(driver: &ScenarioDriver<'_>, wanted: Option<&str>, within: Duration) -> Result<Value, DriveError> {
    let mut seen = String::new();
    let found = poll_until(within, || {
        seen = stdout_of(driver.sandbox.agtmux_command().args(["list", "panes", "--json"])).ok()?;
        let listing: Value = serde_json::from_str(&seen).ok()?;
        let item = listing["items"].as_array()?.iter().find(|item| item["agent_id"].is_string())?.clone();
        wanted.is_none_or(|wanted| item["agent_id"] == wanted).then_some(item)
    });
    found.ok_or_else(|| DriveError(format!("it did not say that it is the session {wanted:?}: {seen}")))
}

fn stdout_of(command: &mut Command) -> Result<String, DriveError> {
    let done = command.output().map_err(|error| DriveError(error.to_string()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(DriveError(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)))),
    }
}
