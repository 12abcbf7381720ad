//! Whether the agent took it.

use std::time::Duration;

use agtmux_agents::{AgentRegistry, ScreenReading};
use agtmux_api::wire::VerifiedBy;
use agtmux_core::redact;
use agtmux_core::state::State;
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout_at};

use super::paste::PastedText;
use super::{TextSender, snippet};
use crate::actions::ActionFailure;
use crate::actions::pane_screen::PaneScreen;
use crate::engine::SubmittedPrompt;

/// How long each Enter gets.
const ENTER_TIMEOUT: Duration = Duration::from_millis(1500);
/// An agent that has not even read it gets longer: it may be busy, and another Enter would only queue up behind this one.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(20);
/// The box may be out of sight while an agent draws itself anew.
const BOX_TIMEOUT: Duration = Duration::from_secs(4);
/// Between one look and the next, at first and at the most.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(160);
/// Once the box is empty, an agent that tells by itself gets this long to say so.
const EVENT_TIMEOUT: Duration = Duration::from_millis(400);
/// A command that is not known may be taken out of the box, answered and put back: it counts from the answer. One that is
/// answered by nothing at all gets the longer time.
const ANSWERED_COMMAND_WAIT: Duration = Duration::from_millis(600);
const UNANSWERED_COMMAND_WAIT: Duration = Duration::from_secs(2);
/// An agent's word is as good as all of its text.
const COMPARED_CHARS: usize = 256;

/// What came of one Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnterResult {
    Submitted(VerifiedBy),
    /// There is nothing to tell it by, or it does not tell.
    Unclear(VerifiedBy),
    /// The text stands where it stood.
    StillInBox,
    /// It stands there, but the agent did something: it knows no such command.
    UnknownCommand,
    /// It stands there, and the agent has not read the Enter.
    Unread,
}

/// What one look tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoxState {
    Cleared,
    HoldsText,
    /// Neither: there is no box to see.
    Unclear,
}

/// Watches for what tells that a text was taken. It listens from before anything was typed.
pub(super) struct SubmitWatcher<'a> {
    sender: &'a TextSender<'a>,
    submitted: broadcast::Receiver<SubmittedPrompt>,
    text: &'a str,
    snippet: Option<String>,
    event_ids: Vec<String>,
}

impl<'a> SubmitWatcher<'a> {
    pub(super) fn new(sender: &'a TextSender<'a>, text: &'a str) -> Self {
        let submitted = sender.pane.actions.0.engine.subscribe_submitted();
        Self { sender, submitted, text, snippet: snippet::text_snippet(text), event_ids: Vec::new() }
    }

    /// The events that told of it.
    pub(super) fn event_ids(&self) -> &[String] {
        &self.event_ids
    }

    /// Whatever was told before does not count.
    pub(super) fn discard_earlier_events(&mut self) {
        while !matches!(
            self.submitted.try_recv(),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)
        ) {}
    }

    /// Returns when everybody else knows that it works, if that is seen: whoever waits for its rest now would find it at the rest
    /// from before. An agent's own word is heard by everybody at once.
    pub(super) async fn wait_until_engine_knows(&self) {
        let scene = self.sender.pane;
        let Some(agent_type) = self.sender.input_box_agent().filter(|_| self.event_ids.is_empty()) else { return };
        let Some(before) = scene.state() else { return };
        let registry = scene.actions.0.discovery.registry();
        let look = scene.capture().await;
        if self.was_at_rest() && look.is_ok_and(|look| is_busy(&look.reading(&registry, &agent_type))) {
            scene.wait_for_engine(|state, _| state != before).await;
        }
    }

    /// After an Enter.
    pub(super) async fn watch_enter(&mut self, standing: &PastedText) -> Result<EnterResult, ActionFailure> {
        match self.sender.input_box_agent() {
            Some(agent_type) => self.watch_box(&agent_type, standing).await,
            None => self.watch_change(standing.screen()).await,
        }
    }

    async fn watch_box(&mut self, agent_type: &str, standing: &PastedText) -> Result<EnterResult, ActionFailure> {
        let begun = Instant::now();
        let registry = self.sender.pane.actions.0.discovery.registry();
        let (mut pause, mut taken_since) = (MIN_POLL_INTERVAL, None);
        loop {
            if self.event_arrives_by(Instant::now() + pause).await {
                return Ok(EnterResult::Submitted(VerifiedBy::Event));
            }
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
            let look = self.sender.pane.capture().await?;
            let sight = self.box_state(&registry, agent_type, &look, standing);
            let answered = self.names_command(&registry, agent_type, &look, standing);
            if sight != BoxState::Cleared {
                taken_since = None;
            }
            let long_enough = match (self.is_command(), answered) {
                (false, _) => MIN_POLL_INTERVAL,
                (true, true) => ANSWERED_COMMAND_WAIT,
                (true, false) => UNANSWERED_COMMAND_WAIT,
            };
            // More than once, because a look may come in the middle of a drawing.
            if sight == BoxState::Cleared && taken_since.is_some_and(|since: Instant| since.elapsed() >= long_enough) {
                let says_so = self.reports_prompts() && self.event_arrives_by(Instant::now() + EVENT_TIMEOUT).await;
                return Ok(EnterResult::Submitted(if says_so { VerifiedBy::Event } else { VerifiedBy::Box }));
            }
            let waited = begun.elapsed();
            if sight == BoxState::Cleared {
                (pause, taken_since) = (MIN_POLL_INTERVAL, taken_since.or(Some(Instant::now())));
                continue;
            }
            if waited < ENTER_TIMEOUT {
                continue;
            }
            let changed = look.raw != standing.screen().raw;
            match sight {
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

    /// For programs whose box is not known.
    async fn watch_change(&mut self, before: &PaneScreen) -> Result<EnterResult, ActionFailure> {
        let deadline = Instant::now() + ENTER_TIMEOUT;
        let mut pause = MIN_POLL_INTERVAL;
        loop {
            if self.event_arrives_by(Instant::now() + pause).await {
                return Ok(EnterResult::Submitted(VerifiedBy::Event));
            }
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
            let late = Instant::now() >= deadline;
            if self.sender.pane.capture().await?.raw != before.raw {
                // Programs print for reasons of their own.
                return Ok(EnterResult::Unclear(VerifiedBy::Change));
            }
            if late {
                return Ok(EnterResult::Unclear(VerifiedBy::Nothing));
            }
        }
    }

    fn box_state(
        &self,
        registry: &AgentRegistry,
        agent_type: &str,
        look: &PaneScreen,
        standing: &PastedText,
    ) -> BoxState {
        match registry.typed_text(agent_type, &look.screen) {
            Some(typed) => {
                let sight = match standing {
                    PastedText::InBox(stood, _) => compare_box(&typed, stood, self.snippet.as_deref()),
                    // It was not seen, so that it is not seen now tells less. An empty box has nothing of it.
                    PastedText::NotVisible(_) if typed.is_empty() => BoxState::Cleared,
                    PastedText::NotVisible(_) => BoxState::HoldsText,
                };
                let leaves = registry.typing_rules(agent_type).is_some_and(|typing| typing.leaves_text);
                if leaves && sight == BoxState::HoldsText { BoxState::Unclear } else { sight }
            }
            // It works now, or asks something: it took what was typed. One that worked already may ask for something else, and
            // keep the text behind the dialog.
            None if self.was_at_rest() && is_busy(&look.reading(registry, agent_type)) => BoxState::Cleared,
            None => BoxState::Unclear,
        }
    }

    /// Whether the agent has named the command that it was given. If the text stands in the box then, it does not know
    /// such a command, and would only say so again.
    fn names_command(
        &self,
        registry: &AgentRegistry,
        agent_type: &str,
        look: &PaneScreen,
        standing: &PastedText,
    ) -> bool {
        let before = registry.transcript(agent_type, &standing.screen().screen);
        let now = registry.transcript(agent_type, &look.screen);
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
        self.sender.pane.located.agent.as_ref().is_some_and(|living| living.reports_submissions)
    }

    async fn event_arrives_by(&mut self, deadline: Instant) -> bool {
        loop {
            match timeout_at(deadline, self.submitted.recv()).await {
                Ok(Ok(heard)) if self.is_our_prompt(&heard) => {
                    self.event_ids.push(heard.event_id);
                    return true;
                }
                Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => {}
                // The engine has ended, and with it all that could be waited for.
                Ok(Err(broadcast::error::RecvError::Closed)) | Err(_) => return false,
            }
        }
    }

    fn is_our_prompt(&self, heard: &SubmittedPrompt) -> bool {
        let lives = self.sender.pane.located.agent.as_ref();
        if lives.is_none_or(|living| living.runtime.id != heard.runtime) {
            return false;
        }
        let start = |text: &str| snippet::comparable_text(text).chars().take(COMPARED_CHARS).collect::<String>();
        heard.text.is_empty() || start(&heard.text) == start(&redact::text(self.text))
    }
}

fn is_busy(reading: &ScreenReading) -> bool {
    reading.dialog.is_some() || reading.observations.iter().any(|said| said.assertion.state() == Some(State::Running))
}

/// Whether what is in the box now is what stood there, or a part of it.
fn compare_box(typed: &str, stood: &str, snippet: Option<&str>) -> BoxState {
    let (typed, stood) = (snippet::without_whitespace(typed), snippet::without_whitespace(stood));
    if typed.is_empty() {
        return BoxState::Cleared;
    }
    let known = snippet.is_some_and(|snippet| typed.contains(snippet));
    match known || typed.contains(&stood) || stood.contains(&typed) {
        true => BoxState::HoldsText,
        false => BoxState::Cleared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_gone_was_taken() {
        assert_eq!(compare_box("", "hello there", None), BoxState::Cleared);
        assert_eq!(compare_box("hello  there", "hello there", None), BoxState::HoldsText);
        // Half drawn, or with a new line that Enter made.
        assert_eq!(compare_box("hello", "hello there", None), BoxState::HoldsText);
        assert_eq!(compare_box("hello there\nmore", "hello there", None), BoxState::HoldsText);
        assert_eq!(compare_box("what comes next", "hello there", None), BoxState::Cleared);
        assert_eq!(compare_box("… the end of it all", "[Pasted text]", Some("theendofitall")), BoxState::HoldsText);
    }
}
