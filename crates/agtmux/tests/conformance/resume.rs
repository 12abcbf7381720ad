//! `agtmux resume` on the real agents: what was said before they ended is there again.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::agents::{self, Launch};
use super::drive::{Driver, Lost};
use super::options::{Size, Version};
use super::room::{Plan, Room};
use super::words::Mode;
use super::{run, scenario, until};

/// How long an agent may take to show its past, and to say which session it is.
const BACK: Duration = Duration::from_secs(45);

const AT_ONCE: Duration = Duration::from_secs(5);

/// What it was told before it ended: the model answers with the words.
const SAID: &str = "hello there";

const TRUST_HOOKS: &str = "2. Trust all and continue";

/// The inner one is why it went wrong; the outer one, why it could not be tried.
pub(crate) fn play(name: &str) -> Result<Result<(), String>, String> {
    let Some(agent) = agents::ALL.into_iter().find(|agent| agent.name() == name) else {
        return Ok(Err(format!("there is no agent '{name}'")));
    };
    let (installed, _) = run::provide(agent, Version::Pinned)?;
    let programs = &installed.programs;
    let (mode, size) = (Mode::Hooks, Size(120, 40));
    let room = Room::open(&Plan { agent, programs, mode, trusted: true, size, keeps: false });
    let driver = Driver { agent, room: &room, mode, recorder: None };
    Ok(lead(&driver).map_err(|Lost(why)| why))
}

fn lead(driver: &Driver<'_>) -> Result<(), Lost> {
    driver.start(&Launch::Plain)?;
    play_scenario(driver, "complete")?;
    let before = wait_for_session(driver, None, BACK)?;
    play_scenario(driver, "exit")?;
    let runtime = before["runtime_id"].as_str().unwrap_or_default().to_owned();
    // As a person would, who sees nothing of what was there.
    driver.room.type_text("clear");
    driver.room.press("Enter");
    until(BACK, || (!driver.room.look().screen.contains(SAID)).then_some(()));
    let resumed = output(driver.room.agtmux().args(["resume", &format!("runtime:{runtime}"), "--json"]))?;
    let resumed: Value = serde_json::from_str(&resumed).map_err(|error| Lost(format!("{error} in {resumed}")))?;
    let mut trusted = false;
    let shown = until(BACK, || {
        let screen = driver.room.look().screen;
        // Codex was started with a word for its hooks before; nobody types that for it now.
        if screen.contains(TRUST_HOOKS) && !trusted {
            trusted = screen.contains("› 2. ");
            // A key that comes while it draws may be lost: the next one waits until this one is seen.
            driver.room.press(if trusted { "Enter" } else { "Down" });
            until(AT_ONCE, || (driver.room.look().screen != screen).then_some(()));
        }
        screen.contains(SAID).then_some(())
    });
    shown.ok_or_else(|| Lost(format!("`{SAID}` did not come back: {resumed}\n{}", driver.room.look().screen)))?;
    let session = before["agent_id"].as_str();
    let after = wait_for_session(driver, session, AT_ONCE).or_else(|_| {
        // Copilot says which session it is with its next turn.
        play_scenario(driver, "complete")?;
        wait_for_session(driver, session, BACK)
    })?;
    let lives = after["runtime_id"].as_str();
    if lives == Some(&runtime) || lives != resumed["resumed_runtime_id"].as_str() {
        return Err(Lost(format!("{lives:?} lives there now, but {resumed} was told")));
    }
    Ok(())
}

fn play_scenario(driver: &Driver<'_>, name: &str) -> Result<(), Lost> {
    let all = scenario::all();
    let scenario = all.iter().find(|scenario| scenario.name == name).ok_or_else(|| Lost(format!("no {name}")))?;
    match driver.play(scenario, &Launch::Plain) {
        (_, Some(lost)) => Err(lost),
        (_, None) => Ok(()),
    }
}

/// The pane once its agent has told which session it is, or that it is this one.
fn wait_for_session(driver: &Driver<'_>, wanted: Option<&str>, within: Duration) -> Result<Value, Lost> {
    let mut seen = String::new();
    let found = until(within, || {
        seen = output(driver.room.agtmux().args(["list", "panes", "--json"])).ok()?;
        let listing: Value = serde_json::from_str(&seen).ok()?;
        let item = listing["items"].as_array()?.iter().find(|item| item["agent_id"].is_string())?.clone();
        wanted.is_none_or(|wanted| item["agent_id"] == wanted).then_some(item)
    });
    found.ok_or_else(|| Lost(format!("it did not say that it is the session {wanted:?}: {seen}")))
}

fn output(command: &mut Command) -> Result<String, Lost> {
    let done = command.output().map_err(|error| Lost(error.to_string()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(Lost(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)))),
    }
}
