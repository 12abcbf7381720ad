//! `/v1/mirrors…`: shared terminals.

use agtmux_api::wire::{
    MirrorActivity, MirrorActivityItem, MirrorActivityQuery, MirrorCancelRequest, MirrorCommand, MirrorCommandQuery,
    MirrorExecRequest, MirrorItem, MirrorList, MirrorQuery, MirrorScreen, MirrorScreenQuery, MirrorStartRequest,
    MirrorStreamItem,
};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::watch;

use super::extract::{ErrorResponse, JsonBody, JsonResult, StrictQuery, run_detached};
use super::openapi::Error;
use super::tasks::data;
use super::{ServeContext, sse};
use crate::actions::RequestCaller;
use crate::mirror::{ActivityReader, OutputReader, OutputStep};

const DEFAULT_LINES: u32 = 200;

/// List shared terminals.
///
/// With `pane` or `for_pane`, lists only the shared terminal of that pane.
#[utoipa::path(get, path = "/v1/mirrors", params(MirrorQuery), responses(
    (status = 200, body = MirrorList), Error<400>))]
pub(super) async fn get_mirrors(
    context: ServeContext,
    StrictQuery(query): StrictQuery<MirrorQuery>,
) -> JsonResult<MirrorList> {
    Ok(Json(context.mirrors.list(&query)?))
}

/// Start a shared terminal beside a pane, or return the one that exists for the pane or its session.
#[utoipa::path(post, path = "/v1/mirrors/start", request_body = MirrorStartRequest, responses(
    (status = 200, body = MirrorItem), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>, Error<503>,
    Error<504>))]
pub(super) async fn start_mirror(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<MirrorStartRequest>,
) -> JsonResult<MirrorItem> {
    run_detached(async move { context.mirrors.open(request, &caller).await }).await
}

/// Run a command in a shared terminal. Returns as soon as the shell has received the command. With `wait_ms`, waits up
/// to that much longer for the command to end.
///
/// An agent may use only the terminal of its own pane or session (`E_CALLER_IS_AGENT`).
#[utoipa::path(post, path = "/v1/mirrors/exec", request_body = MirrorExecRequest, responses(
    (status = 200, body = MirrorCommand), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>, Error<503>,
    Error<504>))]
pub(super) async fn exec_in_mirror(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<MirrorExecRequest>,
) -> JsonResult<MirrorCommand> {
    run_detached(async move { context.mirrors.exec(request, &caller).await }).await
}

/// Return a command and the end of its output. With `wait_ms`, waits for its end.
#[utoipa::path(get, path = "/v1/mirrors/command", params(MirrorCommandQuery), responses(
    (status = 200, body = MirrorCommand), Error<400>, Error<404>))]
pub(super) async fn get_mirror_command(
    context: ServeContext,
    StrictQuery(query): StrictQuery<MirrorCommandQuery>,
) -> JsonResult<MirrorCommand> {
    Ok(Json(context.mirrors.command(&query).await?))
}

/// Stream the output of a command as server-sent events, and then its end.
///
/// `Last-Event-ID` resumes the stream, even if the daemon restarts.
#[utoipa::path(get, path = "/v1/mirrors/command/stream", params(MirrorCommandQuery), responses(
    (status = 200, body = MirrorStreamItem, content_type = "text/event-stream"), Error<400>, Error<404>))]
pub(super) async fn follow_mirror_command(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(query): StrictQuery<MirrorCommandQuery>,
) -> Result<Response, ErrorResponse> {
    let position = sse::last_event(&headers, None)?.unwrap_or(0);
    let reader = context.mirrors.read_output(&query, position)?;
    Ok(sse::respond("text/event-stream", CommandStream { reader, stopping: context.stopping }))
}

/// Interrupt a command with Ctrl-C. Its exit code is then 130.
#[utoipa::path(post, path = "/v1/mirrors/cancel", request_body = MirrorCancelRequest, responses(
    (status = 200, body = MirrorCommand), Error<400>, Error<403>, Error<404>, Error<503>))]
pub(super) async fn cancel_mirror_command(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<MirrorCancelRequest>,
) -> JsonResult<MirrorCommand> {
    run_detached(async move {
        context.mirrors.cancel(&request, &caller).await?;
        let command_id = request.command_id;
        context.mirrors.command(&MirrorCommandQuery { command_id, ..MirrorCommandQuery::default() }).await
    })
    .await
}

/// Return the last lines of a shared terminal.
#[utoipa::path(get, path = "/v1/mirrors/screen", params(MirrorScreenQuery), responses(
    (status = 200, body = MirrorScreen), Error<400>, Error<404>, Error<409>, Error<502>, Error<504>))]
pub(super) async fn get_mirror_screen(
    context: ServeContext,
    StrictQuery(query): StrictQuery<MirrorScreenQuery>,
) -> JsonResult<MirrorScreen> {
    let MirrorScreenQuery { socket, pane, for_pane, lines } = query;
    let terminal = MirrorQuery { socket, pane, for_pane };
    Ok(Json(context.mirrors.screen(&terminal, lines.unwrap_or(DEFAULT_LINES)).await?))
}

/// List the commands that the person ran in a shared terminal, newest last.
#[utoipa::path(get, path = "/v1/mirrors/activity", params(MirrorActivityQuery), responses(
    (status = 200, body = MirrorActivity), Error<400>, Error<404>, Error<409>, Error<502>, Error<504>))]
pub(super) async fn get_mirror_activity(
    context: ServeContext,
    StrictQuery(query): StrictQuery<MirrorActivityQuery>,
) -> JsonResult<MirrorActivity> {
    Ok(Json(context.mirrors.activity(&query).await?))
}

/// Stream the commands of the person as server-sent events, from now on or after `after`.
///
/// The stream ends when the terminal is closed.
#[utoipa::path(get, path = "/v1/mirrors/activity/stream", params(MirrorActivityQuery), responses(
    (status = 200, body = MirrorActivityItem, content_type = "text/event-stream"), Error<400>, Error<404>, Error<409>,
    Error<502>, Error<504>))]
pub(super) async fn follow_mirror_activity(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(query): StrictQuery<MirrorActivityQuery>,
) -> Result<Response, ErrorResponse> {
    let last = sse::last_event(&headers, None)?;
    let reader = context.mirrors.read_activity(&query, last).await?;
    Ok(sse::respond("text/event-stream", ActivityStream { reader, stopping: context.stopping, started: false }))
}

/// Close a shared terminal and its pane.
///
/// An agent may close only the terminal of its own pane or session (`E_CALLER_IS_AGENT`).
#[utoipa::path(post, path = "/v1/mirrors/stop", request_body = MirrorQuery, responses(
    (status = 200, body = MirrorItem), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>, Error<503>,
    Error<504>))]
pub(super) async fn stop_mirror(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(query): JsonBody<MirrorQuery>,
) -> JsonResult<MirrorItem> {
    run_detached(async move { context.mirrors.stop(&query, &caller).await }).await
}

struct CommandStream {
    reader: OutputReader,
    stopping: watch::Receiver<bool>,
}

impl sse::ChunkReader for CommandStream {
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            step = self.reader.next(sse::HEARTBEAT) => match step {
                OutputStep::Item(item, position) => {
                    let id = position.map(|position| format!("id: {position}\n")).unwrap_or_default();
                    let kind = if matches!(*item, MirrorStreamItem::Ended(_)) { "ended" } else { "output" };
                    Some(format!("{id}{}", data(kind, &item)).into())
                }
                OutputStep::Silence => Some(sse::comment(None)),
                OutputStep::End => None,
            },
            _ = self.stopping.wait_for(|stop| *stop) => None,
        }
    }
}

struct ActivityStream {
    reader: ActivityReader,
    stopping: watch::Receiver<bool>,
    started: bool,
}

impl sse::ChunkReader for ActivityStream {
    /// The first comment confirms that the stream is open.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.started, true) {
            return Some(sse::comment(None));
        }
        tokio::select! {
            next = self.reader.next(sse::HEARTBEAT) => match next {
                Ok(Some(item)) => Some(format!("id: {}\n{}", item.number, data("command", &item)).into()),
                Ok(None) => Some(sse::comment(None)),
                Err(()) => None,
            },
            _ = self.stopping.wait_for(|stop| *stop) => None,
        }
    }
}
