//! `respond`: answers an agent's open dialog. Fails if the dialog has changed.
//!
//! The screen is read directly before each key, and no key is pressed if the screen shows another dialog. A dialog that
//! opens after the answer is left alone, unless the manifest lists it as a follow-up of the answer (`then`).

mod closing;
mod free_text;
mod multi_select;
mod open_dialog;
mod single_select;
mod truncated;

use agtmux_agents::{AnswerMethod, SimpleAnswer};
use agtmux_api::error::ApiResult;
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionOutcome, DialogAnswer, RespondAction, RespondReport};
use agtmux_core::state::State;

use super::perform::ActionRequest;
use super::sender::checked_text;
use super::{ActionPane, Actions, RequestCaller, after_typing, guards, precondition};
use closing::{DialogClosing, wait_until_closed};
pub(super) use open_dialog::OpenDialog;

impl Actions {
    pub(crate) async fn respond(
        &self,
        action: RespondAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<RespondReport>> {
        let request = ActionRequest {
            summary: Some(action.answer.to_string()),
            ..ActionRequest::new(HubRequest::Respond(action.clone()), &action.guards, caller)
        };
        let text = match &action.answer {
            DialogAnswer::Text(text) => match checked_text(text) {
                Ok(text) => Some(text),
                Err(error) => return Err(self.reject(request, error).await),
            },
            _ => None,
        };
        let request = ActionRequest { text: text.as_deref(), ..request };
        self.perform(request, async |pane| respond(pane, &action, text.as_deref()).await).await
    }
}

async fn respond(pane: &ActionPane<'_>, action: &RespondAction, text: Option<&str>) -> ApiResult<RespondReport> {
    if !pane.forced {
        check_asks(pane).await?;
    }
    let open = OpenDialog::wait_for(pane).await?;
    if !pane.forced {
        check_expected_dialog(&open, &action.guards).await?;
    }
    truncated::check(&open, action)?;
    let (answered, closing) = give_answer(&open, &action.answer, text).await?;
    let closing = answer_follow_ups(&open, closing).await.map_err(after_typing)?;
    let asks_now = closing::wait_until_engine_knows(&open, &closing).await;
    let DialogClosing { verified, by, event_ids, .. } = closing;
    Ok(RespondReport { dialog: open.shown, answered, verified, by, asks_now, event_ids })
}

/// Checks that the agent waits for an answer. The screen may show a dialog that the engine has not noticed yet.
async fn check_asks(pane: &ActionPane<'_>) -> ApiResult<()> {
    if pane.state().is_some_and(State::is_waiting) {
        return Ok(());
    }
    let state = pane.state().map_or("no agent runs in the pane", State::as_str);
    let is_shown = match &pane.located.agent {
        Some(_) => OpenDialog::from_screen(pane, &pane.capture().await?)?.is_some(),
        None => false,
    };
    if is_shown && closing::wait_for_known_dialog(pane).await.is_some() {
        return Ok(());
    }
    Err(match is_shown {
        true => precondition(
            format!("the screen may show a dialog, but agtmux is not certain (state: {state}); nothing was typed"),
            format!("agtmux attach {}   (answer the dialog in the pane)", pane.located.reference()),
        ),
        false => {
            precondition(format!("the agent has no open dialog (state: {state})"), "agtmux list panes --needs-action")
        }
    })
}

/// Checks that the dialog on the screen is the one that the request names. If the request names no dialog, checks that
/// it is the dialog that the engine knows.
async fn check_expected_dialog(open: &OpenDialog<'_>, guards: &ActionGuards) -> ApiResult<()> {
    let known = open.pane.agent()?.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
    // If the caller's snapshot has no dialog, the caller cannot mean this one.
    let unseen = guards.snapshot_id.is_some() && known.is_none();
    let expected = match guards.if_dialog.clone().or(known) {
        Some(expected) => Some(expected),
        // The agent has reported a dialog, but the engine does not know its content yet. Wait for the engine, because
        // the screen may show a different dialog.
        None if !unseen => closing::wait_for_known_dialog(open.pane).await,
        None => None,
    };
    if expected.is_none_or(|expected| expected != open.shown.fingerprint) {
        return Err(guards::state_changed("the dialog has changed; nothing was typed".into()));
    }
    Ok(())
}

/// Gives the answer. Returns the label of the answer and how the dialog closed.
async fn give_answer<'a>(
    open: &OpenDialog<'a>,
    answer: &DialogAnswer,
    text: Option<&str>,
) -> ApiResult<(String, DialogClosing<'a>)> {
    match answer {
        DialogAnswer::Approve => approve_or_deny(open, SimpleAnswer::Approve).await,
        DialogAnswer::Deny => approve_or_deny(open, SimpleAnswer::Deny).await,
        DialogAnswer::Option(n) => {
            let label = open.label(*n)?;
            if open.is_text_option(*n) {
                let message = format!("option {n} is a text field");
                return Err(precondition(message, "agtmux respond REF --text 'TEXT'"));
            }
            if open.keys.many.is_some() && open.ticks.iter().any(|(ticked, _)| ticked == n) {
                return multi_select::select_options(open, &[*n]).await;
            }
            single_select::select_option(open, *n).await?;
            Ok((label, wait_until_closed(open).await?))
        }
        DialogAnswer::Options(numbers) => multi_select::select_options(open, numbers).await,
        DialogAnswer::Text(given) => {
            let closing = free_text::answer_with_text(open, text.unwrap_or(given)).await?;
            Ok((given.clone(), closing))
        }
    }
}

async fn approve_or_deny<'a>(open: &OpenDialog<'a>, answer: SimpleAnswer) -> ApiResult<(String, DialogClosing<'a>)> {
    let (method, word) = match answer {
        SimpleAnswer::Approve => (&open.keys.approve, "approve"),
        SimpleAnswer::Deny => (&open.keys.deny, "deny"),
    };
    let unknown = || precondition(format!("agtmux does not know how to {word} this dialog"), open.accepted_answers());
    let label = match method {
        None => return Err(unknown()),
        Some(AnswerMethod::Keys(names)) => {
            single_select::press_answer(open, &single_select::parse_keys(names)?).await?;
            // A dialog without options is identified only by its text, because the same rule may match the next dialog.
            return match open.dialog.options.is_empty() {
                true => Ok((word.to_owned(), closing::wait_until_closed_or_changed(open).await?)),
                false => Ok((word.to_owned(), wait_until_closed(open).await?)),
            };
        }
        Some(AnswerMethod::Option(expected)) => {
            let n = open.option_for_answer(expected).ok_or_else(unknown)?;
            single_select::select_option(open, n).await?;
            open.label(n)?
        }
    };
    Ok((label, wait_until_closed(open).await?))
}

/// Answers the follow-up dialogs that the manifest lists for this dialog, each at most once.
async fn answer_follow_ups<'a>(open: &OpenDialog<'a>, mut closing: DialogClosing<'a>) -> ApiResult<DialogClosing<'a>> {
    let mut left = open.keys.then.clone();
    while let Some((next, answer)) = closing.next.as_ref().and_then(|next| Some((next, left.remove(&next.rule)?))) {
        (_, closing) = Box::pin(approve_or_deny(next, answer)).await?;
    }
    Ok(closing)
}
