//! `POST /v1/events`: read strictly, made harmless, handed to the engine.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EventIn, Receipt};
use agtmux_core::binding::Whereabouts;
use agtmux_core::evidence::Source;
use agtmux_core::ids::{AgentType, ServerName, TargetName};
use agtmux_core::redact;
use agtmux_core::runtime::RuntimeId;
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use super::Context;
use super::query::Refusal;
use crate::engine::{From, Incoming};

const LARGEST_BODY: usize = 1 << 20;
const LONGEST_WORD: usize = 512;

/// Takes an event in. The answer comes when it is stored.
#[utoipa::path(post, path = "/v1/events", request_body = EventIn, responses(
    (status = 202, body = Receipt), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError), (status = 413, body = ApiError), (status = 503, body = ApiError)))]
pub(super) async fn post_event(
    State(context): State<Context>,
    body: Body,
) -> Result<(StatusCode, Json<Receipt>), Refusal> {
    let bytes = to_bytes(body, LARGEST_BODY).await.map_err(|_| {
        let error = ApiError::new(ErrorCode::TooLarge, "an event may have 1 MiB at the most");
        error.with_hint("leave out what is not needed, or send it in parts")
    })?;
    let incoming = read(&bytes)?;
    Ok((StatusCode::ACCEPTED, Json(context.engine.event(incoming).await?)))
}

fn read(bytes: &[u8]) -> Result<Incoming, ApiError> {
    let mut document: Value = serde_json::from_slice(bytes).map_err(|e| bad(format!("the body is no JSON: {e}")))?;
    if !document.is_object() {
        return Err(bad("the body is not a JSON object".into()));
    }
    let event: EventIn =
        serde_json::from_value(document.clone()).map_err(|e| bad(format!("the event cannot be read: {e}")))?;
    let content_hash = hash(&event);
    redact::json(&mut document);
    let source = Source::parse(&event.source).map_err(|e| bad(format!("source: {e}")))?;
    let event_type = word("event_type", Some(event.event_type.clone()))?;
    let dedupe_key = word("dedupe_key or source_event_id", event.dedupe_key.clone().or(event.source_event_id.clone()))?;
    Ok(Incoming {
        event_id: Uuid::now_v7().simple().to_string(),
        from: from(&event)?,
        source,
        event_type,
        source_event_id: event.source_event_id,
        dedupe_key,
        source_seq: event.source_seq.filter(|seq| *seq <= i64::MAX.cast_unsigned()),
        event_time: event.event_time,
        content_hash,
        payload: Some(document.to_string()),
    })
}

fn from(event: &EventIn) -> Result<From, ApiError> {
    if let Some(id) = &event.runtime_id {
        return Ok(From::Runtime(RuntimeId::from_stored(word("runtime_id", Some(id.clone()))?)));
    }
    let Some(pane) = &event.pane else {
        return Err(bad("neither runtime_id nor pane says where the event comes from".into()));
    };
    let target = event.target.clone().unwrap_or_else(|| TargetName::LOCAL.into());
    if target != TargetName::LOCAL {
        let error = ApiError::new(ErrorCode::TargetNotFound, format!("there is no target '{target}'"));
        return Err(error.with_hint(format!("use '{}', the machine itself", TargetName::LOCAL)));
    }
    Ok(From::Pane(Whereabouts {
        target: TargetName::new(target),
        server: event.server.clone().map(ServerName::new),
        pane: pane.parse().map_err(|e| bad(format!("pane: {e}")))?,
        agent_type: event.agent_type.clone().map(AgentType::new),
        pids: event.pid.into_iter().collect(),
        start: event.pid_start,
    }))
}

fn word(name: &str, value: Option<String>) -> Result<String, ApiError> {
    match value {
        Some(value) if value.is_empty() => Err(bad(format!("{name} is empty"))),
        Some(value) if value.len() > LONGEST_WORD => Err(bad(format!("{name} has more than {LONGEST_WORD} bytes"))),
        Some(value) => Ok(value),
        None => Err(bad(format!("{name} is missing"))),
    }
}

/// What makes two events with one key the same: not when they were sent, but what they say.
fn hash(event: &EventIn) -> String {
    let said = serde_json::json!([event.event_type, event.source_seq, event.payload]);
    Uuid::new_v5(&Uuid::NAMESPACE_OID, said.to_string().as_bytes()).simple().to_string()
}

fn bad(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint("`agtmux emit --help` shows what an event needs")
}
