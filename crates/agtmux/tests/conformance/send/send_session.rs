//! One session of one agent, and what is sent to it.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::model::ModelRequest;
use serde_json::Value;

use super::sample_texts::{SampleText, TextKind, arrived_unchanged, sample};
use super::tally::SendTally;
use crate::agents::{ConformanceAgent, LaunchMode};
use crate::driver::{DriveError, ScenarioDriver};
use crate::options::PaneSize;
use crate::poll_until;
use crate::sandbox::{AgentSandbox, SandboxOptions};
use crate::states::{EvidenceMode, ReportedState, ScreenState};

/// How long an agent gets to ask the model, and to be at rest again.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct SendSession<'a> {
    pub(super) agent: &'static dyn ConformanceAgent,
    pub(super) program_dirs: &'a [PathBuf],
    pub(super) mode: EvidenceMode,
}

impl SendSession<'_> {
    pub(super) fn send_all(&self, numbers: &[usize], tally: &mut SendTally) {
        let room = AgentSandbox::open(&self.sandbox_options());
        let driver = ScenarioDriver { agent: self.agent, sandbox: &room, mode: self.mode, recorder: None };
        if let Err(DriveError(why)) = driver.start(&LaunchMode::Plain) {
            return tally.faults.push(format!("{} does not start: {why}", self.agent.name()));
        }
        let mut prompts = Vec::new();
        for number in numbers {
            let sample = sample(*number);
            if let Err(why) = self.send_and_verify(&room, &sample, tally) {
                let shown = room.capture().screen;
                tally.faults.push(format!("text {number}: {why}; the screen:\n{}", shown.trim_end()));
                if self.wait_for_rest(&room).is_err() {
                    return;
                }
                continue;
            }
            prompts.push(sample);
        }
        // What was sent twice may come late.
        for sample in prompts.iter().filter(|sample| sample.kind == TextKind::Prompt) {
            let times =
                model_requests(&room).iter().filter(|request| self.contains_text(request, &sample.text)).count();
            if times != 1 {
                tally.faults.push(format!("arrived {times} times: {}", excerpt(&sample.text)));
            }
        }
    }

    pub(super) fn sandbox_options(&self) -> SandboxOptions<'_> {
        SandboxOptions {
            agent: self.agent,
            program_dirs: self.program_dirs,
            mode: self.mode,
            trusted: true,
            size: PaneSize(120, 40),
            save_hook_payloads: false,
        }
    }

    fn send_and_verify(&self, room: &AgentSandbox, sample: &SampleText, tally: &mut SendTally) -> Result<(), String> {
        if self.rejects_unknown_commands() && sample.kind == TextKind::Slash {
            return self.expect_rejected_command(room, sample, tally);
        }
        let said = send(room, &sample.text)?;
        tally.count(&said);
        if self.agent.name() == "aider" && sample.kind == TextKind::Bang {
            self.decline_command_output(room)?;
        }
        match sample.kind {
            TextKind::Prompt => self.expect_model_received(room, &sample.text)?,
            TextKind::Bang | TextKind::Slash => self.expect_visible_effect(room, sample)?,
        }
        self.wait_for_rest(room)
    }

    /// aider asks what to do with what a command printed.
    fn decline_command_output(&self, room: &AgentSandbox) -> Result<(), String> {
        let asks = || room.capture().screen.trim_end().ends_with("(Y)es/(N)o [Yes]:");
        poll_until(AGENT_TIMEOUT, || asks().then_some(())).ok_or("it does not ask about the output")?;
        room.type_text("n");
        room.press("Enter");
        Ok(())
    }

    /// Codex says that it knows no such command, and may leave it in its box.
    fn rejects_unknown_commands(&self) -> bool {
        self.agent.name() == "codex"
    }

    /// Whether it stands there still is what is said. Enter was pressed once: it would only say so again.
    fn expect_rejected_command(
        &self,
        room: &AgentSandbox,
        sample: &SampleText,
        tally: &mut SendTally,
    ) -> Result<(), String> {
        let stood = match send(room, &sample.text) {
            Err(told) if told.contains("left the text in its input box") => {
                tally.rejected += 1;
                1
            }
            Err(told) => return Err(told),
            Ok(said) => {
                tally.count(&said);
                0
            }
        };
        let screen = room.capture().screen;
        let command = sample.text.split(' ').next().unwrap_or_default();
        let times = screen.matches(&format!("Unrecognized command '{command}'")).count();
        let stands = screen.matches(&sample.text).count();
        if (times, stands) != (1, stood) {
            return Err(format!("it said so {times} times, and {stands} stand in the box where {stood} should"));
        }
        if stood == 0 {
            return Ok(());
        }
        let cleared = room.agtmux_command().args(["send", &room.pane, "--key", "C-c"]).output();
        if !cleared.is_ok_and(|output| output.status.success()) {
            return Err("the box cannot be cleared".into());
        }
        poll_until(AGENT_TIMEOUT, || (!room.capture().screen.contains(&sample.text)).then_some(()))
            .ok_or("the box stays full".to_owned())
    }

    /// Once, and as it was sent.
    fn expect_model_received(&self, room: &AgentSandbox, text: &str) -> Result<(), String> {
        let is_it = |request: &ModelRequest| self.contains_text(request, text) && request.answer_ended.is_some();
        if poll_until(AGENT_TIMEOUT, || model_requests(room).iter().any(is_it).then_some(())).is_some() {
            return Ok(());
        }
        let Some(request) = model_requests(room).pop() else { return Err("the model was not asked".into()) };
        let nearest = request
            .prompt_parts
            .iter()
            .max_by_key(|part| common_prefix_length(part, text))
            .cloned()
            .unwrap_or_default();
        let at = common_prefix_length(&nearest, text);
        let (sent, got) = (excerpt_around(text, at), excerpt_around(&nearest, at));
        Err(format!("{} bytes sent, {} came, different at {at}: {sent:?} became {got:?}", text.len(), nearest.len()))
    }

    /// What it printed, or that it knows no such command, or that it was a prompt after all.
    fn expect_visible_effect(&self, room: &AgentSandbox, sample: &SampleText) -> Result<(), String> {
        let words: Vec<String> = match sample.kind {
            TextKind::Bang => {
                let number: u32 = sample.text.chars().filter(char::is_ascii_digit).collect::<String>()[4..]
                    .parse()
                    .map_err(|_| "a number is missing".to_owned())?;
                vec![format!("bang{}", 1000 + number)]
            }
            _ => vec![sample.text.split(' ').next().unwrap_or_default().trim_start_matches('/').to_owned()],
        };
        let shows = || words.iter().all(|word| room.capture().screen.contains(word.as_str()));
        let as_prompt = || model_requests(room).iter().any(|request| self.contains_text(request, &sample.text));
        poll_until(AGENT_TIMEOUT, || (shows() || as_prompt()).then_some(()))
            .ok_or_else(|| format!("nothing is seen of {}", sample.text))
    }

    fn contains_text(&self, request: &ModelRequest, text: &str) -> bool {
        request.prompt_parts.iter().any(|part| arrived_unchanged(self.agent.name(), part, text))
    }

    fn wait_for_rest(&self, room: &AgentSandbox) -> Result<(), String> {
        let shown = || room.watch.state_reports().last().map(|told| told.state);
        let rests = || matches!(shown(), Some(ReportedState::Idle | ReportedState::Completed | ReportedState::Error));
        // A turn that is over in no time may not have been noticed: then the screen must tell.
        let done = self.agent.screen_pattern(ScreenState::Done).filter(|_| self.agent.name() == "aider");
        let looks_done = || done.as_ref().is_none_or(|mark| mark.matches(&room.capture()));
        let came = poll_until(AGENT_TIMEOUT, || (rests() && looks_done()).then_some(()));
        came.ok_or_else(|| format!("it does not come to rest: {:?}", shown()))
    }
}

/// Through the command, as a person or a script would.
pub(super) fn send(room: &AgentSandbox, text: &str) -> Result<Value, String> {
    let mut command = room.agtmux_command();
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
        return Err(format!("agtmux send {:?}: {told}", excerpt(text)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// What was asked of the model that is no side business.
pub(super) fn model_requests(room: &AgentSandbox) -> Vec<ModelRequest> {
    room.model.requests().into_iter().filter(|request| !request.is_side_request).collect()
}

/// So many bytes are the same.
fn common_prefix_length(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

fn excerpt_around(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(20));
    let to = text.floor_char_boundary((at + 40).min(text.len()));
    text[from.min(to)..to].to_owned()
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}
