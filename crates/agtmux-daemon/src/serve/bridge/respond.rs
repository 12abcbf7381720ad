//! `POST /api/respond/<agent_id>`: an answer to what an agent asks.

use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    Answer, Availability, BridgeError, BridgeRespond, BridgeResponded, Guards, RespondAction, Verified,
};
use agtmux_core::state::State as AgentState;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;
use super::request;
use crate::actions::Asker;
use crate::bridge::{Actor, Intent, Turn, word};
use crate::serve::Context;
use crate::store::agents;

/// How long the answer's effect is waited for.
const OBSERVED_WITHIN: Duration = Duration::from_secs(2);

/// Answers the dialog that an agent has open.
#[utoipa::path(post, path = "/api/respond/{agent_id}", params(("agent_id" = String, Path)), request_body = BridgeRespond,
    responses((status = 200, body = BridgeResponded), (status = 400, body = BridgeError), (status = 404, body = BridgeError), (status = 409, body = BridgeError), (status = 502, body = BridgeError),
    (status = 503, body = BridgeError)))]
pub(crate) async fn post_respond(
    State(context): State<Context>,
    Extension(asker): Extension<Asker>,
    Path(agent_id): Path<String>,
    body: Body,
) -> Result<Json<BridgeResponded>, Fault> {
    let request = request::read(body).await?;
    let answers = request::answers(&request)?;
    let runtime_id = runtime_of(&context, &agent_id).await?;
    if context.bridge.runtimes_of(&agent_id).len() > 1 {
        let twice = (ErrorCode::RefAmbiguous, "wrong_state");
        let message = "its session is open in several panes";
        let hint = "POST /v1/actions/respond with the runtime:ID of one, as /v1/panes lists them";
        return Err(Fault::new(StatusCode::CONFLICT, twice, message, hint));
    }
    let task = tokio::spawn(async move { respond(&context, asker, &agent_id, &runtime_id, request, answers).await });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "an answer ended badly");
        Err(Fault::new(
            StatusCode::BAD_GATEWAY,
            (ErrorCode::Internal, "unknown"),
            "the answer ended badly",
            "agtmux daemon logs",
        ))
    })
}

async fn respond(
    context: &Context,
    asker: Asker,
    agent_id: &str,
    runtime_id: &str,
    request: BridgeRespond,
    answers: Vec<Answer>,
) -> Result<Json<BridgeResponded>, Fault> {
    let mut changes = context.bridge.ring().follow();
    let said: Vec<String> = answers.iter().map(said).collect();
    let before = context.bridge.state_of(agent_id);
    let guards = Guards {
        r#ref: format!("runtime:{runtime_id}"),
        if_dialog: request.if_dialog.clone(),
        request_ref: request.request_ref.clone(),
        client: Some("bridge".into()),
        ..Guards::default()
    };
    let turn_id = context.bridge.expect_turn(agent_id);
    let given = give(context, asker, guards, answers).await;
    let Given { verified, latency_ms, asks_on } = given.map_err(|fault| {
        context.bridge.forget_turn(agent_id, &turn_id);
        fault.in_mode(request.mode)
    })?;
    let turn = Turn { agent_id, actor: Actor::User, intent: Intent::Answer, text: &said.join("\n") };
    context.bridge.keep_turn(&turn_id, turn).await;
    let deadline = Instant::now() + OBSERVED_WITHIN;
    while !asks_on && context.bridge.state_of(agent_id) == before {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            break;
        }
    }
    Ok(Json(BridgeResponded {
        status: "ok".into(),
        agent_id: agent_id.to_owned(),
        new_state: context.bridge.state_of(agent_id).and_then(word).map(str::to_owned),
        latency_ms,
        mode: request.mode,
        verified,
        turn_id,
    }))
}

/// What came of all answers.
struct Given {
    verified: Verified,
    latency_ms: u64,
    /// It asks something else now.
    asks_on: bool,
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Text(text) => text.clone(),
        answer => answer.to_string(),
    }
}

/// One answer after the other. Each but the first is for the question that the one before it brought up, and for no other.
async fn give(context: &Context, asker: Asker, mut guards: Guards, answers: Vec<Answer>) -> Result<Given, Fault> {
    let (count, request_ref) = (answers.len(), guards.request_ref.clone());
    let mut given = Given { verified: Verified::Inconclusive, latency_ms: 0, asks_on: false };
    for (n, answer) in answers.into_iter().enumerate() {
        if n > 0 {
            guards.request_ref = request_ref.as_ref().map(|name| format!("{name}/{}", n + 1));
        }
        let action = RespondAction { guards: guards.clone(), answer };
        let done = context.actions.respond(action, asker.clone()).await;
        let done = done.map_err(|error| Fault::from(error).after(n, count))?;
        given.latency_ms += done.latency_ms;
        given.verified = done.report.verified;
        if given.verified == Verified::Failed {
            let message = "the keys were pressed, and the dialog is still open";
            let failed = (ErrorCode::SendFailed, "send_failed");
            let hint = "agtmux view-output shows what came of it";
            return Err(Fault::new(StatusCode::BAD_GATEWAY, failed, message, hint).after(n, count));
        }
        guards.if_dialog = done.report.asks_now.map(|next| next.fingerprint);
        given.asks_on = guards.if_dialog.is_some();
        if n + 1 < count && !given.asks_on {
            let fewer = (ErrorCode::Precondition, "wrong_state");
            let hint = "send one answer for each question that it asks";
            let message = "it asks nothing more";
            return Err(Fault::new(StatusCode::CONFLICT, fewer, message, hint).after(n + 1, count));
        }
    }
    Ok(given)
}

/// The runtime in which the agent lives, or why there is none.
async fn runtime_of(context: &Context, agent_id: &str) -> Result<String, Fault> {
    if let Some(runtime_id) = context.bridge.runtime_of(agent_id) {
        return Ok(runtime_id);
    }
    let (path, id) = (context.store.path().to_owned(), agent_id.to_owned());
    let known = tokio::task::spawn_blocking(move || agents::pane_of(&path, &id)).await;
    match known.ok().and_then(Result::ok).flatten() {
        None => Err(Fault::new(
            StatusCode::NOT_FOUND,
            (ErrorCode::RuntimeNotFound, "agent_not_found"),
            "no such agent",
            "GET /v1/panes names every agent_id",
        )),
        Some(None) => {
            Err(Fault::bad("no_pane_id", "no tmux pane is known of this agent", "send tmux_pane with its hooks"))
        }
        Some(Some(pane)) => {
            let message = format!("it does not live in {pane} any more");
            Err(Fault::new(
                StatusCode::SERVICE_UNAVAILABLE,
                (ErrorCode::PaneNotFound, "pane_not_found"),
                message,
                "agtmux resume starts it again",
            ))
        }
    }
}

/// Whether an agent can be answered.
#[utoipa::path(get, path = "/api/respond/{agent_id}/availability", params(("agent_id" = String, Path)), responses(
    (status = 200, body = Availability), (status = 404, body = BridgeError)))]
pub(crate) async fn get_availability(
    State(context): State<Context>,
    Path(agent_id): Path<String>,
) -> Result<Json<Availability>, Fault> {
    let commander_available = match runtime_of(&context, &agent_id).await {
        Ok(runtime_id) => context.bridge.is_available(&runtime_id).await,
        Err(fault) if fault.is_not_found() => return Err(fault),
        Err(_) => false,
    };
    let state = context.bridge.state_of(&agent_id).filter(|state| *state != AgentState::Unknown);
    let state = state.and_then(word).map(str::to_owned);
    Ok(Json(Availability { agent_id, commander_available, state }))
}
