//! `GET /api/events/stream`.

use agtmux_api::error::{ApiError, ErrorCode};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::bridge::{Bridge, BridgeEvent, BridgeEventKind};
use crate::serve::extract::{Asked, ErrorResponse};
use crate::serve::{ServeContext, sse};

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BridgeStreamQuery {
    /// Only these kinds of events, with commas between them.
    types: Option<String>,
    /// Only events of this agent.
    agent_id: Option<String>,
    /// What came after this one; `Last-Event-ID` says the same.
    last_event_id: Option<u64>,
}

/// Sessions, their states, turns and availability as they change, as server-sent events. A reader that comes back too late
/// gets `resync`: it has to read `/v1/panes` anew.
#[utoipa::path(get, path = "/api/events/stream", params(BridgeStreamQuery), responses(
    (status = 200, body = String, content_type = "text/event-stream"), (status = 400, body = ApiError)))]
pub(crate) async fn get_stream(
    State(context): State<ServeContext>,
    headers: HeaderMap,
    Asked(wanted): Asked<BridgeStreamQuery>,
) -> Result<Response, ErrorResponse> {
    let kinds = kinds(wanted.types.as_deref())?;
    let last = sse::last_event(&headers, wanted.last_event_id)?;
    context.bridge.on_reader_joining();
    let position = last.unwrap_or_else(|| context.bridge.ring().last_id());
    let (latest, stopping) = (context.bridge.ring().subscribe(), context.stopping);
    let reader = BridgeEventReader { bridge: context.bridge, kinds, agent_id: wanted.agent_id, position };
    Ok(sse::stream(reader, latest, stopping))
}

fn kinds(names: Option<&str>) -> Result<Vec<BridgeEventKind>, ErrorResponse> {
    let Some(names) = names else { return Ok(BridgeEventKind::ALL.to_vec()) };
    let kind = |name: &str| {
        let found = BridgeEventKind::ALL.into_iter().find(|kind| kind.as_str() == name.trim());
        let known = BridgeEventKind::ALL.map(BridgeEventKind::as_str).join(", ");
        found.ok_or_else(|| bad("there is no such type of event", &format!("use some of {known}")))
    };
    names.split(',').map(kind).collect()
}

fn bad(message: &str, hint: &str) -> ErrorResponse {
    ApiError::new(ErrorCode::BadRequest, message).with_hint(hint).into()
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
        self.kinds.contains(&event.kind) && self.agent_id.as_ref().is_none_or(|wanted| *wanted == event.agent_id)
    }
}
