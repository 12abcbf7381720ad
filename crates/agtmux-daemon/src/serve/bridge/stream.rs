//! `GET /api/events/stream`: the events of the tmux-bridge document.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::wire_enum::UnknownVariantError;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::bridge::{Bridge, BridgeEvent, BridgeEventKind};
use crate::serve::extract::{ErrorResponse, StrictQuery};
use crate::serve::openapi::Error;
use crate::serve::{ServeContext, sse};

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BridgeStreamQuery {
    /// Only events of these types, separated by commas.
    types: Option<String>,
    /// Only events of this agent.
    agent_id: Option<String>,
    /// Resume after this event. The header `Last-Event-ID` has the same meaning.
    last_event_id: Option<u64>,
}

/// Stream sessions, states, turns and availability as server-sent events.
///
/// A client that resumes too late gets `resync` and must read `/v1/panes` again.
#[utoipa::path(get, path = "/api/events/stream", params(BridgeStreamQuery), responses(
    (status = 200, body = String, content_type = "text/event-stream"), Error<400>))]
pub(crate) async fn get_stream(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(query): StrictQuery<BridgeStreamQuery>,
) -> Result<Response, ErrorResponse> {
    let kinds = kinds(query.types.as_deref())?;
    let last = sse::last_event(&headers, query.last_event_id)?;
    context.bridge.on_reader_joining();
    let position = last.unwrap_or_else(|| context.bridge.ring().last_id());
    let (latest, stopping) = (context.bridge.ring().subscribe(), context.stopping);
    let reader = BridgeEventReader { bridge: context.bridge, kinds, agent_id: query.agent_id, position };
    Ok(sse::stream(reader, latest, stopping))
}

fn kinds(names: Option<&str>) -> Result<Vec<BridgeEventKind>, ErrorResponse> {
    let Some(names) = names else { return Ok(BridgeEventKind::ALL.to_vec()) };
    let kind = |name: &str| {
        name.trim().parse().map_err(|error: UnknownVariantError| {
            let hint = format!("use any of {}", error.known.join(", "));
            ApiError::new(ErrorCode::BadRequest, "unknown event type").with_hint(hint).into()
        })
    };
    names.split(',').map(kind).collect()
}

struct BridgeEventReader {
    bridge: Bridge,
    kinds: Vec<BridgeEventKind>,
    agent_id: Option<String>,
    position: u64,
}

impl sse::EventSource for BridgeEventReader {
    fn catch_up(&mut self) -> Bytes {
        let bridge = self.bridge.clone();
        let mut out = BytesMut::new();
        while out.is_empty() {
            let Some(events) = bridge.ring().since(self.position) else {
                self.position = bridge.ring().last_id();
                let frame = format!("id: {}\nevent: resync\ndata: {{\"reason\":\"gap\"}}\n\n", self.position);
                return Bytes::from(frame);
            };
            let Some(last) = events.last() else { break };
            self.position = last.id;
            for event in events.iter().filter(|event| self.wants(event)) {
                out.extend_from_slice(&event.frame);
            }
        }
        out.freeze()
    }

    fn position(&self) -> Option<u64> {
        Some(self.position)
    }
}

impl BridgeEventReader {
    fn wants(&self, event: &BridgeEvent) -> bool {
        self.kinds.contains(&event.kind) && self.agent_id.as_ref().is_none_or(|agent_id| *agent_id == event.agent_id)
    }
}
