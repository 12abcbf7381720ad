//! `last`: the last answers of an agent, from the conversation that the agent stores, otherwise from its screen.

mod stored;

use std::time::{Duration, Instant};

use agtmux_agents::{ConversationTurn, TurnEnding};
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionOutcome, AnswerEnding, AnswerSource, AnsweredTurn, LastAction, LastReport};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use super::perform::ActionRequest;
use super::resume::{check_pane_epoch, last_runtime_in_pane};
use super::{ActionPane, Actions, RequestCaller};
use crate::remote;
use crate::store::past_runtimes::{self, PastRuntime};
use stored::StoredConversation;

/// The most turns that one request may read.
const MAX_TURNS: u32 = 1000;
/// Agents report the end of a turn up to this long before they have stored the answer.
const STORE_DELAY: SignedDuration = SignedDuration::from_secs(6);
const POLL_INTERVAL: Duration = Duration::from_millis(40);

impl Actions {
    pub(crate) async fn last(&self, action: LastAction, caller: RequestCaller) -> ApiResult<ActionOutcome<LastReport>> {
        let turns = action.turns.unwrap_or(1);
        let wanted = self.named_runtime(&action.guards.r#ref).await;
        let past = wanted.as_ref().ok().and_then(|past| past.as_ref()?.pane_ref.as_ref()).map(PaneRef::to_string);
        // An ended agent cannot be located, but its pane can.
        let reference = past.unwrap_or_else(|| action.guards.r#ref.clone());
        let guards = ActionGuards { r#ref: reference, ..action.guards.clone() };
        let request = ActionRequest {
            summary: Some(format!("turns {turns}")),
            ..ActionRequest::new(HubRequest::Last(action.clone()), &guards, caller)
        };
        let wanted = match check_request(&action, turns).and(wanted) {
            Ok(wanted) => wanted,
            Err(error) => return Err(self.reject(request, error).await),
        };
        let done = self.perform(request, async |pane| last_turns(pane, wanted, turns as usize).await).await?;
        match done.target == TargetName::LOCAL {
            true => Ok(done),
            false => Ok(ActionOutcome { report: remote::sanitize_last(done.report, turns as usize), ..done }),
        }
    }
}

fn check_request(action: &LastAction, turns: u32) -> ApiResult<()> {
    let refused = |message: String, hint: &str| Err(ApiError::new(ErrorCode::BadRequest, message).with_hint(hint));
    if !(1..=MAX_TURNS).contains(&turns) {
        return refused(format!("the number of turns must be between 1 and {MAX_TURNS}"), "agtmux last REF --turns 10");
    }
    match action.guards.request_ref {
        Some(_) => refused(
            "last does not accept a request_ref: answers are not stored and cannot be repeated".into(),
            "leave out request_ref and run the command again",
        ),
        None => Ok(()),
    }
}

async fn last_turns(pane: &ActionPane<'_>, wanted: Option<PastRuntime>, most: usize) -> ApiResult<LastReport> {
    let past = runtime_in(pane, wanted).await?;
    if let Some(conversation) = StoredConversation::of(pane, &past)
        && let Some(turns) = settled_turns(pane, &conversation, most).await
    {
        let outdated = is_outdated(pane, turns.last());
        let turns = turns.into_iter().map(answered_turn).collect();
        return Ok(LastReport { source: AnswerSource::Transcript, session: past.session, outdated, turns });
    }
    let turns = vec![shown_turn(pane, &past).await?];
    Ok(LastReport { source: AnswerSource::Screen, session: past.session, outdated: false, turns })
}

/// The wanted runtime, the one that runs in the pane, or the last one that ran there.
async fn runtime_in(pane: &ActionPane<'_>, wanted: Option<PastRuntime>) -> ApiResult<PastRuntime> {
    if let Some(wanted) = wanted {
        if wanted.has_ended {
            check_pane_epoch(&pane.located, pane.forced, &wanted)?;
        }
        return Ok(wanted);
    }
    let Some(agent) = &pane.located.agent else { return last_runtime_in_pane(pane).await };
    let id = agent.runtime.id.clone();
    let stored = pane.actions.0.store.read(move |connection| past_runtimes::by_id(connection, id.as_str())).await?;
    match stored {
        Some(past) => Ok(past),
        None => last_runtime_in_pane(pane).await,
    }
}

/// The last turns of the conversation. If the agent has just ended a turn, waits until its answer is stored.
async fn settled_turns(
    pane: &ActionPane<'_>,
    conversation: &StoredConversation,
    most: usize,
) -> Option<Vec<ConversationTurn>> {
    let started = Instant::now();
    loop {
        let turns = conversation.read(most).await;
        let waited = SignedDuration::try_from(started.elapsed()).unwrap_or(SignedDuration::MAX);
        if waited > STORE_DELAY || !is_behind(pane, turns.as_deref().and_then(<[_]>::last)) {
            return turns;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Whether the agent has just ended a turn, and the stored conversation does not contain the end of that turn yet.
fn is_behind(pane: &ActionPane<'_>, newest: Option<&ConversationTurn>) -> bool {
    let Some(agent) = &pane.located.agent else { return false };
    let now = pane.actions.0.clock.now();
    let (record, submission) = (&agent.record, agent.submission.as_ref());
    let ended = matches!(record.state, State::Completed | State::Idle | State::Error);
    let is_recent = |at: Timestamp| now.duration_since(at) < STORE_DELAY;
    if !ended || !(is_recent(record.since) || submission.is_some_and(|sent| is_recent(sent.at))) {
        return false;
    }
    let is_open = newest.is_none_or(|turn| turn.ending == TurnEnding::Open);
    is_outdated(pane, newest) || newest.is_none() || (record.state == State::Completed && is_open)
}

/// Whether the newest turn began before agtmux last submitted a text to the agent.
fn is_outdated(pane: &ActionPane<'_>, newest: Option<&ConversationTurn>) -> bool {
    let submission = pane.located.agent.as_ref().and_then(|agent| agent.submission.as_ref());
    let Some((sent, began)) = submission.zip(newest.and_then(|turn| turn.prompted_at)) else { return false };
    // An agent may note the time of a prompt before agtmux notes that of the Enter key.
    began + SignedDuration::from_secs(1) < sent.at
}

/// What the screen shows of the current turn.
async fn shown_turn(pane: &ActionPane<'_>, past: &PastRuntime) -> ApiResult<AnsweredTurn> {
    let capture = pane.capture().await?;
    let registry = pane.actions.0.discovery.registry();
    let rows = match registry.agent(&past.agent_type) {
        Some(agent) => agent.shown_turn(&capture.screen),
        None => capture.screen.rows().iter().map(|row| row.text().to_owned()).collect(),
    };
    let answer = Some(rows.join("\n")).filter(|text| !text.trim().is_empty());
    let ending = AnswerEnding::Unknown;
    Ok(AnsweredTurn { prompt: None, prompted_at: None, answer, answered_at: None, ending })
}

fn answered_turn(turn: ConversationTurn) -> AnsweredTurn {
    let ConversationTurn { prompt, prompted_at, answer, answered_at, ending } = turn;
    let ending = match ending {
        TurnEnding::Answered => AnswerEnding::Answered,
        TurnEnding::Interrupted => AnswerEnding::Interrupted,
        TurnEnding::Open => AnswerEnding::Open,
    };
    AnsweredTurn { prompt, prompted_at, answer, answered_at, ending }
}
