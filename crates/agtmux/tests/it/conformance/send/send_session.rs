//! Sends texts to one session of an agent and verifies each one.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::model::ModelRequest;
use agtmux_testkit::real_agents::options::PaneSize;
use agtmux_testkit::real_agents::poll_until;
use agtmux_testkit::real_agents::sandbox::{AgentSandbox, SandboxOptions};
use agtmux_testkit::real_agents::states::{EvidenceMode, ReportedState, ScreenState};
use agtmux_testkit::real_agents::{ConformanceAgent, LaunchMode};
use serde_json::Value;

use super::sample_texts::{SampleText, TextKind, arrived_unchanged, sample};
use super::tally::SendTally;
use crate::conformance::driver::{DriveError, ScenarioDriver};

/// How long an agent may take to call the model and to come to rest.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct SendSession<'a> {
    pub(super) agent: &'static dyn ConformanceAgent,
    pub(super) program_dirs: &'a [PathBuf],
    pub(super) mode: EvidenceMode,
}

impl SendSession<'_> {
    pub(super) fn send_all(&self, numbers: &[usize], tally: &mut SendTally) {
        let sandbox = AgentSandbox::open(&self.sandbox_options());
        let driver = ScenarioDriver { agent: self.agent, sandbox: &sandbox, mode: self.mode, recorder: None };
        if let Err(DriveError(why)) = driver.start(&LaunchMode::Plain) {
            return tally.faults.push(format!("{} does not start: {why}", self.agent.name()));
        }
        let mut prompts = Vec::new();
        for number in numbers {
            let sample = sample(*number);
            if let Err(why) = self.send_and_verify(&sandbox, &sample, tally) {
                let screen = sandbox.capture().screen;
                tally.faults.push(format!("text {number}: {why}; the screen:\n{}", screen.trim_end()));
                if self.wait_for_rest(&sandbox).is_err() {
                    return;
                }
                continue;
            }
            prompts.push(sample);
        }
        // A duplicate may arrive late, so count at the end.
        for sample in prompts.iter().filter(|sample| sample.kind == TextKind::Prompt) {
            let times =
                model_requests(&sandbox).iter().filter(|request| self.contains_text(request, &sample.text)).count();
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

    fn send_and_verify(
        &self,
        sandbox: &AgentSandbox,
        sample: &SampleText,
        tally: &mut SendTally,
    ) -> Result<(), String> {
        if self.rejects_unknown_commands() && sample.kind == TextKind::Slash {
            return self.expect_rejected_command(sandbox, sample, tally);
        }
        let result = send(sandbox, &sample.text)?;
        tally.count(&result);
        if self.agent.name() == "aider" && sample.kind == TextKind::Bang {
            self.decline_command_output(sandbox)?;
        }
        match sample.kind {
            TextKind::Prompt => self.expect_model_received(sandbox, &sample.text)?,
            TextKind::Bang | TextKind::Slash => self.expect_visible_effect(sandbox, sample)?,
        }
        self.wait_for_rest(sandbox)
    }

    /// aider asks whether to add the output of a command to the chat.
    fn decline_command_output(&self, sandbox: &AgentSandbox) -> Result<(), String> {
        let asks = || sandbox.capture().screen.trim_end().ends_with("(Y)es/(N)o [Yes]:");
        poll_until(AGENT_TIMEOUT, || asks().then_some(())).ok_or("aider does not ask about the output")?;
        sandbox.type_text("n");
        sandbox.press("Enter");
        Ok(())
    }

    /// Codex rejects unknown commands and may leave the text in its input box.
    fn rejects_unknown_commands(&self) -> bool {
        self.agent.name() == "codex"
    }

    /// Checks that the result says whether the text is still in the box, and that Enter was pressed only once.
    fn expect_rejected_command(
        &self,
        sandbox: &AgentSandbox,
        sample: &SampleText,
        tally: &mut SendTally,
    ) -> Result<(), String> {
        let expected_copies = match send(sandbox, &sample.text) {
            Err(message) if message.contains("left it in the input box") => {
                tally.rejected += 1;
                1
            }
            Err(message) => return Err(message),
            Ok(result) => {
                tally.count(&result);
                0
            }
        };
        let screen = sandbox.capture().screen;
        let command = sample.text.split(' ').next().unwrap_or_default();
        let times = screen.matches(&format!("Unrecognized command '{command}'")).count();
        let copies = screen.matches(&sample.text).count();
        if (times, copies) != (1, expected_copies) {
            return Err(format!(
                "the error appears {times} times; the box has {copies} copies of the text instead of {expected_copies}"
            ));
        }
        if expected_copies == 0 {
            return Ok(());
        }
        let cleared = sandbox.agtmux_command().args(["send", &sandbox.pane, "--key", "C-c"]).output();
        if !cleared.is_ok_and(|output| output.status.success()) {
            return Err("the input box cannot be cleared".into());
        }
        poll_until(AGENT_TIMEOUT, || (!sandbox.capture().screen.contains(&sample.text)).then_some(()))
            .ok_or("the text stays in the input box".to_owned())
    }

    /// Waits until the model has received the text unchanged and answered it.
    fn expect_model_received(&self, sandbox: &AgentSandbox, text: &str) -> Result<(), String> {
        let is_this_request =
            |request: &ModelRequest| self.contains_text(request, text) && request.answer_ended.is_some();
        if poll_until(AGENT_TIMEOUT, || model_requests(sandbox).iter().any(is_this_request).then_some(())).is_some() {
            return Ok(());
        }
        let Some(request) = model_requests(sandbox).pop() else { return Err("the model received no request".into()) };
        let nearest = request
            .prompt_parts
            .iter()
            .max_by_key(|part| common_prefix_length(part, text))
            .cloned()
            .unwrap_or_default();
        let at = common_prefix_length(&nearest, text);
        let (sent, got) = (excerpt_around(text, at), excerpt_around(&nearest, at));
        Err(format!(
            "sent {} bytes, the model received {}, different at byte {at}: {sent:?} became {got:?}",
            text.len(),
            nearest.len()
        ))
    }

    /// Waits for the output of the command, for an unknown-command error, or for the text as a prompt.
    fn expect_visible_effect(&self, sandbox: &AgentSandbox, sample: &SampleText) -> Result<(), String> {
        let words: Vec<String> = match sample.kind {
            TextKind::Bang => {
                let number: u32 = sample.text.chars().filter(char::is_ascii_digit).collect::<String>()[4..]
                    .parse()
                    .map_err(|_| "the text has no number".to_owned())?;
                vec![format!("bang{}", 1000 + number)]
            }
            _ => vec![sample.text.split(' ').next().unwrap_or_default().trim_start_matches('/').to_owned()],
        };
        let is_visible = || words.iter().all(|word| sandbox.capture().screen.contains(word.as_str()));
        let is_prompt = || model_requests(sandbox).iter().any(|request| self.contains_text(request, &sample.text));
        poll_until(AGENT_TIMEOUT, || (is_visible() || is_prompt()).then_some(()))
            .ok_or_else(|| format!("the screen shows no effect of {}", sample.text))
    }

    fn contains_text(&self, request: &ModelRequest, text: &str) -> bool {
        request.prompt_parts.iter().any(|part| arrived_unchanged(self.agent.name(), part, text))
    }

    fn wait_for_rest(&self, sandbox: &AgentSandbox) -> Result<(), String> {
        let reported = || sandbox.watch.state_reports().last().map(|report| report.state);
        let is_at_rest =
            || matches!(reported(), Some(ReportedState::Idle | ReportedState::Completed | ReportedState::Error));
        // A very short turn may leave no state report; then the screen decides.
        let done = self.agent.screen_pattern(ScreenState::Done).filter(|_| self.agent.name() == "aider");
        let looks_done = || done.as_ref().is_none_or(|pattern| pattern.matches(&sandbox.capture()));
        let rested = poll_until(AGENT_TIMEOUT, || (is_at_rest() && looks_done()).then_some(()));
        rested.ok_or_else(|| format!("the agent does not come to rest: {:?}", reported()))
    }
}

/// Runs `agtmux send` and returns its JSON.
pub(super) fn send(sandbox: &AgentSandbox, text: &str) -> Result<Value, String> {
    let mut command = sandbox.agtmux_command();
    command.args(["send", &sandbox.pane, "--json"]);
    // Short texts go through the argument, long ones through stdin.
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
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("agtmux send {:?}: {message}", excerpt(text)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The requests to the model, without side requests such as title generation.
pub(super) fn model_requests(sandbox: &AgentSandbox) -> Vec<ModelRequest> {
    sandbox.model.requests().into_iter().filter(|request| !request.is_side_request).collect()
}

/// The number of equal bytes at the start.
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
