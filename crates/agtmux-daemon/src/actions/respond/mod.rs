//! Answering what an agent asks, only while it asks just that.
//!
//! What is on the screen is read just before anything is pressed, and nothing is pressed into what it does not show. What an
//! answer brings up is another question, for somebody else to answer, unless the manifest says that it belongs to the answer.

mod closing;
mod many;
mod open;
mod options;
mod words;

use agtmux_agents::{Plain, Way};
use agtmux_api::collect::Ask;
use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionKind, ActionOutcome, Answer, Answered, Guards, RespondAction};
use agtmux_core::state::State;

use super::perform::Request;
use super::repeated::content;
use super::sender::checked;
use super::{Actions, Asker, Failure, Scene, guards};
use closing::{Closing, closed};
use open::Open;

impl Actions {
    pub(crate) async fn respond(
        &self,
        action: RespondAction,
        asker: Asker,
    ) -> Result<ActionOutcome<Answered>, ApiError> {
        let (kind, guards, content) = (ActionKind::Respond, &action.guards, content(ActionKind::Respond, &action));
        let ask = |guards| Ask::Respond(RespondAction { guards, answer: action.answer.clone() });
        let what = Some(action.answer.to_string());
        let request = Request { kind, guards, asker, what, text: None, content, ask: &ask };
        let text = match &action.answer {
            Answer::Text(text) => match checked(text) {
                Ok(text) => Some(text),
                Err(error) => return Err(self.turn_down(request, error).await),
            },
            _ => None,
        };
        let request = Request { text: text.as_deref(), ..request };
        self.perform(request, async |scene| respond(scene, &action.answer, text.as_deref(), &action.guards).await).await
    }
}

async fn respond(scene: &Scene<'_>, answer: &Answer, text: Option<&str>, guards: &Guards) -> Result<Answered, Failure> {
    let asks = matches!(scene.state(), Some(State::WaitingApproval | State::WaitingInput));
    if !asks && !scene.forced {
        let state = scene.state().map_or("no agent lives there", State::as_str);
        return Err(Failure::precondition(format!("it asks nothing: {state}"), "agtmux list panes --needs-action"));
    }
    let open = Open::read(scene).await?;
    if !scene.forced {
        check_meant(scene, &open, guards).await?;
    }
    let (answered, closing) = give(scene, &open, answer, text).await?;
    let closing = finish(scene, &open, closing).await.map_err(Failure::after_all)?;
    closing::known(scene, &open, &closing).await;
    let Closing { verified, by, next, event_ids } = closing;
    Ok(Answered { dialog: open.dialog, answered, verified, by, asks_now: next.map(|next| next.dialog), event_ids })
}

/// What is on the screen is what the caller was told of.
async fn check_meant(scene: &Scene<'_>, open: &Open, guards: &Guards) -> Result<(), Failure> {
    let known = scene.agent()?.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
    // Whoever has looked and has seen no question cannot mean this one.
    let unseen = guards.snapshot_id.is_some() && known.is_none();
    let meant = match guards.if_dialog.clone().or(known) {
        Some(meant) => Some(meant),
        // It was told that it asks, and not yet what: this may be another dialog than the one that was told of.
        None if !unseen => closing::becomes_known(scene).await,
        None => None,
    };
    if meant.is_none_or(|meant| meant != open.dialog.fingerprint) {
        return Err(Failure::refused(guards::changed("it asks something else now; nothing was typed".into())));
    }
    Ok(())
}

/// Gives the answer, and tells in words which that was.
async fn give(
    scene: &Scene<'_>,
    open: &Open,
    answer: &Answer,
    text: Option<&str>,
) -> Result<(String, Closing), Failure> {
    match answer {
        Answer::Approve => plainly(scene, open, Plain::Approve).await,
        Answer::Deny => plainly(scene, open, Plain::Deny).await,
        Answer::Option(n) => {
            let label = open.label(*n)?;
            if open.is_for_words(*n) {
                let message = format!("option {n} is the place for words of your own");
                return Err(Failure::precondition(message, "agtmux respond REF --text 'your words'"));
            }
            if open.keys.many.is_some() && open.ticks.iter().any(|(ticked, _)| ticked == n) {
                return many::take(scene, open, &[*n]).await;
            }
            options::take(scene, open, *n).await?;
            Ok((label, closed(scene, open).await?))
        }
        Answer::Options(numbers) => many::take(scene, open, numbers).await,
        Answer::Text(given) => {
            let closing = words::say(scene, open, text.unwrap_or(given)).await?;
            Ok((given.clone(), closing))
        }
    }
}

async fn plainly(scene: &Scene<'_>, open: &Open, answer: Plain) -> Result<(String, Closing), Failure> {
    let (way, word) = match answer {
        Plain::Approve => (&open.keys.approve, "approve"),
        Plain::Deny => (&open.keys.deny, "deny"),
    };
    let unknown = || Failure::precondition(format!("it is not known how to {word} this"), open.takes());
    let said = match way {
        None => return Err(unknown()),
        Some(Way::Keys(names)) => {
            options::press_answer(scene, open, &options::parsed(names)?).await?;
            // What has no options is known by its words only, and the next may be asked by the same rule.
            return match open.dialog.options.is_empty() {
                true => Ok((word.to_owned(), closing::closed_as_it_was(scene, open).await?)),
                false => Ok((word.to_owned(), closed(scene, open).await?)),
            };
        }
        Some(Way::Option(meant)) => {
            let n = open.option_for(meant).ok_or_else(unknown)?;
            options::take(scene, open, n).await?;
            open.label(n)?
        }
    };
    Ok((said, closed(scene, open).await?))
}

/// What the answer has brought up and what belongs to it is answered as well, each thing once.
async fn finish(scene: &Scene<'_>, open: &Open, mut closing: Closing) -> Result<Closing, Failure> {
    let mut left = open.keys.then.clone();
    while let Some((next, answer)) = closing.next.as_ref().and_then(|next| Some((next, left.remove(&next.rule)?))) {
        (_, closing) = Box::pin(plainly(scene, next, answer)).await?;
    }
    Ok(closing)
}
