//! Answers a dialog with free text.

use std::time::Duration;

use agtmux_agents::{Pattern, TextAnswerMethod};
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::super::pane_screen::{POLL_INTERVAL, PaneScreen};
use super::super::sender::{SendMessage, TextSender, without_whitespace};
use super::super::{ActionPane, after_typing, after_typing_if, guards, precondition};
use super::closing::{DialogClosing, wait_until_closed, wait_until_closed_or};
use super::open_dialog::OpenDialog;
use super::{multi_select, single_select};

/// How long the text field may take to appear. Also how long typed text may take to appear in the field.
const READY_TIMEOUT: Duration = Duration::from_secs(4);
/// To find a typed text on the screen, agtmux searches for this many characters from its end.
const END_CHARS: usize = 24;

pub(super) async fn answer_with_text<'a>(open: &OpenDialog<'a>, text: &str) -> ApiResult<DialogClosing<'a>> {
    let Some(method) = &open.keys.text else {
        return Err(precondition("this dialog accepts no text", open.accepted_answers()));
    };
    if method.one_line && text.contains('\n') {
        return Err(precondition("this dialog accepts only one line of text", "write the text on one line"));
    }
    let option = |label: &Pattern| {
        let missing = || precondition("the dialog's text field is not on the screen", open.accepted_answers());
        open.option_with_label(label).ok_or_else(missing)
    };
    let keys = single_select::parse_keys(&method.keys)?;
    let field = method.at.as_ref().or(method.take.as_ref()).map(option).transpose()?;
    // Ticked options would be submitted together with the text, so untick them.
    let (open, ticked) = match open.keys.many.is_some() {
        true => multi_select::tick_exactly(open, &[]).await?,
        false => (open.clone(), false),
    };
    let open = &open;
    let placed = match field {
        Some(field) if method.at.is_some() => single_select::move_selection(open, field).await,
        Some(field) => single_select::select_option(open, field).await,
        None => Ok(()),
    };
    placed.map_err(after_typing_if(ticked))?;
    let moved = ticked || field.is_some();
    let pressed = match moved {
        true => single_select::press_keys(open, &keys).await,
        false => single_select::press_answer(open, &keys).await,
    };
    pressed.map_err(after_typing_if(moved))?;
    match method.opens {
        true => type_into_next(open, text).await,
        false => type_into_dialog(open, method, text, !moved && keys.is_empty()).await,
    }
    // If a key was pressed before the text, a failure is a failure after typing.
    .map_err(after_typing_if(moved || !keys.is_empty()))
}

/// Types the text into the dialog itself and submits it. If `untouched` is true, this action has not pressed a key yet,
/// and the dialog must be exactly the same as when it was read. If it is false, only the question must be the same.
async fn type_into_dialog<'a>(
    open: &OpenDialog<'a>,
    method: &TextAnswerMethod,
    text: &str,
    untouched: bool,
) -> ApiResult<DialogClosing<'a>> {
    let pane = open.pane;
    let asked = |capture: &PaneScreen| open.still_on(capture).map(|seen| seen.is_some());
    let same = |capture: &PaneScreen| match untouched {
        true => Ok(OpenDialog::from_screen(pane, capture)?.is_some_and(|seen| seen.is_unchanged_since(open))),
        false => asked(capture),
    };
    let before = pane.poll_screen(READY_TIMEOUT, |capture| {
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
    TextSender::for_pane(pane, None)?.paste_and_wait(text, is_still).await?;
    let shows = |capture: &PaneScreen| {
        let shown = capture.screen.inner_text();
        let is_folded = shown.matches("[Past").count() > before.matches("[Past").count();
        is_folded || count(&shown) > count(&before)
    };
    let text_shown = pane.poll_screen(READY_TIMEOUT, |capture| Ok((asked(capture)? && shows(capture)).then_some(())));
    // If the dialog does not show the text, the text went somewhere else, and Enter could answer another dialog.
    let missing = || state_lost("the text was typed but does not show in the dialog; Enter was not pressed");
    text_shown.await.map_err(after_typing)?.ok_or_else(|| after_typing(missing()))?;
    if !method.leave.is_empty() {
        leave_text_field(open, method).await.map_err(after_typing)?;
    }
    // A person may have moved the selection. Enter would then choose another option.
    let field = method.at.as_ref().or(method.take.as_ref()).and_then(|label| open.option_with_label(label));
    let is_there = |seen: OpenDialog<'_>| seen.selected.is_none_or(|at| Some(at) == field);
    let still = |capture: &PaneScreen| match open.still_on(capture)?.is_some_and(is_there) {
        true => Ok(()),
        false => Err(state_lost("the dialog has changed; Enter was not pressed")),
    };
    let entered = pane.type_if(PaneInput::Keys(&[TmuxKey::enter()]), still).await;
    entered.map_err(after_typing)?;
    // Only the typed text distinguishes a dialog without options from the next dialog.
    let all_text = open.dialog.options.is_empty();
    match all_text {
        true => wait_until_closed_or(open, shows).await,
        false => wait_until_closed(open).await,
    }
}

/// Moves from the text field to the submit button, because Enter does not submit from the text field.
async fn leave_text_field(open: &OpenDialog<'_>, method: &TextAnswerMethod) -> ApiResult<()> {
    single_select::press_keys(open, &single_select::parse_keys(&method.leave)?).await?;
    let left = open.pane.poll_screen(READY_TIMEOUT, |capture| {
        let seen = open.still_on(capture)?;
        // Options that a person ticked meanwhile would be submitted with the text.
        let words_only = |seen: &OpenDialog<'_>| seen.ticks.iter().filter(|(_, ticked)| *ticked).count() == 1;
        Ok(seen.filter(|seen| seen.selected.is_none() && words_only(seen)).map(|_| ()))
    });
    left.await?.ok_or_else(|| {
        state_lost("the text was typed, but the submit button could not be selected; nothing was submitted")
    })
}

/// Where agtmux types the text after the answered dialog has closed.
enum TextTarget<'a> {
    Dialog(Box<OpenDialog<'a>>),
    InputBox,
}

/// Types the text into the next dialog or into the input box, after the answered dialog has closed.
async fn type_into_next<'a>(open: &OpenDialog<'a>, text: &str) -> ApiResult<DialogClosing<'a>> {
    let pane = open.pane;
    let agent_type = &pane.agent()?.runtime.agent_type;
    let registry = pane.actions.0.discovery.registry();
    let agent = registry.agent(agent_type.as_str());
    let field = pane.poll_screen(READY_TIMEOUT, |capture| {
        let has_box = || agent.is_some_and(|agent| agent.typed_text(&capture.screen).is_some());
        Ok(match OpenDialog::from_screen(pane, capture)? {
            Some(seen) if seen.is_same_question(open) => None,
            Some(seen) => Some(TextTarget::Dialog(Box::new(seen))),
            None => has_box().then_some(TextTarget::InputBox),
        })
    });
    match field
        .await?
        .ok_or_else(|| state_lost("the dialog was answered, but no text field appeared; the text was not typed"))?
    {
        TextTarget::InputBox => submit_as_prompt(pane, text).await,
        TextTarget::Dialog(next) => match &next.keys.text {
            Some(method) if method.at.is_none() && method.take.is_none() && !method.opens => {
                type_into_dialog(&next, method, text, false).await
            }
            _ => {
                Err(state_lost("the dialog was answered, but the next dialog accepts no text; the text was not typed"))
            }
        },
    }
}

/// Sends the text as a prompt once the engine knows that no dialog is open.
async fn submit_as_prompt<'a>(pane: &ActionPane<'_>, text: &str) -> ApiResult<DialogClosing<'a>> {
    let runtime = pane.agent()?.runtime.id.clone();
    let deadline = Instant::now() + READY_TIMEOUT;
    let located = loop {
        let located = pane.actions.0.engine.locate(PaneRef::Runtime(runtime.clone())).await?;
        let state = located.agent.as_ref().map(|agent| agent.record.state);
        match state {
            Some(State::WaitingApproval | State::WaitingInput) if Instant::now() < deadline => {
                sleep(POLL_INTERVAL).await
            }
            _ => break located,
        }
    };
    let pane = pane.actions.action_pane(located, false)?;
    let message = SendMessage { text: Some(text), keys: &[], enter: true, dialog: None };
    let sent = TextSender::for_pane(&pane, None)?.send(&message).await.map_err(|mut failure| {
        failure.message = format!("the dialog was answered, but the text was not sent: {}", failure.message);
        failure
    })?;
    Ok(DialogClosing { verified: sent.verified, by: sent.by, next: None, event_ids: sent.event_ids })
}

/// The last characters of the last line that is not blank, without whitespace. A narrow text field may show only the
/// end of a text.
fn text_end(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(text);
    let squashed = without_whitespace(last);
    let skipped = squashed.chars().count().saturating_sub(END_CHARS);
    squashed.chars().skip(skipped).collect()
}

fn state_lost(message: &str) -> ApiError {
    let error = ApiError::new(ErrorCode::StateChanged, message);
    error.with_hint(guards::LIST_PANES_HINT)
}
