//! `/v1/tasks…`: background tasks and their events.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::wire::{
    ActionOutcome, SendReport, TaskCleanupRequest, TaskEndReport, TaskEvents, TaskEventsQuery, TaskInputAction,
    TaskList, TaskLogs, TaskLogsQuery, TaskRestartRequest, TaskRunRequest, TaskSessionQuery, TaskStarted,
    TaskStartupReport, TaskStartupRequest, TaskStopRequest, TaskStreamItem, TaskWatchEvent,
};
use agtmux_core::task::{RunId, TaskEvent};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::extract::{ErrorResponse, JsonBody, JsonResult, StrictQuery, run_detached};
use super::openapi::Error;
use super::{ServeContext, sse};
use crate::actions::RequestCaller;
use crate::event_log::{EventLog, EventsSince};
use crate::observe::server_name;
use crate::tasks::Tasks;

/// How often a stream that follows one run checks whether the run is over. The events of the run do not wait for this
/// check: they are sent at once.
const RUN_HEARTBEAT: Duration = Duration::from_secs(1);

/// List the tasks of a session.
///
/// A missing session has `exists: false`.
#[utoipa::path(get, path = "/v1/tasks", params(TaskSessionQuery), responses(
    (status = 200, body = TaskList), Error<400>, Error<502>))]
pub(super) async fn get_tasks(
    context: ServeContext,
    StrictQuery(query): StrictQuery<TaskSessionQuery>,
) -> JsonResult<TaskList> {
    Ok(Json(context.tasks.list(&query).await?))
}

/// Run a task in its own window. A task with the same name is stopped and replaced in its window.
///
/// Agents may run tasks, but cannot replace a task in another owner's session.
#[utoipa::path(post, path = "/v1/tasks/run", request_body = TaskRunRequest, responses(
    (status = 200, body = TaskStarted), Error<400>, Error<403>, Error<409>, Error<502>, Error<503>))]
pub(super) async fn run_task(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(run): JsonBody<TaskRunRequest>,
) -> JsonResult<TaskStarted> {
    let caller = RequestCaller { owner_pid: run.owner, ..caller };
    run_detached(async move { context.tasks.run(run, &caller).await }).await
}

/// Return the output of a task.
#[utoipa::path(get, path = "/v1/tasks/logs", params(TaskLogsQuery), responses(
    (status = 200, body = TaskLogs), Error<400>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn get_task_logs(
    context: ServeContext,
    StrictQuery(query): StrictQuery<TaskLogsQuery>,
) -> JsonResult<TaskLogs> {
    Ok(Json(context.tasks.logs(&query).await?))
}

/// Type a text into a task and press Enter.
///
/// Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/tasks/input", request_body = TaskInputAction, responses(
    (status = 200, body = ActionOutcome<SendReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn send_task_input(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<TaskInputAction>,
) -> JsonResult<ActionOutcome<SendReport>> {
    run_detached(async move { context.tasks.input(action, caller).await }).await
}

/// Send SIGTERM to a task, and SIGKILL if it does not end.
///
/// Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/tasks/stop", request_body = TaskStopRequest, responses(
    (status = 200, body = TaskEndReport), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn stop_task(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<TaskStopRequest>,
) -> JsonResult<TaskEndReport> {
    run_detached(async move { context.tasks.stop(action, &caller).await }).await
}

/// Run a task again with the same command and directory.
///
/// The same rules apply as for running a task.
#[utoipa::path(post, path = "/v1/tasks/restart", request_body = TaskRestartRequest, responses(
    (status = 200, body = TaskStarted), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn restart_task(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<TaskRestartRequest>,
) -> JsonResult<TaskStarted> {
    let caller = RequestCaller { owner_pid: action.owner, ..caller };
    run_detached(async move { context.tasks.restart(action, &caller).await }).await
}

/// Close the windows of tasks that have ended.
#[utoipa::path(post, path = "/v1/tasks/prune-dead", request_body = TaskCleanupRequest, responses(
    (status = 200, body = TaskEndReport), Error<400>, Error<409>, Error<502>))]
pub(super) async fn prune_dead_tasks(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<TaskCleanupRequest>,
) -> JsonResult<TaskEndReport> {
    run_detached(async move { context.tasks.prune_dead(action, &caller).await }).await
}

/// End all tasks of a session, and the session.
///
/// Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/tasks/kill-all", request_body = TaskCleanupRequest, responses(
    (status = 200, body = TaskEndReport), Error<400>, Error<403>, Error<409>, Error<502>))]
pub(super) async fn kill_all_tasks(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<TaskCleanupRequest>,
) -> JsonResult<TaskEndReport> {
    run_detached(async move { context.tasks.kill_all(action, &caller).await }).await
}

/// Clean up after earlier harness sessions of a project.
///
/// Call this when a harness session begins. Removes sessions in which no task runs any more, and lists the others.
/// Sessions of other owners, and of harnesses that still run, are not touched.
#[utoipa::path(post, path = "/v1/tasks/startup", request_body = TaskStartupRequest, responses(
    (status = 200, body = TaskStartupReport), Error<400>, Error<502>))]
pub(super) async fn start_up_tasks(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(request): JsonBody<TaskStartupRequest>,
) -> JsonResult<TaskStartupReport> {
    let caller = RequestCaller { owner_pid: request.owner, ..caller };
    run_detached(async move { context.tasks.startup(request, &caller).await }).await
}

/// List task events: the newest, or those after `after`.
#[utoipa::path(get, path = "/v1/tasks/events", params(TaskEventsQuery), responses(
    (status = 200, body = TaskEvents), Error<400>))]
pub(super) async fn get_task_events(
    context: ServeContext,
    StrictQuery(query): StrictQuery<TaskEventsQuery>,
) -> JsonResult<TaskEvents> {
    Ok(Json(context.tasks.events(query).await?))
}

/// Stream task events as server-sent events.
///
/// With `after` or `Last-Event-ID` the stream has no gaps, even if the daemon restarts. With `run_id` the stream ends
/// with `over` when no more events of that run will follow.
#[utoipa::path(get, path = "/v1/tasks/events/stream", params(TaskEventsQuery), responses(
    (status = 200, body = TaskEvent, content_type = "text/event-stream"), Error<400>))]
pub(super) async fn follow_task_events(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(mut query): StrictQuery<TaskEventsQuery>,
) -> Result<Response, ErrorResponse> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    // Subscribe before the start position is read, so that no event between the two is lost.
    let latest = context.event_log.subscribe();
    query.limit = None;
    query.after = match last.or(query.after) {
        Some(after) => Some(after),
        None => Some(context.tasks.events(TaskEventsQuery { limit: Some(1), ..Default::default() }).await?.seq),
    };
    Ok(sse::respond(
        "text/event-stream",
        TaskEventReader {
            tasks: context.tasks,
            event_log: context.event_log,
            latest,
            stopping: context.stopping,
            query,
            caught_up: false,
            started: false,
            is_over: false,
        },
    ))
}

struct TaskEventReader {
    tasks: Tasks,
    event_log: Arc<EventLog>,
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// The client's query. Its `after` is kept at the current position of the stream.
    query: TaskEventsQuery,
    /// The client has all stored events. Later events come from the event log.
    caught_up: bool,
    started: bool,
    is_over: bool,
}

impl sse::ChunkReader for TaskEventReader {
    /// The next events. If there are no new events, returns a comment: once at the start of the stream, and after each
    /// long silence.
    async fn next(&mut self) -> Option<Bytes> {
        let heartbeat = if self.query.run_id.is_some() { RUN_HEARTBEAT } else { sse::HEARTBEAT };
        // The deadline is set once, so that events that are filtered out do not delay the heartbeat.
        let silent_until = Instant::now() + heartbeat;
        loop {
            if self.is_over {
                return None;
            }
            self.latest.borrow_and_update();
            // Check whether the run is over before its events are read. If it is over, all its events are stored, but
            // some may not be published yet, so read them from the store.
            let over = match self.query.run_id.clone() {
                Some(run) if self.tasks.is_over(&run) => Some(run),
                _ => None,
            };
            self.caught_up &= over.is_none();
            let events = self.next_events().await?;
            if !events.is_empty() {
                return Some(events.into());
            }
            if self.caught_up && !std::mem::replace(&mut self.started, true) {
                return Some(sse::comment(None));
            }
            if let Some(over) = over {
                self.is_over = true;
                return Some(data("over", &TaskStreamItem::Over { over }).into());
            }
            tokio::select! {
                changed = self.latest.changed() => if changed.is_err() { return None },
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = sleep_until(silent_until) => return Some(sse::comment(None)),
            }
        }
    }
}

impl TaskEventReader {
    /// Reads the next events from the event log. If the client is new or too far behind, reads them from the store.
    async fn next_events(&mut self) -> Option<String> {
        let after = self.query.after.unwrap_or(0);
        let (seq, recent) = {
            let log = self.event_log.read();
            (log.seq(), Some(log.since(after)).filter(|_| self.caught_up))
        };
        if let Some(EventsSince::Events(events)) = recent {
            self.query.after = Some(seq);
            let task_events = events.iter().filter_map(|published| published.event.task.as_deref());
            let matching = task_events.filter(|task_event| matches_query(&self.query, task_event));
            return Some(matching.map(|task_event| frame(&task_event.event)).collect());
        }
        let stored = self.tasks.events(self.query.clone()).await.ok()?.items;
        // Every event up to `seq` was stored before it was published. If the store returns no events, the client has
        // all of them.
        self.caught_up = stored.is_empty();
        self.query.after = Some(stored.last().map_or(seq.max(after), |last| last.seq));
        Some(stored.iter().map(frame).collect())
    }
}

/// Whether the event matches the query. The store's SQL query applies the same filter.
fn matches_query(query: &TaskEventsQuery, task_event: &TaskWatchEvent) -> bool {
    let matches = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
    let socket = query.socket.as_ref().map(|socket| server_name(Path::new(socket)).to_string());
    let event = &task_event.event;
    matches(&query.session, Some(event.session.as_str()))
        && matches(&socket, Some(&task_event.server))
        && matches(&query.task, Some(&event.task))
        && matches(&query.run_id, event.run_id.as_ref().map(RunId::as_str))
}

fn frame(event: &TaskEvent) -> String {
    format!("id: {}\n{}", event.seq, data(&event.kind.to_string(), event))
}

pub(super) fn data(kind: &str, item: &impl serde::Serialize) -> String {
    let data = serde_json::to_string(item).unwrap_or_else(|error| unreachable!("a wire type serializes: {error}"));
    format!("event: {kind}\ndata: {data}\n\n")
}
