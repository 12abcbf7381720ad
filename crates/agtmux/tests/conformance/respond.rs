//! Whether `agtmux respond` answers the dialogs of the real agents, and only those that were meant.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::agents::{self, Agent, Launch, Reply};
use super::drive::Driver;
use super::options::{Size, Version};
use super::room::{Plan, Room, write_tool};
use super::run::provide;
use super::until;
use super::words::{Mode, Scene};

#[path = "respond_bridge.rs"]
mod bridge;
#[path = "respond_more.rs"]
mod more;

/// Tried in the long form only.
pub(crate) const OTHERS: [&str; 3] = ["copilot", "qwen", "aider"];

/// Some take half a minute for a turn on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// The agents whose options stand in one row.
const IN_A_ROW: [&str; 1] = ["opencode"];

/// The agents whose options have letters instead of numbers.
const LETTERS: [&str; 1] = ["aider"];

/// The error says why it could not be tried.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == name).expect("a known agent");
    let (installed, _) = provide(agent, Version::Pinned)?;
    in_room(agent, &installed.programs, &Launch::Plain, &core);
    if std::env::var_os("AGTMUX_SOAK").is_some() {
        more::check(agent, &installed.programs);
    }
    Ok(())
}

/// The same over HTTP, in the words of the tmux-bridge document, which knows Claude only.
pub(crate) fn check_bridge() -> Result<(), String> {
    let agent = agents::ALL.into_iter().find(|known| known.name() == "claude").expect("a known agent");
    let (installed, _) = provide(agent, Version::Pinned)?;
    in_room(agent, &installed.programs, &Launch::Plain, &bridge::answers);
    Ok(())
}

/// One life of the agent, in which it is ready.
fn in_room(agent: &'static dyn Agent, programs: &[PathBuf], launch: &Launch, play: &dyn Fn(&Respondent<'_>)) {
    in_shell(agent, programs, true, &|room| {
        room.driver.start(launch).unwrap_or_else(|lost| panic!("{}", lost.0));
        play(room);
    });
}

/// A shell in which it can be started.
fn in_shell(agent: &'static dyn Agent, programs: &[PathBuf], trusted: bool, play: &dyn Fn(&Respondent<'_>)) {
    let mode = if agent.modes().contains(&Mode::Hooks) { Mode::Hooks } else { Mode::Bare };
    let room = Room::open(&Plan { agent, programs, mode, trusted, size: Size(120, 40), keeps: false });
    let driver = Driver { agent, room: &room, mode, recorder: None };
    play(&Respondent { driver });
}

struct Respondent<'a> {
    driver: Driver<'a>,
}

impl Respondent<'_> {
    fn room(&self) -> &Room {
        self.driver.room
    }

    /// Prompts, and returns what it asks once agtmux knows of it.
    #[track_caller]
    fn asks(&self, prompt: &str, about: &str) -> Value {
        // What was answered before must be over: the same may be asked again.
        until(SOON, || self.dialog().is_null().then_some(())).expect("it asks nothing");
        // A prompt in the middle of a turn is put in a queue, and the model gets it in another shape.
        until(SOON, || self.rests().then_some(()));
        self.driver.submit(prompt, |text| self.room().paste(text)).unwrap_or_else(|lost| panic!("{}", lost.0));
        self.asked(about)
    }

    #[track_caller]
    fn asked(&self, about: &str) -> Value {
        let asked = until(SOON, || Some(self.dialog()).filter(|dialog| dialog.to_string().contains(about)));
        asked.unwrap_or_else(|| panic!("it does not ask about {about}; {}", self.driver.screen()))
    }

    fn dialog(&self) -> Value {
        self.item()["dialog"].clone()
    }

    fn rests(&self) -> bool {
        !matches!(self.item()["state"].as_str(), Some("running" | "waiting_approval" | "waiting_input"))
    }

    /// What agtmux lists of it.
    fn item(&self) -> Value {
        let (_, said, _) = self.room().ask(&["list", "panes", "--json"]);
        let list: Value = serde_json::from_str(&said).unwrap_or_default();
        list["items"][0].clone()
    }

    /// Answers, and gives back what agtmux says of that.
    #[track_caller]
    fn answers(&self, answer: &[&str]) -> Value {
        let (worked, said, error) = self.respond(answer);
        assert!(worked, "{answer:?}: {error}{said}\n{}", self.driver.screen());
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["verified"], "confirmed", "{answer:?}: {said}");
        said
    }

    fn respond(&self, answer: &[&str]) -> (bool, String, String) {
        self.room().ask(&[&["respond", &self.room().pane, "--json"], answer].concat())
    }

    fn has(&self, file: &str) -> bool {
        self.room().place.project.join(file).exists()
    }

    #[track_caller]
    fn shows(&self, scene: Scene) {
        self.driver.wait_for_scene(scene).unwrap_or_else(|lost| panic!("{}", lost.0));
    }

    /// The model was told.
    #[track_caller]
    fn hears(&self, text: &str) {
        let told = || self.room().model.requests().iter().rev().take(4).any(|request| request.body.contains(text));
        let heard = until(SOON, || told().then_some(()));
        assert!(heard.is_some(), "the model was not told `{text}`; {}", self.driver.screen());
    }

    #[track_caller]
    fn makes(&self, file: &str) {
        until(SOON, || self.has(file).then_some(())).unwrap_or_else(|| panic!("no {file}; {}", self.driver.screen()));
    }
}

fn core(agent: &Respondent<'_>) {
    agent.asks("RUN touch approved.txt", "approved.txt");
    let said = agent.answers(&["approve"]);
    assert!(said["dialog"].to_string().contains("approved.txt"), "{said}");
    agent.makes("approved.txt");
    swapped(agent);
    if !LETTERS.contains(&agent.driver.agent.name()) {
        option(agent);
    }
    if agent.driver.agent.name() == "claude" {
        itself(agent);
    }
}

/// What was asked first has been answered by somebody else, and something else is asked since.
fn swapped(agent: &Respondent<'_>) {
    let first = agent.asks("RUN touch first.txt", "first.txt");
    agent.driver.press_all(agent.driver.agent.keys(Reply::Deny));
    agent.shows(Scene::Denied);
    let second = agent.asks("RUN touch second.txt", "second.txt");
    let fingerprint = first["fingerprint"].as_str().expect("it has one");
    let (worked, _, error) = agent.respond(&["approve", "--if-dialog", fingerprint]);
    assert!(!worked && error.contains("that dialog is not open any more"), "{error}");
    let (worked, _, error) = agent.room().ask(&["send", &agent.room().pane, "--text", "1"]);
    assert!(!worked && error.contains("agtmux respond"), "{error}");
    // Anything that was typed would have answered it.
    agent.answers(&["deny", "--if-dialog", second["fingerprint"].as_str().expect("it has one")]);
    agent.shows(Scene::Denied);
    assert!(!agent.has("first.txt") && !agent.has("second.txt"));
}

/// By its number, wherever the selection stands. It opens what can be opened without asking any more, so it comes last.
fn option(agent: &Respondent<'_>) {
    let in_a_row = IN_A_ROW.contains(&agent.driver.agent.name());
    agent.asks("RUN touch chosen.txt", "chosen.txt");
    let before = agent.room().coloured();
    agent.driver.press_all(&[if in_a_row { "Left" } else { "Down" }]);
    until(SOON, || (agent.room().coloured() != before).then_some(())).expect("the selection moves");
    let said = agent.answers(&["2"]);
    if in_a_row {
        assert!(said["asks_now"].to_string().contains("Always allow"), "{said}");
        assert!(!agent.has("chosen.txt"));
        agent.answers(&["approve"]);
    }
    agent.makes("chosen.txt");
}

/// What the agent's own shell may do: look, but not act. Also what has left its parents behind.
const ITSELF: &str = r#"#!/bin/sh
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

fn itself(agent: &Respondent<'_>) {
    agent.room().hold_agents_off();
    write_tool(agent.room(), ITSELF);
    agent
        .driver
        .submit("DO ./free-tool 1", |text| agent.room().paste(text))
        .unwrap_or_else(|lost| panic!("{}", lost.0));
    for who in ["child", "left"] {
        agent.makes(&format!("free-tool.{who}-end"));
        let read = |what: &str| {
            let path = agent.room().place.project.join(format!("free-tool.{who}-{what}"));
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
