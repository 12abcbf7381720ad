//! `/v1/screen`: the live screen of a pane.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ActionGuards, OutputAction, ScreenEnd, ScreenQuery, ScreenUpdate};
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::extract::{ErrorResponse, StrictQuery};
use super::openapi::Error;
use super::{ServeContext, sse};
use crate::actions::RequestCaller;
use crate::engine::ref_error;
use crate::screens::ViewedScreen;

/// Stream the screen of a pane as rows of styled text.
///
/// The stream starts with all rows, and continues with the rows that changed, at most ten times a second. It ends with
/// an event `end` when the pane is gone or runs another program. The pane is not changed: agtmux neither attaches to it
/// nor resizes it. The audit log records the first request as `view-output`.
#[utoipa::path(get, path = "/v1/screen", params(ScreenQuery), responses(
    (status = 200, body = ScreenUpdate, content_type = "text/event-stream"), Error<400>, Error<404>, Error<409>))]
pub(super) async fn follow_screen(
    context: ServeContext,
    caller: RequestCaller,
    StrictQuery(query): StrictQuery<ScreenQuery>,
) -> Result<Response, ErrorResponse> {
    let reference = query.r#ref.parse().map_err(|error| ref_error(&error))?;
    let guards = ActionGuards { r#ref: query.r#ref, client: query.client, ..ActionGuards::default() };
    let look = OutputAction { guards, lines: Some(1), again: true, ..OutputAction::default() };
    context.actions.view_output(look, caller).await?;
    let state = context.screens.view(reference).await?;
    let reader = ScreenStream { state, stopping: context.stopping, seen: None, started: false, ended: false };
    Ok(sse::respond("text/event-stream", reader))
}

struct ScreenStream {
    state: watch::Receiver<ViewedScreen>,
    stopping: watch::Receiver<bool>,
    /// The version of the last update.
    seen: Option<u64>,
    started: bool,
    ended: bool,
}

impl ScreenStream {
    /// The next event, if there is one.
    fn take_event(&mut self) -> Option<Bytes> {
        let state = self.state.borrow_and_update().clone();
        if let Some(frame) = state.frame.filter(|frame| self.seen.is_none_or(|seen| frame.version > seen)) {
            let update: ScreenUpdate = frame.update_since(self.seen.replace(frame.version));
            return Some(event("screen", &update));
        }
        let message = state.ended?;
        self.ended = true;
        Some(event("end", &ScreenEnd { schema_version: SCHEMA_VERSION, message }))
    }
}

impl sse::ChunkReader for ScreenStream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let silent_until = Instant::now() + sse::HEARTBEAT;
        loop {
            if let Some(event) = self.take_event() {
                self.started = true;
                return Some(event);
            }
            if !std::mem::replace(&mut self.started, true) {
                return Some(sse::comment(None));
            }
            tokio::select! {
                changed = self.state.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = sleep_until(silent_until) => return Some(sse::comment(None)),
            }
        }
    }
}

fn event(kind: &str, data: &impl Serialize) -> Bytes {
    // These types contain only texts, numbers and lists, which always become JSON.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}
