//! Answering what an agent asks, only while it asks just that.
//!
//! What is on the screen is read just before anything is pressed, and nothing is pressed into what it does not show. What an
//! answer brings up is another question, for somebody else to answer, unless the manifest says that it belongs to the answer.

mod closing;
mod free_text;
mod multi_select;
mod open_dialog;
mod single_select;

use agtmux_agents::{AnswerMethod, SimpleAnswer};
use agtmux_api::collect::HubRequest;
use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, DialogAnswer, RespondAction, RespondReport};
use agtmux_core::state::State;

use super::idempotency::request_content;
use super::perform::ActionRequest;
use super::sender::checked_text;
use super::{ActionFailure, ActionPane, Actions, RequestCaller, guards};
use closing::{DialogClosing, wait_until_closed};
use open_dialog::OpenDialog;

impl Actions {
    pub(crate) async fn respond(
        &self,
        action: RespondAction,
        asker: RequestCaller,
    ) -> Result<ActionOutcome<RespondReport>, ApiError> {
        let (kind, guards, content) =
            (ActionKind::Respond, &action.guards, request_content(ActionKind::Respond, &action));
        let ask = |guards| HubRequest::Respond(RespondAction { guards, answer: action.answer.clone() });
        let what = Some(action.answer.to_string());
        let request =
            ActionRequest { kind, guards, caller: asker, summary: what, text: None, content, remote_request: &ask };
        let text = match &action.answer {
            DialogAnswer::Text(text) => match checked_text(text) {
                Ok(text) => Some(text),
                Err(error) => return Err(self.reject(request, error).await),
            },
            _ => None,
        };
        let request = ActionRequest { text: text.as_deref(), ..request };
        self.perform(request, async |scene| respond(scene, &action.answer, text.as_deref(), &action.guards).await).await
    }
}

async fn respond(
    scene: &ActionPane<'_>,
    answer: &DialogAnswer,
    text: Option<&str>,
    guards: &ActionGuards,
) -> Result<RespondReport, ActionFailure> {
    let asks = matches!(scene.state(), Some(State::WaitingApproval | State::WaitingInput));
    if !asks && !scene.forced {
        let state = scene.state().map_or("no agent lives there", State::as_str);
        return Err(ActionFailure::precondition(
            format!("it asks nothing: {state}"),
            "agtmux list panes --needs-action",
        ));
    }
    let open = OpenDialog::wait_for(scene).await?;
    if !scene.forced {
        check_expected_dialog(scene, &open, guards).await?;
    }
    let (answered, closing) = give_answer(scene, &open, answer, text).await?;
    let closing = answer_follow_ups(scene, &open, closing).await.map_err(ActionFailure::after_typing)?;
    closing::wait_until_engine_knows(scene, &open, &closing).await;
    let DialogClosing { verified, by, next, event_ids } = closing;
    Ok(RespondReport { dialog: open.dialog, answered, verified, by, asks_now: next.map(|next| next.dialog), event_ids })
}

/// What is on the screen is what the caller was told of.
async fn check_expected_dialog(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    guards: &ActionGuards,
) -> Result<(), ActionFailure> {
    let known = scene.agent()?.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
    // Whoever has looked and has seen no question cannot mean this one.
    let unseen = guards.snapshot_id.is_some() && known.is_none();
    let meant = match guards.if_dialog.clone().or(known) {
        Some(meant) => Some(meant),
        // It was told that it asks, and not yet what: this may be another dialog than the one that was told of.
        None if !unseen => closing::wait_for_known_dialog(scene).await,
        None => None,
    };
    if meant.is_none_or(|meant| meant != open.dialog.fingerprint) {
        return Err(ActionFailure::refused(guards::state_changed(
            "it asks something else now; nothing was typed".into(),
        )));
    }
    Ok(())
}

/// Gives the answer, and tells in words which that was.
async fn give_answer(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    answer: &DialogAnswer,
    text: Option<&str>,
) -> Result<(String, DialogClosing), ActionFailure> {
    match answer {
        DialogAnswer::Approve => approve_or_deny(scene, open, SimpleAnswer::Approve).await,
        DialogAnswer::Deny => approve_or_deny(scene, open, SimpleAnswer::Deny).await,
        DialogAnswer::Option(n) => {
            let label = open.label(*n)?;
            if open.is_text_option(*n) {
                let message = format!("option {n} is the place for words of your own");
                return Err(ActionFailure::precondition(message, "agtmux respond REF --text 'your words'"));
            }
            if open.keys.many.is_some() && open.ticks.iter().any(|(ticked, _)| ticked == n) {
                return multi_select::select_options(scene, open, &[*n]).await;
            }
            single_select::select_option(scene, open, *n).await?;
            Ok((label, wait_until_closed(scene, open).await?))
        }
        DialogAnswer::Options(numbers) => multi_select::select_options(scene, open, numbers).await,
        DialogAnswer::Text(given) => {
            let closing = free_text::answer_with_text(scene, open, text.unwrap_or(given)).await?;
            Ok((given.clone(), closing))
        }
    }
}

async fn approve_or_deny(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    answer: SimpleAnswer,
) -> Result<(String, DialogClosing), ActionFailure> {
    let (way, word) = match answer {
        SimpleAnswer::Approve => (&open.keys.approve, "approve"),
        SimpleAnswer::Deny => (&open.keys.deny, "deny"),
    };
    let unknown =
        || ActionFailure::precondition(format!("it is not known how to {word} this"), open.accepted_answers());
    let said = match way {
        None => return Err(unknown()),
        Some(AnswerMethod::Keys(names)) => {
            single_select::press_answer(scene, open, &single_select::parse_keys(names)?).await?;
            // What has no options is known by its words only, and the next may be asked by the same rule.
            return match open.dialog.options.is_empty() {
                true => Ok((word.to_owned(), closing::wait_until_closed_or_changed(scene, open).await?)),
                false => Ok((word.to_owned(), wait_until_closed(scene, open).await?)),
            };
        }
        Some(AnswerMethod::Option(meant)) => {
            let n = open.option_for_answer(meant).ok_or_else(unknown)?;
            single_select::select_option(scene, open, n).await?;
            open.label(n)?
        }
    };
    Ok((said, wait_until_closed(scene, open).await?))
}

/// What the answer has brought up and what belongs to it is answered as well, each thing once.
async fn answer_follow_ups(
    scene: &ActionPane<'_>,
    open: &OpenDialog,
    mut closing: DialogClosing,
) -> Result<DialogClosing, ActionFailure> {
    let mut left = open.keys.then.clone();
    while let Some((next, answer)) = closing.next.as_ref().and_then(|next| Some((next, left.remove(&next.rule)?))) {
        (_, closing) = Box::pin(approve_or_deny(scene, next, answer)).await?;
    }
    Ok(closing)
}
