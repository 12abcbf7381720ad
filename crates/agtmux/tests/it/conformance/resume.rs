//! Checks that `agtmux resume` restores the conversation of the real agents.

use std::process::Command;
use std::time::Duration;

use agtmux_testkit::real_agents::options::{AgentVersionChoice, PaneSize};
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, LaunchMode, poll_until};
use serde_json::Value;

use super::driver::{DriveError, ScenarioDriver};
use super::{run, scenario};

/// How long an agent may take to show its transcript and to report its session.
const RESUME_TIMEOUT: Duration = Duration::from_secs(45);

const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The prompt that is sent before the agent exits. The model repeats it in its answer.
const EARLIER_TEXT: &str = "hello there";

const TRUST_HOOKS: &str = "2. Trust all and continue";

/// Tests one agent. The outer error is the reason to skip the test; the inner error is a failure.
pub(crate) fn check_resume(name: &str) -> Result<Result<(), String>, String> {
    let Some(agent) = real_agents::ALL.into_iter().find(|agent| agent.name() == name) else {
        return Ok(Err(format!("there is no agent '{name}'")));
    };
    let (installed, _) = run::install_agent(agent, AgentVersionChoice::Pinned)?;
    let programs = &installed.program_dirs;
    let (mode, size) = (EvidenceMode::Hooks, PaneSize(120, 40));
    let sandbox = AgentSandbox::open(&SandboxOptions {
        agent,
        program_dirs: programs,
        mode,
        trusted: true,
        size,
        save_hook_payloads: false,
    });
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode, recorder: None };
    Ok(run_resume(&driver).map_err(|DriveError(why)| why))
}

fn run_resume(driver: &ScenarioDriver<'_>) -> Result<(), DriveError> {
    driver.start(&LaunchMode::Plain)?;
    run_scenario(driver, "complete")?;
    let before = wait_for_session(driver, None, RESUME_TIMEOUT)?;
    run_scenario(driver, "exit")?;
    let runtime = before["runtime_id"].as_str().unwrap_or_default().to_owned();
    // Clear the screen, so that only the resumed agent can show the old text.
    driver.sandbox.type_text("clear");
    driver.sandbox.press("Enter");
    // `clear` still runs for a moment after it has cleared the screen.
    let is_ready = poll_until(RESUME_TIMEOUT, || {
        let capture = driver.sandbox.capture();
        (!capture.screen.contains(EARLIER_TEXT) && driver.sandbox.shell_is_ready()).then_some(())
    });
    is_ready.ok_or_else(|| DriveError("the shell did not finish `clear`".to_owned()))?;
    let resumed = stdout_of(driver.sandbox.agtmux_command().args(["resume", &format!("runtime:{runtime}"), "--json"]))?;
    let resumed: Value = serde_json::from_str(&resumed).map_err(|error| DriveError(format!("{error} in {resumed}")))?;
    let mut trusted = false;
    let is_visible = poll_until(RESUME_TIMEOUT, || {
        let screen = driver.sandbox.capture().screen;
        // The resumed Codex lacks the option that trusts its hooks, so it asks.
        if screen.contains(TRUST_HOOKS) && !trusted {
            trusted = screen.contains("› 2. ");
            // A key pressed while Codex draws may be lost; wait for its effect before the next one.
            driver.sandbox.press(if trusted { "Enter" } else { "Down" });
            poll_until(SHORT_TIMEOUT, || (driver.sandbox.capture().screen != screen).then_some(()));
        }
        screen.contains(EARLIER_TEXT).then_some(())
    });
    is_visible.ok_or_else(|| {
        DriveError(format!(
            "the screen does not show `{EARLIER_TEXT}` after the resume: {resumed}\n{}",
            driver.sandbox.capture().screen
        ))
    })?;
    let session = before["agent_id"].as_str();
    let after = wait_for_session(driver, session, SHORT_TIMEOUT).or_else(|_| {
        // Copilot reports its session only with the next turn.
        run_scenario(driver, "complete")?;
        wait_for_session(driver, session, RESUME_TIMEOUT)
    })?;
    let current_runtime = after["runtime_id"].as_str();
    if current_runtime == Some(&runtime) || current_runtime != resumed["resumed_runtime_id"].as_str() {
        return Err(DriveError(format!("the pane has runtime {current_runtime:?}, but resume returned {resumed}")));
    }
    Ok(())
}

fn run_scenario(driver: &ScenarioDriver<'_>, name: &str) -> Result<(), DriveError> {
    let all = scenario::all();
    let scenario =
        all.iter().find(|scenario| scenario.name == name).ok_or_else(|| DriveError(format!("no scenario {name}")))?;
    match driver.run_scenario(scenario, &LaunchMode::Plain) {
        (_, Some(error)) => Err(error),
        (_, None) => Ok(()),
    }
}

/// Waits until the agent has reported the wanted session, or any session if none is wanted. Returns the list item.
fn wait_for_session(
    driver: &ScenarioDriver<'_>,
    wanted_session: Option<&str>,
    within: Duration,
) -> Result<Value, DriveError> {
    let mut output_text = String::new();
    let found = poll_until(within, || {
        output_text = stdout_of(driver.sandbox.agtmux_command().args(["list", "panes", "--json"])).ok()?;
        let listing: Value = serde_json::from_str(&output_text).ok()?;
        let item = listing["items"].as_array()?.iter().find(|item| item["agent_id"].is_string())?.clone();
        wanted_session.is_none_or(|wanted_session| item["agent_id"] == wanted_session).then_some(item)
    });
    found.ok_or_else(|| DriveError(format!("the agent did not report session {wanted_session:?}: {output_text}")))
}

fn stdout_of(command: &mut Command) -> Result<String, DriveError> {
    let done = command.output().map_err(|error| DriveError(error.to_string()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(DriveError(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)))),
    }
}
