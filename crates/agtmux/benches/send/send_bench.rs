//! The agent, and the three ways to give it a text.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::agents::{self, Agent, Launch};
use crate::install::install;
use crate::options::Size;
use crate::room::{Plan, Room};
use crate::until;
use crate::words::{Mode, Scene, Shown};

const STEP_TIMEOUT: Duration = Duration::from_secs(45);

fn claude() -> &'static dyn Agent {
    agents::ALL[0]
}

/// Where its program is, or why there is none.
pub(crate) fn programs() -> Result<Vec<PathBuf>, String> {
    let (package, version) = claude().package();
    install(claude().registry(), package, version).map(|installed| installed.programs)
}

/// A text of this size, unlike all others.
pub(crate) fn text(kind: &str, n: usize, size: usize) -> String {
    let mut text = format!("{kind} {n}:");
    let mut line = text.len();
    let mut word = n * 31 + kind.len();
    while text.len() < size {
        word = (word * 7919 + 13) % 99_991;
        let next = format!("w{word}");
        let blank = if line > 60 { '\n' } else { ' ' };
        line = if line > 60 { 0 } else { line + next.len() + 1 };
        text.push(blank);
        text += &next;
    }
    text
}

pub(crate) struct SendBench {
    room: Room,
}

/// One send: how long the command took, and what it says of itself.
pub(crate) struct BenchSend {
    pub(crate) wall: Duration,
    pub(crate) verified: String,
    pub(crate) by: String,
}

impl SendBench {
    pub(crate) fn start(programs: &[PathBuf], mode: Mode) -> Self {
        let agent = claude();
        let room = Room::open(&Plan { agent, programs, mode, trusted: true, size: Size(120, 40), keeps: false });
        room.launch(agent, &Launch::Plain);
        let ready = agent.mark(Scene::Ready).expect("it has one");
        until(STEP_TIMEOUT, || ready.holds(&room.look()).then_some(())).expect("it starts");
        let stage = Self { room };
        stage.wait_until_idle();
        stage
    }

    /// The command, as a script would use it.
    pub(crate) fn send(&self, text: &str) -> BenchSend {
        let mut command = self.room.agtmux();
        command.args(["send", &self.room.pane, "--json", "--text", text]).stdin(Stdio::null());
        let begun = Instant::now();
        let output = command.output().expect("agtmux can be started");
        let wall = begun.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let word = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        self.wait_for_arrival(text);
        BenchSend { wall, verified: word("verified"), by: word("by") }
    }

    /// As people do it: a paste, a wait that is thought to be long enough, Enter. Nothing tells whether it was taken.
    pub(crate) fn send_by_hand(&self, text: &str, wait: Duration) -> Duration {
        let begun = Instant::now();
        self.paste(text);
        std::thread::sleep(wait);
        self.room.press("Enter");
        let wall = begun.elapsed();
        self.wait_for_arrival(text);
        wall
    }

    /// From Enter to the moment in which the model is asked, which is after its own hook has run.
    pub(crate) fn measure_agent(&self, text: &str) -> Duration {
        self.paste(text);
        std::thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        self.room.press("Enter");
        self.wait_for_arrival(text) - begun
    }

    /// Through a file: what is large is no argument.
    fn paste(&self, text: &str) {
        let file = self.room.place.home.join("typed");
        std::fs::write(&file, text).expect("the world is writable");
        self.room.server.run(&["load-buffer", "-b", "typed", &file.to_string_lossy()]);
        self.room.server.run(&["paste-buffer", "-p", "-r", "-d", "-b", "typed", "-t", &self.room.pane]);
    }

    /// When the model was asked; returns once the agent rests again.
    fn wait_for_arrival(&self, text: &str) -> Instant {
        let is_it = |said: &[String]| said.iter().any(|part| part == text);
        let found = until(STEP_TIMEOUT, || {
            let request = self
                .room
                .model
                .requests()
                .into_iter()
                .find(|request| !request.is_side_request && is_it(&request.prompt_parts))?;
            request.answer_ended.map(|_| request.at)
        });
        self.wait_until_idle();
        found.expect("the text arrives as it was sent")
    }

    fn wait_until_idle(&self) {
        let shown = || self.room.watch.told().last().map(|told| told.shown);
        let rests = || matches!(shown(), Some(Shown::Idle | Shown::Completed));
        until(STEP_TIMEOUT, || rests().then_some(())).expect("it comes to rest");
        // Not only agtmux must think so.
        let at_work = |screen: &str| screen.contains("esc to interrupt");
        until(STEP_TIMEOUT, || (!at_work(&self.room.look().screen)).then_some(())).expect("it comes to rest");
    }
}
