//! `GET /api/events/stream`.

use agtmux_api::error::{ApiError, ErrorCode};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::bridge::{Bridge, Kind, Passed};
use crate::serve::query::{Asked, Refusal};
use crate::serve::{Context, sse};

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Only these kinds of events, with commas between them.
    types: Option<String>,
    /// Only events of this agent.
    agent_id: Option<String>,
    /// What came after this one; `Last-Event-ID` says the same.
    last_event_id: Option<u64>,
}

/// Sessions, their states, turns and availability as they change, as server-sent events. A reader that comes back too late
/// gets `resync`: it has to read `/v1/panes` anew.
#[utoipa::path(get, path = "/api/events/stream", params(Wanted), responses(
    (status = 200, body = String, content_type = "text/event-stream"), (status = 400, body = ApiError)))]
pub(crate) async fn get_stream(
    State(context): State<Context>,
    headers: HeaderMap,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Refusal> {
    let kinds = kinds(wanted.types.as_deref())?;
    let last = sse::last_event(&headers, wanted.last_event_id)?;
    context.bridge.is_followed();
    let position = last.unwrap_or_else(|| context.bridge.ring().last());
    let (latest, stopping) = (context.bridge.ring().follow(), context.stopping);
    let reader = Reader { bridge: context.bridge, kinds, agent_id: wanted.agent_id, position };
    Ok(sse::stream(reader, latest, stopping))
}

fn kinds(names: Option<&str>) -> Result<Vec<Kind>, Refusal> {
    let Some(names) = names else { return Ok(Kind::ALL.to_vec()) };
    let kind = |name: &str| {
        let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == name.trim());
        let known = Kind::ALL.map(Kind::as_str).join(", ");
        found.ok_or_else(|| bad("there is no such type of event", &format!("use some of {known}")))
    };
    names.split(',').map(kind).collect()
}

fn bad(message: &str, hint: &str) -> Refusal {
    ApiError::new(ErrorCode::BadRequest, message).with_hint(hint).into()
}

struct Reader {
    bridge: Bridge,
    kinds: Vec<Kind>,
    agent_id: Option<String>,
    position: u64,
}

impl sse::Place for Reader {
    fn catch_up(&mut self) -> Bytes {
        let bridge = self.bridge.clone();
        let mut out = BytesMut::new();
        while out.is_empty() {
            let Some(events) = bridge.ring().since(self.position) else {
                self.position = bridge.ring().last();
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

impl Reader {
    fn wants(&self, event: &Passed) -> bool {
        self.kinds.contains(&event.kind) && self.agent_id.as_ref().is_none_or(|wanted| *wanted == event.agent_id)
    }
}
