//! `GET /api/events/stream`.

use std::convert::Infallible;
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::watch;
use utoipa::IntoParams;

use crate::bridge::{Bridge, Kind, Passed};
use crate::serve::Context;
use crate::serve::query::{Asked, Refusal};

const HEARTBEAT: Duration = Duration::from_secs(15);

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
    let last = match headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default().parse()) {
        None => wanted.last_event_id,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Err(bad("Last-Event-ID is not a number", "leave it out to begin with what comes next")),
    };
    let reader = Reader {
        latest: context.bridge.ring().follow(),
        position: last.unwrap_or_else(|| context.bridge.ring().last()),
        bridge: context.bridge,
        stopping: context.stopping,
        kinds,
        agent_id: wanted.agent_id,
        begun: false,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
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
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    kinds: Vec<Kind>,
    agent_id: Option<String>,
    position: u64,
    begun: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let chunk = self.catch_up();
            let first = !std::mem::replace(&mut self.begun, true);
            if first || !chunk.is_empty() {
                // The comment tells that the stream stands.
                return Some(if chunk.is_empty() { Bytes::from_static(b":\n\n") } else { chunk });
            }
            tokio::select! {
                changed = self.latest.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    fn catch_up(&mut self) -> Bytes {
        self.latest.mark_unchanged();
        let ring = self.bridge.ring();
        let Some(events) = ring.since(self.position) else {
            self.position = ring.last();
            let frame = format!("id: {}\nevent: resync\ndata: {{\"reason\":\"gap\"}}\n\n", self.position);
            return Bytes::from(frame);
        };
        self.position = events.last().map_or(self.position, |event| event.id);
        let mut out = BytesMut::new();
        for event in events.iter().filter(|event| self.wants(event)) {
            out.extend_from_slice(&event.frame);
        }
        out.freeze()
    }

    fn wants(&self, event: &Passed) -> bool {
        self.kinds.contains(&event.kind) && self.agent_id.as_ref().is_none_or(|wanted| *wanted == event.agent_id)
    }
}
