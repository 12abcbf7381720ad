//! Answering what an agent asks, only while it asks just that.

use std::time::Duration;

use agtmux_agents::{AnswerKeys, OptionKeys, Reading};
use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionKind, ActionOutcome, Answer, Answered, RespondAction, Verified, VerifiedBy};
use agtmux_core::dialog::Dialog;
use agtmux_core::state::State;
use agtmux_tmux::Key;
use tokio::time::{Instant, sleep};

use super::perform::{Request, content};
use super::sender::Sender;
use super::{Actions, Asker, Failure, Scene, guards};

/// How long an agent takes at the most to close what was answered.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(40);

impl Actions {
    pub(crate) async fn respond(
        &self,
        action: RespondAction,
        asker: Asker,
    ) -> Result<ActionOutcome<Answered>, ApiError> {
        let text = match &action.answer {
            Answer::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let content = content(ActionKind::Respond, &action);
        let request = Request {
            kind: ActionKind::Respond,
            guards: &action.guards,
            asker,
            what: Some(action.answer.to_string()),
            text,
            content,
        };
        let wanted = action.guards.if_dialog.as_deref();
        self.perform(request, async |scene| respond(scene, &action.answer, wanted).await).await
    }
}

/// The dialog that is on the screen at this moment, and how it is answered.
struct Open {
    dialog: Dialog,
    keys: AnswerKeys,
}

async fn respond(scene: &Scene<'_>, answer: &Answer, wanted: Option<&str>) -> Result<Answered, Failure> {
    let asks = matches!(scene.state(), Some(State::WaitingApproval | State::WaitingInput));
    if !asks && !scene.forced {
        let state = scene.state().map_or("no agent lives there", State::as_str);
        return Err(Failure::precondition(format!("it asks nothing: {state}"), "agtmux list panes --needs-action"));
    }
    let open = open_dialog(scene).await?;
    let known = scene.agent()?.dialog.as_ref().map(|dialog| dialog.fingerprint.as_str());
    let fingerprint = open.dialog.fingerprint.as_str();
    let meant = wanted.or(known).is_none_or(|wanted| wanted == fingerprint);
    if !meant && !scene.forced {
        return Err(Failure::refused(guards::changed("it asks something else now".into())));
    }
    let (keys, answered) = keys_for(&open, answer)?;
    let sender = Sender::of(scene, None)?;
    sender.press(&keys).await?;
    let (verified, by) = closed(scene, fingerprint).await?;
    Ok(Answered { dialog: open.dialog, answered, verified, by, event_ids: Vec::new() })
}

async fn reading(scene: &Scene<'_>) -> Result<Reading, Failure> {
    let agent_type = scene.agent()?.runtime.agent_type.clone();
    let registry = scene.actions.0.discovery.registry();
    Ok(scene.look().await?.reading(&registry, agent_type.as_str()))
}

async fn open_dialog(scene: &Scene<'_>) -> Result<Open, Failure> {
    let agent_type = scene.agent()?.runtime.agent_type.clone();
    let registry = scene.actions.0.discovery.registry();
    let reading = reading(scene).await?;
    let rule = reading.stands.first().map(|said| said.rule.name.clone()).unwrap_or_default();
    match (reading.dialog, registry.answers(agent_type.as_str(), &rule)) {
        (Some(dialog), Some(keys)) => Ok(Open { dialog, keys: keys.clone() }),
        _ => Err(Failure::refused(guards::changed("its dialog is not on its screen".into()))),
    }
}

/// The keys, and in words what they say.
fn keys_for(open: &Open, answer: &Answer) -> Result<(Vec<Key>, String), Failure> {
    let Open { dialog, keys } = open;
    let numbers: Vec<String> = dialog.options.iter().map(|option| option.n.to_string()).collect();
    let instead = || match numbers.is_empty() {
        true => "answer it in its pane: agtmux attach".to_owned(),
        false => format!("answer with one of {}, or in its pane: agtmux attach", numbers.join(", ")),
    };
    let known = |names: &Option<Vec<String>>, what: &str| match names {
        Some(names) => parsed(names),
        None => Err(Failure::precondition(format!("no key is known that would {what} this"), instead())),
    };
    match answer {
        Answer::Approve => Ok((known(&keys.approve, "approve")?, "approve".into())),
        Answer::Deny => Ok((known(&keys.deny, "deny")?, "deny".into())),
        Answer::Option(n) => {
            let Some(option) = dialog.options.iter().find(|option| option.n == *n) else {
                return Err(Failure::precondition(format!("it offers no option {n}"), instead()));
            };
            let label = format!("{n}. {}", option.label);
            match keys.option {
                Some(OptionKeys::Digits) => Ok((n.to_string().chars().map(Key::Character).collect(), label)),
                Some(OptionKeys::Walk) => {
                    let down = (1..*n).map(|_| Key::Named("Down".into()));
                    Ok((down.chain([Key::enter()]).collect(), label))
                }
                None => Err(Failure::precondition("its options cannot be taken by number", instead())),
            }
        }
        Answer::Text(_) => Err(Failure::precondition("this dialog takes no text", instead())),
    }
}

fn parsed(names: &[String]) -> Result<Vec<Key>, Failure> {
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::BadKey| {
            Failure::precondition(format!("its manifest has a key that is none: {error}"), "agtmux adapters check FILE")
        };
        name.parse::<Key>().map_err(bad)
    };
    names.iter().map(key).collect()
}

/// Whether the dialog went away.
async fn closed(scene: &Scene<'_>, fingerprint: &str) -> Result<(Verified, VerifiedBy), Failure> {
    let deadline = Instant::now() + CLOSED_WITHIN;
    loop {
        sleep(LOOK_EVERY).await;
        // Whatever happens now, the keys were pressed.
        let reading = reading(scene).await.map_err(Failure::after_all)?;
        if reading.dialog.is_none_or(|dialog| dialog.fingerprint != fingerprint) {
            return Ok((Verified::Confirmed, VerifiedBy::Dialog));
        }
        if Instant::now() >= deadline {
            return Ok((Verified::Failed, VerifiedBy::Dialog));
        }
    }
}
