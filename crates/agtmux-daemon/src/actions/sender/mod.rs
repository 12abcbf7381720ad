//! How text gets into a pane, and how it is known that it was taken. One implementation for everybody.
//!
//! The text goes in as one paste. Once it is seen to stand in the input box, Enter follows as a key of its own, and then the
//! agent's own word, or its input box, tells whether it was taken. Enter is pressed again only while the text is seen in the
//! box: an Enter too many could answer a dialog that has opened in the meantime.

mod paste;
mod snippet;
mod text;
mod verify;

use std::borrow::Cow;
use std::time::Duration;

use agtmux_api::collect::HubRequest;
use agtmux_api::config::TmuxBridgeConfig;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, InputProfile, SendAction, SendReport, Verification, VerifiedBy};
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::idempotency::request_content;
use super::pane_screen::PaneScreen;
use super::perform::ActionRequest;
use super::{ActionFailure, ActionPane, Actions, RequestCaller, audit, guards};
use paste::PastedText;
pub(super) use snippet::without_whitespace;
pub(super) use text::checked_text;
use verify::{EnterResult, SubmitWatcher};

/// An agent that has just been started takes this long at the most to show its box.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Each takes its time, and others wait.
const MAX_KEYS: usize = 256;

impl Actions {
    pub(crate) async fn send(
        &self,
        action: SendAction,
        asker: RequestCaller,
    ) -> Result<ActionOutcome<SendReport>, ApiError> {
        let (guards, content) = (&action.guards, request_content(ActionKind::Send, &action));
        let ask = |guards| HubRequest::Send(SendAction { guards, ..action.clone() });
        let request = ActionRequest {
            kind: ActionKind::Send,
            guards,
            caller: asker,
            summary: None,
            text: None,
            content,
            remote_request: &ask,
        };
        let (keys, text) = match parse_send(&action) {
            Ok(typed) => typed,
            Err(error) => return Err(self.reject(request, error).await),
        };
        let request =
            ActionRequest { summary: audit::keys_summary(self.config(), &keys), text: text.as_deref(), ..request };
        let message = SendMessage { text: text.as_deref(), keys: &keys, enter: text.is_some() && !action.no_enter };
        self.perform(request, async |scene| TextSender::for_pane(scene, action.profile)?.send(&message).await).await
    }
}

/// What there is to type, if all of it may be typed.
fn parse_send(action: &SendAction) -> Result<(Vec<TmuxKey>, Option<Cow<'_, str>>), ApiError> {
    let keys = parse_keys(&action.keys)?;
    let text = action.text.as_deref().map(checked_text).transpose()?;
    if text.is_none() && keys.is_empty() {
        let error = ApiError::new(ErrorCode::BadRequest, "there is nothing to send");
        return Err(error.with_hint("give it a text, or keys to press"));
    }
    if text.is_none() && action.no_enter {
        let error = ApiError::new(ErrorCode::BadRequest, "there is no text that could be left in the input box");
        return Err(error.with_hint("leave out no_enter: after keys alone Enter is not pressed"));
    }
    Ok((keys, text))
}

fn parse_keys(names: &[String]) -> Result<Vec<TmuxKey>, ApiError> {
    if names.len() > MAX_KEYS {
        let error = ApiError::new(ErrorCode::BadRequest, format!("{MAX_KEYS} keys are the most"));
        return Err(error.with_hint("send text as text"));
    }
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::InvalidKey| ApiError::new(ErrorCode::BadRequest, error.to_string());
        name.parse::<TmuxKey>().map_err(|error| bad(error).with_hint("agtmux send --help"))
    };
    names.iter().map(key).collect()
}

/// What is to be typed.
pub(super) struct SendMessage<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) keys: &'a [TmuxKey],
    pub(super) enter: bool,
}

pub(super) struct TextSender<'a> {
    pub(super) pane: &'a ActionPane<'a>,
    bridge: TmuxBridgeConfig,
    profile: InputProfile,
}

impl<'a> TextSender<'a> {
    /// Who lives there decides how it is typed, unless the caller does.
    pub(super) fn for_pane(scene: &'a ActionPane<'a>, profile: Option<InputProfile>) -> Result<Self, ActionFailure> {
        let bridge = scene.actions.config().tmux_bridge;
        if scene.located.pane.dead.is_some() {
            // Not even asked: a paste into a dead pane ends some tmux servers.
            let error = ApiError::new(ErrorCode::RuntimeStale, "nothing was typed: the pane's program has ended");
            return Err(ActionFailure::refused(error.with_hint("agtmux resume REF   (starts its agent again)")));
        }
        let living = scene.located.agent.as_ref();
        let is_task = living.is_some_and(|living| living.runtime.agent_type.is_task());
        let lives = living.is_some() && !is_task;
        match profile {
            None if is_task => Ok(Self { pane: scene, bridge, profile: InputProfile::Shell }),
            Some(InputProfile::Tui) | None if lives => Ok(Self { pane: scene, bridge, profile: InputProfile::Tui }),
            Some(InputProfile::Shell) if lives && !scene.forced => Err(ActionFailure::precondition(
                "an agent lives there, and no shell waits for what is typed",
                "leave out --profile shell",
            )),
            Some(InputProfile::Shell) => Ok(Self { pane: scene, bridge, profile: InputProfile::Shell }),
            _ => {
                let pane = scene.located.key.pane;
                let message = format!("no agent lives in {pane}: what is typed there would go to its shell");
                Err(ActionFailure::precondition(
                    message,
                    "agtmux send REF --profile shell …   (if that is what you want)",
                ))
            }
        }
    }

    pub(super) async fn send(&self, message: &SendMessage<'_>) -> Result<SendReport, ActionFailure> {
        self.refuse_if_asking()?;
        let Some(text) = message.text else {
            self.press_keys(message.keys).await?;
            return Ok(unverified(0, 0));
        };
        let mut witness = SubmitWatcher::new(self, text);
        let before = self.wait_for_input_box().await?;
        let boxed = self.input_box_agent();
        self.paste_text(text, |look| boxed.map_or(Ok(()), |agent_type| self.check_no_dialog(&agent_type, look)))
            .await?;
        // From here on something was typed, whatever becomes of it.
        self.deliver(&mut witness, before.as_deref(), text, message).await.map_err(ActionFailure::after_typing)
    }

    async fn deliver(
        &self,
        witness: &mut SubmitWatcher<'_>,
        before: Option<&str>,
        text: &str,
        message: &SendMessage<'_>,
    ) -> Result<SendReport, ActionFailure> {
        let standing = self.wait_until_shown(before, text).await?;
        self.press_keys(message.keys).await?;
        if !message.enter {
            let seen = matches!(standing, PastedText::InBox(..));
            let report = unverified(text.len(), 0);
            return Ok(if seen {
                SendReport { verified: Verification::Confirmed, by: VerifiedBy::Box, ..report }
            } else {
                report
            });
        }
        self.press_enter_until_submitted(witness, &standing, text).await
    }

    /// Presses Enter until the text is seen to have been taken, or as often as is allowed.
    async fn press_enter_until_submitted(
        &self,
        witness: &mut SubmitWatcher<'_>,
        standing: &PastedText,
        text: &str,
    ) -> Result<SendReport, ActionFailure> {
        self.move_cursor_home_if_continued(text).await?;
        // What was heard up to now is not about this text.
        witness.discard_earlier_events();
        let mut attempts = 0;
        loop {
            self.check_agent_alive().await?;
            self.press_keys(&[TmuxKey::enter()]).await?;
            attempts += 1;
            if !self.bridge.verify_enter {
                return Ok(unverified(text.len(), attempts));
            }
            let finding = witness.watch_enter(standing).await?;
            let again = finding == EnterResult::StillInBox && attempts <= self.bridge.max_enter_retries;
            if !again {
                return self.report(witness, finding, text, attempts).await;
            }
            if attempts == 1 {
                self.dismiss_suggestion().await?;
            }
        }
    }

    async fn report(
        &self,
        witness: &SubmitWatcher<'_>,
        finding: EnterResult,
        text: &str,
        attempts: u32,
    ) -> Result<SendReport, ActionFailure> {
        let event_ids = witness.event_ids().to_vec();
        let report = |verified, by| SendReport { verified, by, attempts, bytes: text.len() as u64, event_ids };
        let why = match finding {
            EnterResult::Submitted(by) => {
                witness.wait_until_engine_knows().await;
                return Ok(report(Verification::Confirmed, by));
            }
            EnterResult::Unclear(by) => return Ok(report(Verification::Inconclusive, by)),
            EnterResult::StillInBox => {
                format!("the text stands in the input box and was not taken after {attempts} times Enter")
            }
            EnterResult::UnknownCommand => "it answered, and left the text in its input box".to_owned(),
            EnterResult::Unread => "it reads nothing at the moment: the text and Enter wait until it does".to_owned(),
        };
        self.log_screen().await;
        let pane = self.pane.located.reference();
        let hint = match finding {
            EnterResult::Unread => format!("agtmux view-output {pane}; do not send it again"),
            _ => format!("agtmux view-output {pane}; then agtmux send {pane} --key Enter"),
        };
        Err(ActionFailure::refused(ApiError::new(ErrorCode::SendFailed, why).with_hint(hint)))
    }

    /// Looks before each key: one that meets a dialog which has just opened would answer it.
    async fn press_keys(&self, keys: &[TmuxKey]) -> Result<(), ActionFailure> {
        let boxed = self.input_box_agent();
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
            }
            let pressed = async {
                let typing = PaneInput::Keys(std::slice::from_ref(key));
                match &boxed {
                    Some(agent_type) => self.pane.type_if(typing, |look| self.check_no_dialog(agent_type, look)).await,
                    None => self.pane.type_checked(typing).await,
                }
            };
            pressed.await.map_err(|failure| if n > 0 { failure.after_typing() } else { failure })?;
        }
        Ok(())
    }

    fn refuse_if_asking(&self) -> Result<(), ActionFailure> {
        let asks = matches!(self.pane.state(), Some(State::WaitingApproval | State::WaitingInput));
        if asks && self.profile == InputProfile::Tui && !self.pane.forced {
            return Err(self.dialog_open());
        }
        Ok(())
    }

    fn dialog_open(&self) -> ActionFailure {
        let pane = self.pane.located.reference();
        ActionFailure::precondition(
            "it asks something, and what is typed now would answer that",
            format!("agtmux respond {pane} approve|deny|N"),
        )
    }

    /// What stands in the box before anything is typed; none for what has no box.
    async fn wait_for_input_box(&self) -> Result<Option<String>, ActionFailure> {
        let Some(agent_type) = self.input_box_agent() else { return Ok(None) };
        let deadline = Instant::now() + READY_TIMEOUT;
        let pane = self.pane.located.reference();
        loop {
            let late = Instant::now() >= deadline;
            self.pane.check_same_agent().await?;
            match self.input_box_text(&agent_type).await? {
                Some(draft) if draft.is_empty() || self.pane.forced => return Ok(Some(draft)),
                // Twice, because a look may come in the middle of a drawing.
                Some(_) if late || self.still_has_draft(&agent_type).await? => {
                    return Err(ActionFailure::precondition(
                        "there is text in its input box that nobody has sent",
                        format!("agtmux view-output {pane}; --force-stale sends both as one"),
                    ));
                }
                None if self.pane.forced => return Ok(None),
                None if late => {
                    return Err(ActionFailure::precondition(
                        "its input box is not on its screen",
                        format!("agtmux view-output {pane}; --force-stale types all the same"),
                    ));
                }
                _ => sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn still_has_draft(&self, agent_type: &str) -> Result<bool, ActionFailure> {
        sleep(POLL_INTERVAL).await;
        Ok(self.input_box_text(agent_type).await?.is_some_and(|draft| !draft.is_empty()))
    }

    /// The kind of an agent whose input box can be seen.
    pub(super) fn input_box_agent(&self) -> Option<String> {
        let living = self.pane.located.agent.as_ref().filter(|_| self.profile == InputProfile::Tui)?;
        let agent_type = living.runtime.agent_type.as_str();
        self.pane.actions.0.discovery.registry().has_input_box_rules(agent_type).then(|| agent_type.to_owned())
    }

    async fn input_box_text(&self, agent_type: &str) -> Result<Option<String>, ActionFailure> {
        self.capture_input_box(agent_type).await.map(|(typed, _)| typed)
    }

    /// What stands in the box, and the look that told. A dialog that is open is a reason to stop.
    async fn capture_input_box(&self, agent_type: &str) -> Result<(Option<String>, PaneScreen), ActionFailure> {
        let look = self.pane.capture().await?;
        self.check_no_dialog(agent_type, &look)?;
        Ok((self.pane.actions.0.discovery.registry().typed_text(agent_type, &look.screen), look))
    }

    fn check_no_dialog(&self, agent_type: &str, look: &PaneScreen) -> Result<(), ActionFailure> {
        let registry = self.pane.actions.0.discovery.registry();
        match look.reading(&registry, agent_type).dialog {
            Some(_) if !self.pane.forced => Err(self.dialog_open()),
            _ => Ok(()),
        }
    }

    /// What waits in the box of an agent that has ended meanwhile would be a command to its shell, and one that is stopped
    /// takes nothing.
    pub(super) async fn check_agent_alive(&self) -> Result<(), ActionFailure> {
        let Some(living) = self.pane.located.agent.as_ref().filter(|_| self.profile == InputProfile::Tui) else {
            return Ok(());
        };
        let agent = living.runtime.process;
        let found = self
            .pane
            .processes
            .try_process(agent.pid)
            .await
            .map_err(|untold| self.pane.processes_unavailable(&untold))?;
        match found.filter(|process| process.start == agent.start && !process.zombie) {
            None => {
                Err(ActionFailure::refused(guards::runtime_stale("the agent ended before Enter was pressed".into())))
            }
            Some(process) if process.stopped => {
                let pane = self.pane.located.reference();
                let message = "the text was typed, but the agent is stopped; Enter was not pressed";
                let hint = format!("wake it up with fg or SIGCONT; then agtmux send {pane} --key Enter");
                Err(ActionFailure::refused(ApiError::new(ErrorCode::SendFailed, message).with_hint(hint)))
            }
            Some(_) => Ok(()),
        }
    }

    /// For whoever has to find out why.
    async fn log_screen(&self) {
        if !self.pane.actions.stores_text() {
            return;
        }
        if let Ok(look) = self.pane.capture().await {
            // Without colours, which could part a secret in two.
            let rows: Vec<&str> = look.screen.rows().iter().map(|row| row.text()).collect();
            let shown = agtmux_core::sanitize::for_terminal(&agtmux_core::redact::text(&rows.join("\n")));
            tracing::warn!(pane = %self.pane.located.key.pane, shown, "a text was not taken");
        }
    }
}

fn unverified(bytes: usize, attempts: u32) -> SendReport {
    let (verified, by) = (Verification::Inconclusive, VerifiedBy::Nothing);
    SendReport { verified, by, attempts, bytes: bytes as u64, event_ids: Vec::new() }
}
