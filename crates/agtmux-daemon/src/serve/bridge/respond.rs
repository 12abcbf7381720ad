//! `POST /api/respond/<agent_id>`: answers an agent's open dialog.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionGuards, BridgeAvailability, BridgeError, BridgeRespondReply, BridgeRespondRequest, DialogAnswer,
    RespondAction, Verification,
};
use agtmux_core::state::State as AgentState;
use axum::Json;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::failure::BridgeFailure;
use super::request;
use crate::actions::RequestCaller;
use crate::bridge::{BridgeTurn, TurnIntent, bridge_state};
use crate::serve::ServeContext;
use crate::serve::extract::{ErrorResponse, JsonBody, NameInPath};
use crate::store::agents;

/// How long to wait until an answer changes the state of the agent.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request waits until other requests have finished answering the same agent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Answer an agent's open dialog.
#[utoipa::path(post, path = "/api/respond/{agent_id}", params(("agent_id" = String, Path)), request_body = BridgeRespondRequest,
    responses((status = 200, body = BridgeRespondReply), (status = 400, body = BridgeError), (status = 404, body = BridgeError), (status = 409, body = BridgeError), (status = 502, body = BridgeError),
    (status = 503, body = BridgeError)))]
pub(crate) async fn post_respond(
    context: ServeContext,
    caller: RequestCaller,
    agent_id: Result<NameInPath, ErrorResponse>,
    body: Result<JsonBody<Value>, ErrorResponse>,
) -> Result<Json<BridgeRespondReply>, BridgeFailure> {
    let NameInPath(agent_id) = agent_id.map_err(|_| no_such_agent())?;
    let JsonBody(body) = body?;
    let request = request::read(&body)?;
    let answers = request::answers(&request)?;
    let runtime_id = runtime_of(&context, &agent_id).await?;
    if context.bridge.runtimes_of(&agent_id).len() > 1 {
        let message = "the agent's session is open in several panes";
        let hint = "use POST /v1/actions/respond with the runtime:ID of one pane; GET /v1/panes lists the panes";
        return Err(BridgeFailure::new("wrong_state", ErrorCode::RefAmbiguous, message, hint));
    }
    let task = tokio::spawn(async move { respond(&context, caller, &agent_id, &runtime_id, request, answers).await });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "answering a dialog panicked");
        Err(ApiError::new(ErrorCode::Internal, "answering the dialog failed unexpectedly")
            .with_hint("agtmux daemon logs")
            .into())
    })
}

async fn respond(
    context: &ServeContext,
    caller: RequestCaller,
    agent_id: &str,
    runtime_id: &str,
    request: BridgeRespondRequest,
    answers: Vec<DialogAnswer>,
) -> Result<Json<BridgeRespondReply>, BridgeFailure> {
    let Ok(_lock) = timeout(LOCK_TIMEOUT, context.bridge.lock_answers(agent_id)).await else {
        let error = ApiError::new(ErrorCode::Precondition, "another client is answering this agent");
        return Err(error.with_hint("check the agent's dialog, then try again").into());
    };
    let mut changes = context.bridge.ring().subscribe_silently();
    let before = context.bridge.state_of(agent_id);
    let guards = ActionGuards {
        r#ref: format!("runtime:{runtime_id}"),
        if_dialog: request.if_dialog.clone(),
        request_ref: request.request_ref.clone(),
        client: Some("bridge".into()),
        ..ActionGuards::default()
    };
    let turn_id = turn_id(agent_id, request.request_ref.as_deref());
    context.bridge.expect_turn(agent_id, &turn_id);
    let (outcome, failure) = send_answers(context, caller, guards, answers, request.accept_truncated).await;
    let turn_id = store_turn(context, agent_id, turn_id, &outcome).await;
    if let Some(failure) = failure {
        return Err(failure.for_mode(request.mode));
    }
    let deadline = Instant::now() + EFFECT_TIMEOUT;
    while !outcome.has_next_question && !outcome.delivered.is_empty() && context.bridge.state_of(agent_id) == before {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            break;
        }
    }
    Ok(Json(BridgeRespondReply {
        status: "ok".into(),
        agent_id: agent_id.to_owned(),
        new_state: context.bridge.state_of(agent_id).and_then(bridge_state).map(str::to_owned),
        latency_ms: outcome.latency_ms,
        mode: request.mode,
        verified: outcome.verified,
        turn_id,
    }))
}

/// The id of the turn. If a request is repeated with the same `request_ref`, the id is the same.
fn turn_id(agent_id: &str, request_ref: Option<&str>) -> String {
    let id = match request_ref {
        Some(name) => Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("turn {agent_id} {name}").as_bytes()),
        None => Uuid::now_v7(),
    };
    id.simple().to_string()
}

/// Stores the delivered answers as a turn, even if other answers of the request were not delivered. Returns the turn
/// id.
async fn store_turn(context: &ServeContext, agent_id: &str, turn_id: String, outcome: &AnswerOutcome) -> String {
    if outcome.delivered.is_empty() {
        context.bridge.cancel_turn(agent_id, &turn_id);
        return turn_id;
    }
    // An earlier copy of this request has stored its answers under this turn id, so the new answers get another id.
    let turn_id = if outcome.repeated == 0 { turn_id } else { self::turn_id(agent_id, None) };
    let turn = BridgeTurn { agent_id, intent: TurnIntent::Answer, text: &outcome.delivered.join("\n") };
    context.bridge.store_turn(&turn_id, turn).await;
    turn_id
}

/// The result of all answers of one request.
struct AnswerOutcome {
    verified: Verification,
    latency_ms: u64,
    /// Whether the agent shows another dialog after the last answer.
    has_next_question: bool,
    /// The answers that this request has delivered or may have delivered.
    delivered: Vec<String>,
    /// How many answers an earlier request with the same `request_ref` has already delivered.
    repeated: usize,
}

fn answer_text(answer: &DialogAnswer) -> String {
    match answer {
        DialogAnswer::Text(text) => text.clone(),
        answer => answer.to_string(),
    }
}

/// Sends the answers one after the other. Each answer after the first is sent only if the dialog that followed the
/// previous answer is still open.
async fn send_answers(
    context: &ServeContext,
    caller: RequestCaller,
    mut guards: ActionGuards,
    answers: Vec<DialogAnswer>,
    accept_truncated: bool,
) -> (AnswerOutcome, Option<BridgeFailure>) {
    let (count, request_ref) = (answers.len(), guards.request_ref.clone());
    let mut outcome = AnswerOutcome {
        verified: Verification::Inconclusive,
        latency_ms: 0,
        has_next_question: false,
        delivered: Vec::new(),
        repeated: 0,
    };
    for (index, answer) in answers.into_iter().enumerate() {
        if index > 0 {
            guards.request_ref = request_ref.as_ref().map(|name| format!("{name}/{}", index + 1));
        }
        let text = answer_text(&answer);
        let action = RespondAction { guards: guards.clone(), answer, accept_truncated };
        let done = match context.actions.respond(action, caller.clone()).await {
            Ok(done) => done,
            Err(error) => {
                outcome.delivered.extend(Some(text).filter(|_| may_be_delivered(&error)));
                return (outcome, Some(BridgeFailure::from(error).after_answers(index, count)));
            }
        };
        outcome.latency_ms += done.latency_ms;
        outcome.verified = done.report.verified;
        if outcome.verified == Verification::Failed {
            let error = ApiError::new(ErrorCode::SendFailed, "the keys were pressed, but the dialog is still open")
                .with_hint("run `agtmux view-output` to see the screen");
            return (outcome, Some(BridgeFailure::from(error).after_answers(index, count)));
        }
        match done.repeated {
            true => outcome.repeated += 1,
            false => outcome.delivered.push(text),
        }
        guards.if_dialog = done.report.asks_now.map(|next| next.fingerprint);
        outcome.has_next_question = guards.if_dialog.is_some();
        if index + 1 < count && !outcome.has_next_question {
            let error = ApiError::new(ErrorCode::Precondition, "the agent has no further question")
                .with_hint("send one answer per question");
            return (outcome, Some(BridgeFailure::from(error).after_answers(index + 1, count)));
        }
    }
    (outcome, None)
}

/// Whether the answer may have reached the agent despite this error: the text was typed, and nothing proves that the
/// agent ignored it.
fn may_be_delivered(error: &ApiError) -> bool {
    let not_delivered =
        [ErrorCode::SendFailed, ErrorCode::StateChanged, ErrorCode::Precondition, ErrorCode::BadRequest];
    error.done_something && !not_delivered.contains(&error.code)
}

/// The runtime of the agent. Fails with the reason if the agent has none.
async fn runtime_of(context: &ServeContext, agent_id: &str) -> Result<String, BridgeFailure> {
    if let Some(runtime_id) = context.bridge.runtime_of(agent_id) {
        return Ok(runtime_id);
    }
    let id = agent_id.to_owned();
    let stored_pane = context.store.read(move |connection| agents::pane_of(connection, &id)).await.map_err(|_| {
        ApiError::new(ErrorCode::NotStored, "cannot read the agent from the database").with_hint("agtmux daemon status")
    })?;
    match stored_pane {
        None => Err(no_such_agent()),
        Some(None) => Err(BridgeFailure::bad_request(
            "no_pane_id",
            "no tmux pane is known for this agent",
            "send the field 'tmux_pane' in the agent's hook events",
        )),
        Some(Some(pane)) => {
            let message = format!("the agent is no longer in pane {pane}");
            let error = ApiError::new(ErrorCode::PaneNotFound, message);
            Err(error.with_hint("run `agtmux resume` to start the agent again").into())
        }
    }
}

fn no_such_agent() -> BridgeFailure {
    let hint = "GET /v1/panes lists every agent_id";
    BridgeFailure::new("agent_not_found", ErrorCode::RuntimeNotFound, "no such agent", hint)
}

/// Check whether an agent can be answered.
#[utoipa::path(get, path = "/api/respond/{agent_id}/availability", params(("agent_id" = String, Path)), responses(
    (status = 200, body = BridgeAvailability), (status = 404, body = BridgeError)))]
pub(crate) async fn get_availability(
    context: ServeContext,
    agent_id: Result<NameInPath, ErrorResponse>,
) -> Result<Json<BridgeAvailability>, BridgeFailure> {
    let NameInPath(agent_id) = agent_id.map_err(|_| no_such_agent())?;
    let commander_available = match runtime_of(&context, &agent_id).await {
        Ok(runtime_id) => context.bridge.is_available(&runtime_id).await,
        Err(failure) if failure.is_not_found() => return Err(failure),
        Err(_) => false,
    };
    let state = context.bridge.state_of(&agent_id).filter(|state| *state != AgentState::Unknown);
    let state = state.and_then(bridge_state).map(str::to_owned);
    Ok(Json(BridgeAvailability { agent_id, commander_available, state }))
}
