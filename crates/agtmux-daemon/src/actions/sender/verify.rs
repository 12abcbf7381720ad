//! Verifies that an agent submitted a text.

use std::time::Duration;

use agtmux_agents::{KnownAgent, ScreenReading};
use agtmux_api::error::ApiResult;
use agtmux_api::wire::VerifiedBy;
use agtmux_core::redact;
use agtmux_core::state::State;
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout_at};

use super::paste::PastedText;
use super::{TextSender, snippet};
use crate::actions::pane_screen::PaneScreen;
use crate::engine::{SubmissionProgress, SubmittedPrompt};

/// How long to wait for an effect after each Enter.
const ENTER_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long to wait for an agent that has not read the Enter yet, for example because the agent is busy. A second Enter
/// would not help, because the agent reads the first one before it.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the input box may be invisible while the agent redraws the screen.
const BOX_TIMEOUT: Duration = Duration::from_secs(4);
/// The first pause between two captures, and the longest one.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(160);
/// How long to wait for a prompt event after the input box was emptied, if the agent sends such events.
const EVENT_TIMEOUT: Duration = Duration::from_millis(400);
/// How long a slash command must be gone from the input box before it counts as submitted. An agent may remove an
/// unknown command from the box, print an error, and put the command back. The shorter time applies if the agent has
/// printed the command, the longer time if it has not.
const ANSWERED_COMMAND_WAIT: Duration = Duration::from_millis(600);
const UNANSWERED_COMMAND_WAIT: Duration = Duration::from_secs(2);
/// How many characters of the text in a prompt event are compared with the typed text.
const COMPARED_CHARS: usize = 256;

/// What happened after one press of Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnterResult {
    Submitted(VerifiedBy),
    /// agtmux has no evidence whether the text was submitted.
    Unclear(VerifiedBy),
    /// The text is still in the input box.
    StillInBox,
    /// The text is a slash command that the agent does not know: the agent has printed the command, but the command is
    /// still in the input box.
    UnknownCommand,
    /// The text is still in the input box, because the agent has not read the Enter.
    Unread,
}

/// What one capture shows of the input box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoxState {
    Cleared,
    HoldsText,
    /// No input box is visible.
    Unclear,
}

/// Watches for evidence that a text was submitted. The watcher subscribes to prompt events before anything is typed.
pub(super) struct SubmitWatcher<'a> {
    sender: &'a TextSender<'a>,
    submitted: broadcast::Receiver<SubmittedPrompt>,
    text: &'a str,
    snippet: Option<String>,
    event_ids: Vec<String>,
    /// Whether a capture after Enter has shown that the agent works.
    work_seen: bool,
}

impl<'a> SubmitWatcher<'a> {
    pub(super) fn new(sender: &'a TextSender<'a>, text: &'a str) -> Self {
        let submitted = sender.pane.actions.0.engine.subscribe_submitted();
        Self { sender, submitted, text, snippet: snippet::text_snippet(text), event_ids: Vec::new(), work_seen: false }
    }

    /// The ids of the prompt events that confirmed the submission.
    pub(super) fn event_ids(&self) -> &[String] {
        &self.event_ids
    }

    /// Discards prompt events that arrived before Enter.
    pub(super) fn discard_earlier_events(&mut self) {
        while !matches!(
            self.submitted.try_recv(),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)
        ) {}
    }

    /// If the screen shows that the agent works, waits until the engine has the new state. A caller that then waits for
    /// the agent to finish would otherwise see the idle state from before the prompt. Returns at once if a prompt event
    /// confirmed the text, because the engine then has the new state already.
    pub(super) async fn wait_until_engine_knows(&self) {
        let pane = self.sender.pane;
        let Some(agent) = self.sender.input_box_agent().filter(|_| self.event_ids.is_empty()) else { return };
        let Some(before) = pane.state() else { return };
        let capture = pane.capture().await;
        if self.was_at_rest() && capture.is_ok_and(|capture| is_busy(&capture.reading(&agent))) {
            pane.wait_for_engine(|agent| agent.record.state != before).await;
        }
    }

    /// Watches what happens after Enter was pressed.
    pub(super) async fn watch_enter(&mut self, pasted: &PastedText) -> ApiResult<EnterResult> {
        match self.sender.input_box_agent() {
            Some(agent) => self.watch_box(&agent, pasted).await,
            None => self.watch_change(pasted.screen()).await,
        }
    }

    async fn watch_box(&mut self, agent: &KnownAgent, pasted: &PastedText) -> ApiResult<EnterResult> {
        let begun = Instant::now();
        let (mut pause, mut taken_since) = (MIN_POLL_INTERVAL, None);
        loop {
            if self.event_arrives_by(Instant::now() + pause).await {
                return Ok(EnterResult::Submitted(VerifiedBy::Event));
            }
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
            let capture = self.sender.pane.capture().await?;
            self.look_for_work(agent, &capture, pasted).await;
            let state = self.box_state(agent, &capture, pasted);
            let answered = self.names_command(agent, &capture, pasted);
            if state != BoxState::Cleared {
                taken_since = None;
            }
            let long_enough = match (self.is_command(), answered) {
                (false, _) => MIN_POLL_INTERVAL,
                (true, true) => ANSWERED_COMMAND_WAIT,
                (true, false) => UNANSWERED_COMMAND_WAIT,
            };
            // Require several captures: one may show a half-drawn screen.
            if state == BoxState::Cleared && taken_since.is_some_and(|since: Instant| since.elapsed() >= long_enough) {
                let says_so = self.reports_prompts() && self.event_arrives_by(Instant::now() + EVENT_TIMEOUT).await;
                return Ok(EnterResult::Submitted(if says_so { VerifiedBy::Event } else { VerifiedBy::Box }));
            }
            let waited = begun.elapsed();
            if state == BoxState::Cleared {
                (pause, taken_since) = (MIN_POLL_INTERVAL, taken_since.or(Some(Instant::now())));
                continue;
            }
            if waited < ENTER_TIMEOUT {
                continue;
            }
            let changed = capture.raw != pasted.screen().raw;
            match state {
                BoxState::HoldsText if self.sender.has_unread_input() => {
                    if waited >= UNREAD_TIMEOUT {
                        return Ok(EnterResult::Unread);
                    }
                }
                BoxState::HoldsText if answered => return Ok(EnterResult::UnknownCommand),
                BoxState::HoldsText => return Ok(EnterResult::StillInBox),
                _ if waited < BOX_TIMEOUT => {}
                _ => return Ok(EnterResult::Unclear(if changed { VerifiedBy::Change } else { VerifiedBy::Nothing })),
            }
        }
    }

    /// If a capture shows that the agent has begun to work, tells the engine. In a very short turn, only these captures
    /// show the work.
    async fn look_for_work(&mut self, agent: &KnownAgent, capture: &PaneScreen, pasted: &PastedText) {
        let is_at_work = |capture: &PaneScreen| is_busy(&capture.reading(agent));
        if self.work_seen || !self.was_at_rest() || !is_at_work(capture) || is_at_work(pasted.screen()) {
            return;
        }
        self.work_seen = true;
        self.sender.note_submission(SubmissionProgress::WorkSeen).await;
    }

    /// Watches for any change of the screen. Used for programs whose input box agtmux cannot read.
    async fn watch_change(&mut self, before: &PaneScreen) -> ApiResult<EnterResult> {
        let deadline = Instant::now() + ENTER_TIMEOUT;
        let mut pause = MIN_POLL_INTERVAL;
        loop {
            if self.event_arrives_by(Instant::now() + pause).await {
                return Ok(EnterResult::Submitted(VerifiedBy::Event));
            }
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
            let timed_out = Instant::now() >= deadline;
            if self.sender.pane.capture().await?.raw != before.raw {
                // Programs also print without input, so a change proves nothing.
                return Ok(EnterResult::Unclear(VerifiedBy::Change));
            }
            if timed_out {
                return Ok(EnterResult::Unclear(VerifiedBy::Nothing));
            }
        }
    }

    fn box_state(&self, agent: &KnownAgent, capture: &PaneScreen, pasted: &PastedText) -> BoxState {
        match agent.typed_text(&capture.screen) {
            Some(typed) => {
                let state = match pasted {
                    PastedText::InBox(before, _) => compare_box(&typed, before, self.snippet.as_deref()),
                    // The text was not visible before Enter, so only an empty box shows that the text is gone.
                    PastedText::NotVisible(_) if typed.is_empty() => BoxState::Cleared,
                    PastedText::NotVisible(_) => BoxState::HoldsText,
                };
                let leaves = agent.typing_rules().leaves_text;
                if leaves && state == BoxState::HoldsText { BoxState::Unclear } else { state }
            }
            // The agent was at rest and now works or asks: it has submitted the text. An agent that was already working
            // may have opened an unrelated dialog that hides the text.
            None if self.was_at_rest() && is_busy(&capture.reading(agent)) => BoxState::Cleared,
            None => BoxState::Unclear,
        }
    }

    /// Whether the agent has printed the slash command since it was pasted. If the command is also still in the box,
    /// the agent does not know the command, and another Enter would not help.
    fn names_command(&self, agent: &KnownAgent, capture: &PaneScreen, pasted: &PastedText) -> bool {
        let before = agent.transcript(&pasted.screen().screen);
        let now = agent.transcript(&capture.screen);
        let command = self.text.split_whitespace().next().unwrap_or_default();
        self.is_command() && now.iter().any(|row| row.contains(command) && !before.contains(row))
    }

    fn is_command(&self) -> bool {
        self.text.starts_with('/')
    }

    fn was_at_rest(&self) -> bool {
        !matches!(self.sender.pane.state(), Some(State::Running))
    }

    fn reports_prompts(&self) -> bool {
        self.sender.pane.located.agent.as_ref().is_some_and(|agent| agent.reports_submissions)
    }

    async fn event_arrives_by(&mut self, deadline: Instant) -> bool {
        loop {
            match timeout_at(deadline, self.submitted.recv()).await {
                Ok(Ok(event)) if self.is_our_prompt(&event) => {
                    self.event_ids.push(event.event_id);
                    return true;
                }
                Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => {}
                // The engine has stopped, or the deadline has passed.
                Ok(Err(broadcast::error::RecvError::Closed)) | Err(_) => return false,
            }
        }
    }

    fn is_our_prompt(&self, event: &SubmittedPrompt) -> bool {
        let lives = self.sender.pane.located.agent.as_ref();
        if lives.is_none_or(|agent| agent.runtime.id != event.runtime) {
            return false;
        }
        let start = |text: &str| snippet::comparable_text(text).chars().take(COMPARED_CHARS).collect::<String>();
        event.text.is_empty() || start(&event.text) == start(&redact::text(self.text))
    }
}

fn is_busy(reading: &ScreenReading) -> bool {
    reading.dialog().is_some()
        || reading.observations.iter().any(|observation| observation.assertion.state() == Some(State::Running))
}

/// Compares the text in the input box now with the text in the box before Enter.
fn compare_box(typed: &str, before: &str, snippet: Option<&str>) -> BoxState {
    let (typed, before) = (snippet::without_whitespace(typed), snippet::without_whitespace(before));
    if typed.is_empty() {
        return BoxState::Cleared;
    }
    let known = snippet.is_some_and(|snippet| typed.contains(snippet));
    match known || typed.contains(&before) || before.contains(&typed) {
        true => BoxState::HoldsText,
        false => BoxState::Cleared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_that_shows_the_text_or_a_part_of_it_is_not_cleared() {
        assert_eq!(compare_box("", "hello there", None), BoxState::Cleared);
        assert_eq!(compare_box("hello  there", "hello there", None), BoxState::HoldsText);
        // The box is half drawn, or Enter has inserted a new line.
        assert_eq!(compare_box("hello", "hello there", None), BoxState::HoldsText);
        assert_eq!(compare_box("hello there\nmore", "hello there", None), BoxState::HoldsText);
        assert_eq!(compare_box("what comes next", "hello there", None), BoxState::Cleared);
        assert_eq!(compare_box("… the end of it all", "[Pasted text]", Some("theendofitall")), BoxState::HoldsText);
    }
}
