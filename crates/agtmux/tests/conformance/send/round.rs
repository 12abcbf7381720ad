//! One session of one agent, and what is sent to it.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::model::Request;
use serde_json::Value;

use super::tally::Tally;
use super::texts::{Kind, Sample, is_taken, sample};
use crate::agents::{Agent, Launch};
use crate::drive::{Driver, Lost};
use crate::options::Size;
use crate::room::{Plan, Room};
use crate::until;
use crate::words::{Mode, Scene, Shown};

/// How long an agent gets to ask the model, and to be at rest again.
const SOON: Duration = Duration::from_secs(60);

pub(super) struct Round<'a> {
    pub(super) agent: &'static dyn Agent,
    pub(super) programs: &'a [PathBuf],
    pub(super) mode: Mode,
}

impl Round<'_> {
    pub(super) fn play(&self, numbers: &[usize], tally: &mut Tally) {
        let room = Room::open(&self.plan());
        let driver = Driver { agent: self.agent, room: &room, mode: self.mode, recorder: None };
        if let Err(Lost(why)) = driver.start(&Launch::Plain) {
            return tally.faults.push(format!("{} does not start: {why}", self.agent.name()));
        }
        let mut prompts = Vec::new();
        for number in numbers {
            let sample = sample(*number);
            if let Err(why) = self.try_one(&room, &sample, tally) {
                let shown = room.look().screen;
                tally.faults.push(format!("text {number}: {why}; the screen:\n{}", shown.trim_end()));
                if self.comes_to_rest(&room).is_err() {
                    return;
                }
                continue;
            }
            prompts.push(sample);
        }
        // What was sent twice may come late.
        for sample in prompts.iter().filter(|sample| sample.kind == Kind::Prompt) {
            let times = asked(&room).iter().filter(|request| self.holds(request, &sample.text)).count();
            if times != 1 {
                tally.faults.push(format!("arrived {times} times: {}", start(&sample.text)));
            }
        }
    }

    pub(super) fn plan(&self) -> Plan<'_> {
        Plan {
            agent: self.agent,
            programs: self.programs,
            mode: self.mode,
            trusted: true,
            size: Size(120, 40),
            keeps: false,
        }
    }

    fn try_one(&self, room: &Room, sample: &Sample, tally: &mut Tally) -> Result<(), String> {
        if self.keeps_commands() && sample.kind == Kind::Slash {
            return self.is_kept(room, sample, tally);
        }
        let said = send(room, &sample.text)?;
        tally.count(&said);
        if self.agent.name() == "aider" && sample.kind == Kind::Bang {
            self.declines(room)?;
        }
        match sample.kind {
            Kind::Prompt => self.arrives(room, &sample.text)?,
            Kind::Bang | Kind::Slash => self.is_shown(room, sample)?,
        }
        self.comes_to_rest(room)
    }

    /// aider asks what to do with what a command printed.
    fn declines(&self, room: &Room) -> Result<(), String> {
        let asks = || room.look().screen.trim_end().ends_with("(Y)es/(N)o [Yes]:");
        until(SOON, || asks().then_some(())).ok_or("it does not ask about the output")?;
        room.type_text("n");
        room.press("Enter");
        Ok(())
    }

    /// Codex says that it knows no such command, and may leave it in its box.
    fn keeps_commands(&self) -> bool {
        self.agent.name() == "codex"
    }

    /// Whether it stands there still is what is said. Enter was pressed once: it would only say so again.
    fn is_kept(&self, room: &Room, sample: &Sample, tally: &mut Tally) -> Result<(), String> {
        let stood = match send(room, &sample.text) {
            Err(told) if told.contains("left the text in its input box") => {
                tally.kept += 1;
                1
            }
            Err(told) => return Err(told),
            Ok(said) => {
                tally.count(&said);
                0
            }
        };
        let screen = room.look().screen;
        let command = sample.text.split(' ').next().unwrap_or_default();
        let times = screen.matches(&format!("Unrecognized command '{command}'")).count();
        let stands = screen.matches(&sample.text).count();
        if (times, stands) != (1, stood) {
            return Err(format!("it said so {times} times, and {stands} stand in the box where {stood} should"));
        }
        if stood == 0 {
            return Ok(());
        }
        let cleared = room.agtmux().args(["send", &room.pane, "--key", "C-c"]).output();
        if !cleared.is_ok_and(|output| output.status.success()) {
            return Err("the box cannot be cleared".into());
        }
        until(SOON, || (!room.look().screen.contains(&sample.text)).then_some(()))
            .ok_or("the box stays full".to_owned())
    }

    /// Once, and as it was sent.
    fn arrives(&self, room: &Room, text: &str) -> Result<(), String> {
        let is_it = |request: &Request| self.holds(request, text) && request.ended.is_some();
        if until(SOON, || asked(room).iter().any(is_it).then_some(())).is_some() {
            return Ok(());
        }
        let Some(request) = asked(room).pop() else { return Err("the model was not asked".into()) };
        let nearest = request.said.iter().max_by_key(|part| common(part, text)).cloned().unwrap_or_default();
        let at = common(&nearest, text);
        let (sent, got) = (around(text, at), around(&nearest, at));
        Err(format!("{} bytes sent, {} came, different at {at}: {sent:?} became {got:?}", text.len(), nearest.len()))
    }

    /// What it printed, or that it knows no such command, or that it was a prompt after all.
    fn is_shown(&self, room: &Room, sample: &Sample) -> Result<(), String> {
        let words: Vec<String> = match sample.kind {
            Kind::Bang => {
                let number: u32 = sample.text.chars().filter(char::is_ascii_digit).collect::<String>()[4..]
                    .parse()
                    .map_err(|_| "a number is missing".to_owned())?;
                vec![format!("bang{}", 1000 + number)]
            }
            _ => vec![sample.text.split(' ').next().unwrap_or_default().trim_start_matches('/').to_owned()],
        };
        let shows = || words.iter().all(|word| room.look().screen.contains(word.as_str()));
        let as_prompt = || asked(room).iter().any(|request| self.holds(request, &sample.text));
        until(SOON, || (shows() || as_prompt()).then_some(()))
            .ok_or_else(|| format!("nothing is seen of {}", sample.text))
    }

    fn holds(&self, request: &Request, text: &str) -> bool {
        request.said.iter().any(|part| is_taken(self.agent.name(), part, text))
    }

    fn comes_to_rest(&self, room: &Room) -> Result<(), String> {
        let shown = || room.watch.told().last().map(|told| told.shown);
        let rests = || matches!(shown(), Some(Shown::Idle | Shown::Completed | Shown::Error));
        // A turn that is over in no time may not have been noticed: then the screen must tell.
        let done = self.agent.mark(Scene::Done).filter(|_| self.agent.name() == "aider");
        let looks_done = || done.as_ref().is_none_or(|mark| mark.holds(&room.look()));
        let came = until(SOON, || (rests() && looks_done()).then_some(()));
        came.ok_or_else(|| format!("it does not come to rest: {:?}", shown()))
    }
}

/// Through the command, as a person or a script would.
pub(super) fn send(room: &Room, text: &str) -> Result<Value, String> {
    let mut command = room.agtmux();
    command.args(["send", &room.pane, "--json"]);
    // Both ways are used: what fits into an argument, and what does not.
    let by_argument = text.len() < 4000;
    if by_argument {
        command.arg(format!("--text={text}"));
    } else {
        command.arg("--stdin");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take().filter(|_| !by_argument) {
        stdin.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("agtmux send {:?}: {told}", start(text)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// What was asked of the model that is no side business.
pub(super) fn asked(room: &Room) -> Vec<Request> {
    room.model.requests().into_iter().filter(|request| !request.side).collect()
}

/// So many bytes are the same.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

fn around(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(20));
    let to = text.floor_char_boundary((at + 40).min(text.len()));
    text[from.min(to)..to].to_owned()
}

fn start(text: &str) -> String {
    text.chars().take(60).collect()
}
