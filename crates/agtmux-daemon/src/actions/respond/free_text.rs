//! Answers a dialog with free text.

use std::time::Duration;

use agtmux_agents::{Pattern, TextAnswerMethod};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::super::pane_screen::PaneScreen;
use super::super::sender::{SendMessage, TextSender, without_whitespace};
use super::super::{ActionFailure, ActionPane, guards};
use super::closing::{DialogClosing, wait_until_closed, wait_until_closed_or};
use super::open_dialog::OpenDialog;
use super::{multi_select, single_select};

/// How long the text field may take to appear, and the typed text to show in it.
const READY_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// How many characters at the end of the text are searched for on the screen.
const END_CHARS: usize = 24;

pub(super) async fn answer_with_text(
    action_pane: &ActionPane<'_>,
    open: &OpenDialog,
    text: &str,
) -> Result<DialogClosing, ActionFailure> {
    let Some(method) = &open.keys.text else {
        return Err(ActionFailure::precondition("this dialog accepts no text", open.accepted_answers()));
    };
    if method.one_line && text.contains('\n') {
        return Err(ActionFailure::precondition(
            "this dialog accepts only one line of text",
            "write the text on one line",
        ));
    }
    let option = |label: &Pattern| {
        let missing =
            || ActionFailure::precondition("the dialog's text field is not on the screen", open.accepted_answers());
        open.option_with_label(label).ok_or_else(missing)
    };
    let keys = single_select::parse_keys(&method.keys)?;
    let field = method.at.as_ref().or(method.take.as_ref()).map(option).transpose()?;
    // Ticked options would be submitted together with the text, so untick them.
    let (open, ticked) = match open.keys.many.is_some() {
        true => multi_select::tick_exactly(action_pane, open, &[]).await?,
        false => (open.clone(), false),
    };
    let open = &open;
    let placed = match field {
        Some(field) if method.at.is_some() => single_select::move_selection(action_pane, open, field).await,
        Some(field) => single_select::select_option(action_pane, open, field).await,
        None => Ok(()),
    };
    placed.map_err(|failure| if ticked { failure.after_typing() } else { failure })?;
    let moved = ticked || field.is_some();
    let pressed = match moved {
        true => single_select::press_keys(action_pane, open, &keys).await,
        false => single_select::press_answer(action_pane, open, &keys).await,
    };
    pressed.map_err(|failure| if moved { failure.after_typing() } else { failure })?;
    match method.opens {
        true => type_into_next(action_pane, open, text).await,
        false => type_into_dialog(action_pane, open, method, text, !moved && keys.is_empty()).await,
    }
    // Only the first key can be refused before anything was typed.
    .map_err(|failure| if moved || !keys.is_empty() { failure.after_typing() } else { failure })
}

/// Types the text into the dialog itself. With `untouched` the dialog must be exactly as it was read.
async fn type_into_dialog(
    action_pane: &ActionPane<'_>,
    open: &OpenDialog,
    method: &TextAnswerMethod,
    text: &str,
    untouched: bool,
) -> Result<DialogClosing, ActionFailure> {
    let asked = |capture: &PaneScreen| {
        Ok::<_, ActionFailure>(
            OpenDialog::from_screen(action_pane, capture)?.is_some_and(|seen| seen.is_same_question(open)),
        )
    };
    let same = |capture: &PaneScreen| match untouched {
        true => Ok(OpenDialog::from_screen(action_pane, capture)?.is_some_and(|seen| seen.is_unchanged_since(open))),
        false => asked(capture),
    };
    let before = poll_screen(action_pane, |capture| {
        let shown = capture.screen.inner_text();
        Ok((same(capture)? && method.ready.as_ref().is_none_or(|ready| ready.is_match(&shown))).then_some(shown))
    });
    let before = before.await?.ok_or_else(|| state_lost("the dialog's text field did not appear"))?;
    let end = text_end(text);
    let count = |shown: &str| without_whitespace(shown).matches(&end).count();
    let is_still = |capture: &PaneScreen| match same(capture)? {
        true => Ok(()),
        false => Err(state_lost("the dialog has changed; nothing was typed")),
    };
    TextSender::for_pane(action_pane, None)?.paste_and_wait(text, is_still).await?;
    let shows = |capture: &PaneScreen| {
        let shown = capture.screen.inner_text();
        let is_folded = shown.matches("[Past").count() > before.matches("[Past").count();
        is_folded || count(&shown) > count(&before)
    };
    let text_shown = poll_screen(action_pane, |capture| Ok((asked(capture)? && shows(capture)).then_some(())));
    // The text went somewhere else, and Enter could answer something else.
    let missing = || state_lost("the text was typed but does not show in the dialog; Enter was not pressed");
    text_shown.await.map_err(ActionFailure::after_typing)?.ok_or_else(|| missing().after_typing())?;
    if !method.leave.is_empty() {
        leave_text_field(action_pane, open, method).await.map_err(ActionFailure::after_typing)?;
    }
    // A person may have moved the selection. Enter would then take another option.
    let field = method.at.as_ref().or(method.take.as_ref()).and_then(|label| open.option_with_label(label));
    let is_there = |seen: &OpenDialog| seen.is_same_question(open) && seen.selected.is_none_or(|at| Some(at) == field);
    let still = |capture: &PaneScreen| match OpenDialog::from_screen(action_pane, capture)?
        .is_some_and(|seen| is_there(&seen))
    {
        true => Ok(()),
        false => Err(state_lost("the dialog has changed; Enter was not pressed")),
    };
    let entered = action_pane.type_if(PaneInput::Keys(&[TmuxKey::enter()]), still).await;
    entered.map_err(ActionFailure::after_typing)?;
    // A dialog without options looks like the next one, except for the typed text.
    let all_text = open.dialog.options.is_empty();
    match all_text {
        true => wait_until_closed_or(action_pane, open, shows).await,
        false => wait_until_closed(action_pane, open).await,
    }
}

/// Moves from the text field to the submit button. In the text field Enter would not submit.
async fn leave_text_field(
    action_pane: &ActionPane<'_>,
    open: &OpenDialog,
    method: &TextAnswerMethod,
) -> Result<(), ActionFailure> {
    single_select::press_keys(action_pane, open, &single_select::parse_keys(&method.leave)?).await?;
    let left = poll_screen(action_pane, |capture| {
        let seen = OpenDialog::from_screen(action_pane, capture)?.filter(|seen| seen.is_same_question(open));
        // Options that a person ticked meanwhile would be submitted with the text.
        let words_only = |seen: &OpenDialog| seen.ticks.iter().filter(|(_, ticked)| *ticked).count() == 1;
        Ok(seen.filter(|seen| seen.selected.is_none() && words_only(seen)).map(|_| ()))
    });
    left.await?.ok_or_else(|| {
        state_lost("the text was typed, but the submit button could not be selected; nothing was submitted")
    })
}

/// What accepts the text after the dialog closed.
enum TextTarget {
    Dialog(Box<OpenDialog>),
    InputBox,
}

/// Types the text into the dialog or input box that replaced the dialog.
async fn type_into_next(
    action_pane: &ActionPane<'_>,
    open: &OpenDialog,
    text: &str,
) -> Result<DialogClosing, ActionFailure> {
    let agent_type = &action_pane.agent()?.runtime.agent_type;
    let registry = action_pane.actions.0.discovery.registry();
    let agent = registry.agent(agent_type.as_str());
    let field = poll_screen(action_pane, |capture| {
        let has_box = || agent.is_some_and(|agent| agent.typed_text(&capture.screen).is_some());
        Ok(match OpenDialog::from_screen(action_pane, capture)? {
            Some(seen) if seen.is_same_question(open) => None,
            Some(seen) => Some(TextTarget::Dialog(Box::new(seen))),
            None => has_box().then_some(TextTarget::InputBox),
        })
    });
    match field
        .await?
        .ok_or_else(|| state_lost("the dialog was answered, but no text field appeared; the text was not typed"))?
    {
        TextTarget::InputBox => submit_as_prompt(action_pane, text).await,
        TextTarget::Dialog(next) => match &next.keys.text {
            Some(method) if method.at.is_none() && method.take.is_none() && !method.opens => {
                type_into_dialog(action_pane, &next, method, text, false).await
            }
            _ => {
                Err(state_lost("the dialog was answered, but the next dialog accepts no text; the text was not typed"))
            }
        },
    }
}

/// Sends the text as a prompt once the engine knows that no dialog is open.
async fn submit_as_prompt(action_pane: &ActionPane<'_>, text: &str) -> Result<DialogClosing, ActionFailure> {
    let runtime = action_pane.agent()?.runtime.id.clone();
    let deadline = Instant::now() + READY_TIMEOUT;
    let located = loop {
        let located = action_pane.actions.0.engine.locate(PaneRef::Runtime(runtime.clone())).await?;
        let state = located.agent.as_ref().map(|agent| agent.record.state);
        match state {
            Some(State::WaitingApproval | State::WaitingInput) if Instant::now() < deadline => {
                sleep(POLL_INTERVAL).await
            }
            _ => break located,
        }
    };
    let action_pane = action_pane.actions.action_pane(located, false)?;
    let message = SendMessage { text: Some(text), keys: &[], enter: true };
    let sent = TextSender::for_pane(&action_pane, None)?.send(&message).await.map_err(|mut failure| {
        failure.error.message =
            format!("the dialog was answered, but the text was not sent: {}", failure.error.message);
        failure
    })?;
    Ok(DialogClosing { verified: sent.verified, by: sent.by, next: None, event_ids: sent.event_ids })
}

/// Captures the screen until `shows` returns a value. `None` on timeout.
async fn poll_screen<T>(
    action_pane: &ActionPane<'_>,
    mut shows: impl FnMut(&PaneScreen) -> Result<Option<T>, ActionFailure>,
) -> Result<Option<T>, ActionFailure> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let timed_out = Instant::now() >= deadline;
        if let Some(found) = shows(&action_pane.capture().await?)? {
            return Ok(Some(found));
        }
        if timed_out {
            return Ok(None);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The end of the text without whitespace. A narrow field may show no more than that.
fn text_end(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    let squashed = without_whitespace(last);
    let skipped = squashed.chars().count().saturating_sub(END_CHARS);
    squashed.chars().skip(skipped).collect()
}

fn state_lost(message: &str) -> ActionFailure {
    let error = ApiError::new(ErrorCode::StateChanged, message);
    ActionFailure::refused(error.with_hint(guards::LIST_PANES_HINT))
}
