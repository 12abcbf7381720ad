//! Types text into a pane and verifies that the text was submitted. Every action that types text uses this module.
//!
//! The text is pasted in one piece. When the input box shows the text, Enter is pressed as a separate key. A prompt
//! event of the agent or the emptied input box then confirms the submission. Enter is pressed again only while the text
//! is still in the input box: an extra Enter could answer a dialog that has opened meanwhile.

mod paste;
mod snippet;
mod text;
mod verify;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agtmux_agents::KnownAgent;
use agtmux_api::config::TmuxBridgeConfig;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionOutcome, InputProfile, SendAction, SendReport, Verification, VerifiedBy};
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::pane_screen::PaneScreen;
use super::perform::ActionRequest;
use super::respond::OpenDialog;
use super::{ActionPane, Actions, RequestCaller, after_typing, after_typing_if, audit, guards, precondition};
use crate::engine::SubmissionProgress;
use paste::PastedText;
pub(super) use snippet::without_whitespace;
pub(super) use text::checked_text;
use verify::{EnterResult, SubmitWatcher};

/// How long a freshly started agent may take to show its input box.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The most keys in one request. Each key takes time, and other actions on the pane must wait meanwhile.
const MAX_KEYS: usize = 256;

impl Actions {
    pub(crate) async fn send(&self, action: SendAction, caller: RequestCaller) -> ApiResult<ActionOutcome<SendReport>> {
        let request = ActionRequest::new(HubRequest::Send(action.clone()), &action.guards, caller);
        let (keys, text) = match parse_send(&action) {
            Ok(typed) => typed,
            Err(error) => return Err(self.reject(request, error).await),
        };
        let request =
            ActionRequest { summary: audit::keys_summary(self.config(), &keys), text: text.as_deref(), ..request };
        let dialog = action.guards.if_dialog.as_deref();
        let enter = text.is_some() && !action.no_enter;
        let message = SendMessage { text: text.as_deref(), keys: &keys, enter, dialog };
        self.perform(request, async |pane| {
            let report = TextSender::for_pane(pane, action.profile)?.send(&message).await?;
            Ok(SendReport { left_copy_mode: pane.has_left_mode(), ..report })
        })
        .await
    }
}

/// Parses and checks the keys and the text of a request.
fn parse_send(action: &SendAction) -> ApiResult<(Vec<TmuxKey>, Option<Cow<'_, str>>)> {
    let keys = parse_keys(&action.keys)?;
    let text = action.text.as_deref().map(checked_text).transpose()?;
    if text.is_none() && keys.is_empty() {
        let error = ApiError::new(ErrorCode::BadRequest, "nothing to send: no text and no keys");
        return Err(error.with_hint("agtmux send REF --text TEXT, or agtmux send REF --key KEY"));
    }
    if text.is_none() && action.no_enter {
        let error = ApiError::new(ErrorCode::BadRequest, "no_enter requires a text");
        return Err(error.with_hint("remove no_enter: it applies only to text"));
    }
    Ok((keys, text))
}

fn parse_keys(names: &[String]) -> ApiResult<Vec<TmuxKey>> {
    if names.len() > MAX_KEYS {
        let error =
            ApiError::new(ErrorCode::BadRequest, format!("a request may contain at most {MAX_KEYS} key presses"));
        return Err(error.with_hint("send text with --text, not as keys"));
    }
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::InvalidKey| ApiError::new(ErrorCode::BadRequest, error.to_string());
        name.parse::<TmuxKey>().map_err(|error| bad(error).with_hint("agtmux send --help"))
    };
    names.iter().map(key).collect()
}

/// The text and keys to type.
pub(super) struct SendMessage<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) keys: &'a [TmuxKey],
    pub(super) enter: bool,
    /// The fingerprint of the dialog that keys without text may go to.
    pub(super) dialog: Option<&'a str>,
}

/// Whether keys may be pressed while the input box is not on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeysBesideBox<'a> {
    Refused,
    /// While a panel has replaced the input box.
    Panel,
    /// Also while the dialog with this fingerprint is open. The caller has seen that dialog.
    Dialog(&'a str),
}

impl<'a> SendMessage<'a> {
    fn keys_beside_box(&self) -> KeysBesideBox<'a> {
        match (self.text, self.dialog) {
            (Some(_), _) => KeysBesideBox::Refused,
            (None, None) => KeysBesideBox::Panel,
            (None, Some(fingerprint)) => KeysBesideBox::Dialog(fingerprint),
        }
    }
}

pub(super) struct TextSender<'a> {
    pub(super) pane: &'a ActionPane<'a>,
    bridge: TmuxBridgeConfig,
    profile: InputProfile,
}

impl<'a> TextSender<'a> {
    /// Chooses the profile by the program in the pane, unless the caller names a profile.
    pub(super) fn for_pane(pane: &'a ActionPane<'a>, profile: Option<InputProfile>) -> ApiResult<Self> {
        let bridge = pane.actions.config().tmux_bridge;
        if pane.located.pane.dead.is_some() {
            // Do not even ask tmux: a paste into a dead pane crashes some tmux versions.
            let error = ApiError::new(ErrorCode::RuntimeStale, "nothing was typed: the pane's program has ended");
            return Err(error.with_hint("agtmux resume REF   (restarts the agent)"));
        }
        let agent = pane.located.agent.as_ref();
        let is_task = agent.is_some_and(|agent| agent.runtime.agent_type.is_task());
        let lives = agent.is_some() && !is_task;
        match profile {
            None if is_task => Ok(Self { pane, bridge, profile: InputProfile::Shell }),
            Some(InputProfile::Tui) | None if lives => Ok(Self { pane, bridge, profile: InputProfile::Tui }),
            Some(InputProfile::Shell) if lives && !pane.forced => Err(precondition(
                "an agent runs in the pane, so profile 'shell' does not apply",
                "leave out --profile shell",
            )),
            Some(InputProfile::Shell) => Ok(Self { pane, bridge, profile: InputProfile::Shell }),
            _ => {
                let pane = pane.located.key.pane;
                let message = format!("no agent runs in {pane}: the text would go to the shell in the pane");
                Err(precondition(message, "agtmux send REF --profile shell …   (sends the text to the shell)"))
            }
        }
    }

    pub(super) async fn send(&self, message: &SendMessage<'_>) -> ApiResult<SendReport> {
        self.refuse_if_asking(message).await?;
        let Some(text) = message.text else {
            self.press_keys_with(message.keys, message.keys_beside_box()).await?;
            return Ok(unverified(0, 0));
        };
        let mut watcher = SubmitWatcher::new(self, text);
        let before = self.wait_for_input_box().await?;
        let box_agent = self.input_box_agent();
        self.paste_text(text, |capture| {
            box_agent.map_or(Ok(()), |agent| self.check_no_dialog(&agent, capture, KeysBesideBox::Refused))
        })
        .await?;
        // The text was pasted: from here on every failure is a failure after typing.
        self.deliver(&mut watcher, before.as_deref(), text, message).await.map_err(after_typing)
    }

    async fn deliver(
        &self,
        watcher: &mut SubmitWatcher<'_>,
        before: Option<&str>,
        text: &str,
        message: &SendMessage<'_>,
    ) -> ApiResult<SendReport> {
        let pasted = self.wait_until_shown(before, text).await?;
        self.press_keys(message.keys).await?;
        if !message.enter {
            let seen = matches!(pasted, PastedText::InBox(..));
            let report = unverified(text.len(), 0);
            return Ok(if seen {
                SendReport { verified: Verification::Confirmed, by: VerifiedBy::Box, ..report }
            } else {
                report
            });
        }
        self.press_enter_until_submitted(watcher, &pasted, text).await
    }

    /// Presses Enter until the agent has submitted the text or the retries are used up.
    async fn press_enter_until_submitted(
        &self,
        watcher: &mut SubmitWatcher<'_>,
        pasted: &PastedText,
        text: &str,
    ) -> ApiResult<SendReport> {
        self.move_cursor_home_if_continued(text).await?;
        // Events that arrived before Enter are not about this text.
        watcher.discard_earlier_events();
        let mut attempts = 0;
        loop {
            self.check_agent_alive().await?;
            if attempts == 0 {
                self.note_submission(SubmissionProgress::Begins { relayed: false }).await;
            }
            self.press_keys(&[TmuxKey::enter()]).await?;
            attempts += 1;
            if !self.bridge.verify_enter {
                return Ok(unverified(text.len(), attempts));
            }
            let result = watcher.watch_enter(pasted).await?;
            let again = result == EnterResult::StillInBox && attempts <= self.bridge.max_enter_retries;
            if !again {
                return self.report(watcher, result, text, attempts).await;
            }
            if attempts == 1 {
                self.dismiss_suggestion().await?;
            }
        }
    }

    async fn report(
        &self,
        watcher: &SubmitWatcher<'_>,
        result: EnterResult,
        text: &str,
        attempts: u32,
    ) -> ApiResult<SendReport> {
        let event_ids = watcher.event_ids().to_vec();
        let report = |verified, by| SendReport {
            verified,
            by,
            attempts,
            bytes: text.len() as u64,
            event_ids,
            left_copy_mode: false,
        };
        let why = match result {
            EnterResult::Submitted(by) => {
                watcher.wait_until_engine_knows().await;
                return Ok(report(Verification::Confirmed, by));
            }
            EnterResult::Unclear(by) => return Ok(report(Verification::Inconclusive, by)),
            EnterResult::StillInBox => {
                format!("not submitted: the text is still in the input box after {attempts} Enter presses")
            }
            EnterResult::UnknownCommand => {
                "not submitted: the agent does not know this command and left it in the input box".to_owned()
            }
            EnterResult::Unread => {
                "not submitted yet: the agent is not reading input; the text and Enter are waiting in its terminal"
                    .to_owned()
            }
        };
        if result != EnterResult::Unread {
            self.note_submission(SubmissionProgress::Failed).await;
        }
        self.log_screen().await;
        let pane = self.pane.located.reference();
        let hint = match result {
            EnterResult::Unread => format!("agtmux view-output {pane}   (do not send the text again)"),
            _ => format!("agtmux view-output {pane}; then agtmux send {pane} --key Enter"),
        };
        Err(ApiError::new(ErrorCode::SendFailed, why).with_hint(hint))
    }

    /// Tells the engine about the progress of the submission. Clients that wait for the agent then ignore the state
    /// from before the text was typed.
    async fn note_submission(&self, progress: SubmissionProgress) {
        let agent = self.pane.located.agent.as_ref().filter(|_| self.profile == InputProfile::Tui);
        if let Some(agent) = agent {
            self.pane.actions.0.engine.note_submission(agent.runtime.id.clone(), progress).await;
        }
    }

    /// Presses keys. Checks the screen before each key and fails if a dialog is open, because the key could answer that
    /// dialog.
    async fn press_keys(&self, keys: &[TmuxKey]) -> ApiResult<()> {
        self.press_keys_with(keys, KeysBesideBox::Refused).await
    }

    async fn press_keys_with(&self, keys: &[TmuxKey], beside: KeysBesideBox<'_>) -> ApiResult<()> {
        let box_agent = self.input_box_agent();
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
            }
            let pressed = async {
                let typing = PaneInput::Keys(std::slice::from_ref(key));
                match &box_agent {
                    Some(agent) => {
                        self.pane.type_if(typing, |capture| self.check_no_dialog(agent, capture, beside)).await
                    }
                    None => self.pane.type_checked(typing).await,
                }
            };
            pressed.await.map_err(after_typing_if(n > 0))?;
        }
        Ok(())
    }

    /// Fails if the agent waits for an answer. A request with keys but without text may still go to a panel, because a
    /// panel can only be used with keys.
    async fn refuse_if_asking(&self, message: &SendMessage<'_>) -> ApiResult<()> {
        let asks = self.pane.state().is_some_and(State::is_waiting);
        if !asks || self.profile != InputProfile::Tui || self.pane.forced {
            return Ok(());
        }
        let capture = self.pane.capture().await?;
        match self.input_box_agent() {
            Some(agent) if message.text.is_none() && capture.reading(&agent).dialog().is_some() => {
                self.check_no_dialog(&agent, &capture, message.keys_beside_box())
            }
            _ => Err(self.dialog_open(&capture)),
        }
    }

    /// The error when a dialog is open. Its hint names the answers that the dialog on the screen accepts.
    fn dialog_open(&self, capture: &PaneScreen) -> ApiError {
        let pane = self.pane.located.reference();
        let choices = OpenDialog::from_screen(self.pane, capture).ok().flatten().map(|open| open.answer_choices());
        let hint = match choices.filter(|choices| !choices.is_empty()) {
            Some(choices) => format!("agtmux respond {pane} {choices}"),
            None => format!("agtmux attach {pane}   (answer the dialog in the pane)"),
        };
        precondition("the agent has an open dialog, and typed text would answer it; nothing was typed", hint)
    }

    /// Waits for the input box and returns its text. Returns `None` if agtmux does not know how to read this program's
    /// input box, or if the box is not visible and the request is forced.
    async fn wait_for_input_box(&self) -> ApiResult<Option<String>> {
        let Some(agent) = self.input_box_agent() else { return Ok(None) };
        let deadline = Instant::now() + READY_TIMEOUT;
        let pane = self.pane.located.reference();
        loop {
            let timed_out = Instant::now() >= deadline;
            self.pane.check_same_agent().await?;
            match self.input_box_text(&agent).await? {
                Some(draft) if draft.is_empty() || self.pane.forced => return Ok(Some(draft)),
                // Check twice: the first capture may show a half-drawn screen.
                Some(_) if timed_out || self.still_has_draft(&agent).await? => {
                    return Err(precondition(
                        "the input box contains unsent text; nothing was typed",
                        format!(
                            "agtmux view-output {pane}   (shows the text); --force-stale submits both texts together"
                        ),
                    ));
                }
                None if self.pane.forced => return Ok(None),
                None if timed_out => {
                    return Err(precondition(
                        "the input box is not on the screen; nothing was typed",
                        format!("agtmux view-output {pane}   (shows the screen); --force-stale types anyway"),
                    ));
                }
                _ => sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn still_has_draft(&self, agent: &KnownAgent) -> ApiResult<bool> {
        sleep(POLL_INTERVAL).await;
        Ok(self.input_box_text(agent).await?.is_some_and(|draft| !draft.is_empty()))
    }

    /// The agent in the pane, if agtmux can read its input box.
    pub(super) fn input_box_agent(&self) -> Option<Arc<KnownAgent>> {
        let located = self.pane.located.agent.as_ref().filter(|_| self.profile == InputProfile::Tui)?;
        let registry = self.pane.actions.0.discovery.registry();
        registry.agent(located.runtime.agent_type.as_str()).filter(|agent| agent.has_input_box_rules()).cloned()
    }

    async fn input_box_text(&self, agent: &KnownAgent) -> ApiResult<Option<String>> {
        self.capture_input_box(agent).await.map(|(typed, _)| typed)
    }

    /// The text in the input box, and the capture that shows the box. Fails if a dialog is open.
    async fn capture_input_box(&self, agent: &KnownAgent) -> ApiResult<(Option<String>, PaneScreen)> {
        let capture = self.pane.capture().await?;
        self.check_no_dialog(agent, &capture, KeysBesideBox::Refused)?;
        Ok((agent.typed_text(&capture.screen), capture))
    }

    fn check_no_dialog(&self, agent: &KnownAgent, capture: &PaneScreen, beside: KeysBesideBox<'_>) -> ApiResult<()> {
        let reading = capture.reading(agent);
        if reading.dialog().is_none() || self.pane.forced {
            return Ok(());
        }
        let allowed = match beside {
            KeysBesideBox::Refused => false,
            KeysBesideBox::Panel => reading.is_panel,
            KeysBesideBox::Dialog(expected) => {
                let open = OpenDialog::from_screen(self.pane, capture)?;
                open.is_some_and(|open| open.fingerprint() == expected)
            }
        };
        if allowed { Ok(()) } else { Err(self.dialog_open(capture)) }
    }

    /// Checks that the agent still runs and is not stopped. If the agent has ended, Enter would make the shell in the
    /// pane run the text as a command. A stopped agent reads no input.
    pub(super) async fn check_agent_alive(&self) -> ApiResult<()> {
        let Some(located_agent) = self.pane.located.agent.as_ref().filter(|_| self.profile == InputProfile::Tui) else {
            return Ok(());
        };
        let agent = located_agent.runtime.process;
        let found = self.pane.processes.try_process(agent.pid).await;
        let found = found.map_err(|error| self.pane.processes_unavailable(&error))?;
        match found.filter(|process| process.start == agent.start && !process.zombie) {
            None => Err(guards::runtime_stale("the agent ended before Enter was pressed".into())),
            Some(process) if process.stopped => {
                let pane = self.pane.located.reference();
                let message = "the text was typed, but the agent is stopped; Enter was not pressed";
                let hint = format!("continue the agent with fg or SIGCONT; then agtmux send {pane} --key Enter");
                Err(ApiError::new(ErrorCode::SendFailed, message).with_hint(hint))
            }
            Some(_) => Ok(()),
        }
    }

    /// Logs the screen of the pane, so that the log shows why a text was not submitted.
    async fn log_screen(&self) {
        if !self.pane.actions.stores_text() {
            return;
        }
        if let Ok(capture) = self.pane.capture().await {
            // Log the text without colour sequences: a sequence inside a secret would prevent its redaction.
            let rows: Vec<&str> = capture.screen.rows().iter().map(|row| row.text()).collect();
            let shown = agtmux_core::sanitize::for_terminal(&agtmux_core::redact::text(&rows.join("\n")));
            tracing::warn!(pane = %self.pane.located.key.pane, shown, "a text was not submitted");
        }
    }
}

fn unverified(bytes: usize, attempts: u32) -> SendReport {
    let (verified, by) = (Verification::Inconclusive, VerifiedBy::Nothing);
    SendReport { verified, by, attempts, bytes: bytes as u64, event_ids: Vec::new(), left_copy_mode: false }
}
