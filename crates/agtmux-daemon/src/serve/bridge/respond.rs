//! `POST /api/respond/<agent_id>`: an answer to what an agent asks.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionGuards, BridgeAvailability, BridgeError, BridgeRespondReply, BridgeRespondRequest, DialogAnswer,
    RespondAction, Verification,
};
use agtmux_core::state::State as AgentState;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::failure::BridgeFailure;
use super::request;
use crate::actions::RequestCaller;
use crate::bridge::{BridgeTurn, TurnActor, TurnIntent, bridge_state};
use crate::serve::ServeContext;
use crate::serve::extract::{ErrorResponse, NameInPath};
use crate::store::agents;

/// How long the answer's effect is waited for.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long others are waited for who answer the same agent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Answers the dialog that an agent has open.
#[utoipa::path(post, path = "/api/respond/{agent_id}", params(("agent_id" = String, Path)), request_body = BridgeRespondRequest,
    responses((status = 200, body = BridgeRespondReply), (status = 400, body = BridgeError), (status = 404, body = BridgeError), (status = 409, body = BridgeError), (status = 502, body = BridgeError),
    (status = 503, body = BridgeError)))]
pub(crate) async fn post_respond(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    agent_id: Result<NameInPath, ErrorResponse>,
    body: Body,
) -> Result<Json<BridgeRespondReply>, BridgeFailure> {
    let NameInPath(agent_id) = agent_id.map_err(|_| no_such_agent())?;
    let request = request::read(body).await?;
    let answers = request::answers(&request)?;
    let runtime_id = runtime_of(&context, &agent_id).await?;
    if context.bridge.runtimes_of(&agent_id).len() > 1 {
        let twice = (ErrorCode::RefAmbiguous, "wrong_state");
        let message = "its session is open in several panes";
        let hint = "POST /v1/actions/respond with the runtime:ID of one, as /v1/panes lists them";
        return Err(BridgeFailure::new(StatusCode::CONFLICT, twice, message, hint));
    }
    let task = tokio::spawn(async move { respond(&context, asker, &agent_id, &runtime_id, request, answers).await });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "an answer ended badly");
        Err(BridgeFailure::new(
            StatusCode::BAD_GATEWAY,
            (ErrorCode::Internal, "unknown"),
            "the answer ended badly",
            "agtmux daemon logs",
        ))
    })
}

async fn respond(
    context: &ServeContext,
    asker: RequestCaller,
    agent_id: &str,
    runtime_id: &str,
    request: BridgeRespondRequest,
    answers: Vec<DialogAnswer>,
) -> Result<Json<BridgeRespondReply>, BridgeFailure> {
    let Ok(_turn) = timeout(LOCK_TIMEOUT, context.bridge.lock_answers(agent_id)).await else {
        let busy = (ErrorCode::Precondition, "wrong_state");
        return Err(BridgeFailure::new(
            StatusCode::CONFLICT,
            busy,
            "others are answering it",
            "look again, then try again",
        ));
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
    let (given, fault) = send_answers(context, asker, guards, answers).await;
    let turn_id = store_turn(context, agent_id, turn_id, &given).await;
    if let Some(fault) = fault {
        return Err(fault.for_mode(request.mode));
    }
    let deadline = Instant::now() + EFFECT_TIMEOUT;
    while !given.has_next_question && !given.delivered.is_empty() && context.bridge.state_of(agent_id) == before {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            break;
        }
    }
    Ok(Json(BridgeRespondReply {
        status: "ok".into(),
        agent_id: agent_id.to_owned(),
        new_state: context.bridge.state_of(agent_id).and_then(bridge_state).map(str::to_owned),
        latency_ms: given.latency_ms,
        mode: request.mode,
        verified: given.verified,
        turn_id,
    }))
}

/// A request that is sent again under its name is the same turn.
fn turn_id(agent_id: &str, request_ref: Option<&str>) -> String {
    let id = match request_ref {
        Some(name) => Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("turn {agent_id} {name}").as_bytes()),
        None => Uuid::now_v7(),
    };
    id.simple().to_string()
}

/// What was said is a turn, also where it was not all that was to be said. Gives the id of the turn.
async fn store_turn(context: &ServeContext, agent_id: &str, turn_id: String, given: &AnswerOutcome) -> String {
    if given.delivered.is_empty() {
        context.bridge.cancel_turn(agent_id, &turn_id);
        return turn_id;
    }
    // What was said before under this name is kept already.
    let turn_id = if given.repeated == 0 { turn_id } else { self::turn_id(agent_id, None) };
    let turn =
        BridgeTurn { agent_id, actor: TurnActor::User, intent: TurnIntent::Answer, text: &given.delivered.join("\n") };
    context.bridge.store_turn(&turn_id, turn).await;
    turn_id
}

/// What came of all answers.
struct AnswerOutcome {
    verified: Verification,
    latency_ms: u64,
    /// It asks something else now.
    has_next_question: bool,
    /// The answers that it got just now, or may have got.
    delivered: Vec<String>,
    /// How many it had got before, by the same request.
    repeated: usize,
}

fn answer_text(answer: &DialogAnswer) -> String {
    match answer {
        DialogAnswer::Text(text) => text.clone(),
        answer => answer.to_string(),
    }
}

/// One answer after the other. Each but the first is for the question that the one before it brought up, and for no other.
async fn send_answers(
    context: &ServeContext,
    asker: RequestCaller,
    mut guards: ActionGuards,
    answers: Vec<DialogAnswer>,
) -> (AnswerOutcome, Option<BridgeFailure>) {
    let (count, request_ref) = (answers.len(), guards.request_ref.clone());
    let mut given = AnswerOutcome {
        verified: Verification::Inconclusive,
        latency_ms: 0,
        has_next_question: false,
        delivered: Vec::new(),
        repeated: 0,
    };
    for (n, answer) in answers.into_iter().enumerate() {
        if n > 0 {
            guards.request_ref = request_ref.as_ref().map(|name| format!("{name}/{}", n + 1));
        }
        let words = answer_text(&answer);
        let action = RespondAction { guards: guards.clone(), answer };
        let done = match context.actions.respond(action, asker.clone()).await {
            Ok(done) => done,
            Err(error) => {
                given.delivered.extend(Some(words).filter(|_| may_be_delivered(&error)));
                return (given, Some(BridgeFailure::from(error).after_answers(n, count)));
            }
        };
        given.latency_ms += done.latency_ms;
        given.verified = done.report.verified;
        if given.verified == Verification::Failed {
            let message = "the keys were pressed, and the dialog is still open";
            let failed = (ErrorCode::SendFailed, "send_failed");
            let hint = "agtmux view-output shows what came of it";
            return (
                given,
                Some(BridgeFailure::new(StatusCode::BAD_GATEWAY, failed, message, hint).after_answers(n, count)),
            );
        }
        match done.repeated {
            true => given.repeated += 1,
            false => given.delivered.push(words),
        }
        guards.if_dialog = done.report.asks_now.map(|next| next.fingerprint);
        given.has_next_question = guards.if_dialog.is_some();
        if n + 1 < count && !given.has_next_question {
            let fewer = (ErrorCode::Precondition, "wrong_state");
            let hint = "send one answer for each question that it asks";
            let message = "it asks nothing more";
            return (
                given,
                Some(BridgeFailure::new(StatusCode::CONFLICT, fewer, message, hint).after_answers(n + 1, count)),
            );
        }
    }
    (given, None)
}

/// It was typed, and nothing shows that the agent did not take it.
fn may_be_delivered(error: &ApiError) -> bool {
    let not_taken = [ErrorCode::SendFailed, ErrorCode::StateChanged, ErrorCode::Precondition, ErrorCode::BadRequest];
    error.done_something && !not_taken.contains(&error.code)
}

/// The runtime in which the agent lives, or why there is none.
async fn runtime_of(context: &ServeContext, agent_id: &str) -> Result<String, BridgeFailure> {
    if let Some(runtime_id) = context.bridge.runtime_of(agent_id) {
        return Ok(runtime_id);
    }
    let (path, id) = (context.store.path().to_owned(), agent_id.to_owned());
    let known = tokio::task::spawn_blocking(move || agents::pane_of(&path, &id)).await;
    let unread = || {
        let unread = (ErrorCode::NotStored, "not_stored");
        BridgeFailure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            unread,
            "what is known of it cannot be read",
            "agtmux daemon status",
        )
    };
    match known.ok().and_then(Result::ok).ok_or_else(unread)? {
        None => Err(no_such_agent()),
        Some(None) => Err(BridgeFailure::bad_request(
            "no_pane_id",
            "no tmux pane is known of this agent",
            "send tmux_pane with its hooks",
        )),
        Some(Some(pane)) => {
            let message = format!("it does not live in {pane} any more");
            Err(BridgeFailure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                (ErrorCode::PaneNotFound, "pane_not_found"),
                message,
                "agtmux resume starts it again",
            ))
        }
    }
}

fn no_such_agent() -> BridgeFailure {
    let unknown = (ErrorCode::RuntimeNotFound, "agent_not_found");
    BridgeFailure::new(StatusCode::NOT_FOUND, unknown, "no such agent", "GET /v1/panes names every agent_id")
}

/// Whether an agent can be answered.
#[utoipa::path(get, path = "/api/respond/{agent_id}/availability", params(("agent_id" = String, Path)), responses(
    (status = 200, body = BridgeAvailability), (status = 404, body = BridgeError)))]
pub(crate) async fn get_availability(
    State(context): State<ServeContext>,
    agent_id: Result<NameInPath, ErrorResponse>,
) -> Result<Json<BridgeAvailability>, BridgeFailure> {
    let NameInPath(agent_id) = agent_id.map_err(|_| no_such_agent())?;
    let commander_available = match runtime_of(&context, &agent_id).await {
        Ok(runtime_id) => context.bridge.is_available(&runtime_id).await,
        Err(fault) if fault.is_not_found() => return Err(fault),
        Err(_) => false,
    };
    let state = context.bridge.state_of(&agent_id).filter(|state| *state != AgentState::Unknown);
    let state = state.and_then(bridge_state).map(str::to_owned);
    Ok(Json(BridgeAvailability { agent_id, commander_available, state }))
}
