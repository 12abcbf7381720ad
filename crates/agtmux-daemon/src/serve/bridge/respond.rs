//! `POST /api/respond/<agent_id>`: an answer to what an agent asks.

use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    Answer, Availability, BridgeError, BridgeMode, BridgeRespond, BridgeResponded, Guards, RespondAction, Verified,
};
use agtmux_core::state::State as AgentState;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;
use crate::actions::Asker;
use crate::bridge::{Actor, Intent, Turn, word};
use crate::serve::Context;
use crate::store::agents;

const LARGEST_BODY: usize = 5 << 20;
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
    let request = read(body).await?;
    let answer = answer(&request)?;
    let runtime_id = runtime_of(&context, &agent_id).await?;
    if context.bridge.runtimes_of(&agent_id).len() > 1 {
        let twice = (ErrorCode::RefAmbiguous, "wrong_state");
        let message = "its session is open in several panes";
        let hint = "POST /v1/actions/respond with the runtime:ID of one, as /v1/panes lists them";
        return Err(Fault::new(StatusCode::CONFLICT, twice, message, hint));
    }
    let task = tokio::spawn(async move { respond(&context, asker, &agent_id, runtime_id, request, answer).await });
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
    runtime_id: String,
    request: BridgeRespond,
    answer: Answer,
) -> Result<Json<BridgeResponded>, Fault> {
    let mut changes = context.bridge.ring().follow();
    let said = match &answer {
        Answer::Text(text) => text.clone(),
        answer => answer.to_string(),
    };
    let before = context.bridge.state_of(agent_id);
    let guards = Guards {
        r#ref: format!("runtime:{runtime_id}"),
        if_dialog: request.if_dialog.clone(),
        request_ref: request.request_ref.clone(),
        client: Some("bridge".into()),
        ..Guards::default()
    };
    let done = context.actions.respond(RespondAction { guards, answer }, asker).await?;
    if done.report.verified == Verified::Failed {
        let message = "the keys were pressed, and the dialog is still open";
        let failed = (ErrorCode::SendFailed, "send_failed");
        return Err(Fault::new(StatusCode::BAD_GATEWAY, failed, message, "agtmux view-output shows what came of it"));
    }
    let turn = Turn { agent_id, actor: Actor::User, intent: Intent::Answer, text: &said };
    let turn_id = context.bridge.note_turn(turn).await;
    let deadline = Instant::now() + OBSERVED_WITHIN;
    while context.bridge.state_of(agent_id) == before {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            break;
        }
    }
    Ok(Json(BridgeResponded {
        status: "ok".into(),
        agent_id: agent_id.to_owned(),
        new_state: context.bridge.state_of(agent_id).and_then(word).map(str::to_owned),
        latency_ms: done.latency_ms,
        mode: request.mode,
        verified: done.report.verified,
        turn_id,
    }))
}

async fn read(body: Body) -> Result<BridgeRespond, Fault> {
    let hint = "send JSON such as {\"mode\": \"text\", \"text\": \"yes\"}";
    let bytes =
        to_bytes(body, LARGEST_BODY).await.map_err(|_| Fault::bad("missing_text", "the body is too large", hint))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|_| Fault::bad("missing_text", "the body is no JSON", hint))?;
    let mode = value.get("mode");
    if mode.is_some_and(|mode| BridgeMode::deserialize(mode).is_err()) {
        return Err(Fault::bad("invalid_mode", "there is no such mode", "use text, select or other"));
    }
    BridgeRespond::deserialize(&value).map_err(|error| {
        let error_type = match value.get("option_index").is_some_and(|index| index.as_u64().is_none()) {
            true => "invalid_option_index",
            false => "missing_text",
        };
        Fault::bad(error_type, &format!("the request cannot be read: {error}"), hint)
    })
}

fn answer(request: &BridgeRespond) -> Result<Answer, Fault> {
    match request.mode {
        BridgeMode::Text | BridgeMode::Other => match &request.text {
            Some(text) if !text.trim().is_empty() => Ok(Answer::Text(text.clone())),
            _ => Err(Fault::bad("missing_text", "there is no text", "send a text, or mode select with option_index")),
        },
        BridgeMode::Select => {
            // They count from 0, the screen from 1.
            let index = request.option_index.filter(|index| *index < 1000);
            index.map(|index| Answer::Option(index + 1)).ok_or_else(|| {
                Fault::bad(
                    "invalid_option_index",
                    "option_index is missing or no index",
                    "count from 0 as in the dialog",
                )
            })
        }
    }
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
