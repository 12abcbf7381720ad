//! `/v1/tasks…`: background work, and what happened to it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionOutcome, SendReport, TaskCleanupRequest, TaskEndReport, TaskEvents, TaskEventsQuery, TaskInputAction,
    TaskList, TaskLogs, TaskLogsQuery, TaskRestartRequest, TaskRunRequest, TaskSessionQuery, TaskStarted,
    TaskStartupReport, TaskStartupRequest, TaskStopRequest, TaskStreamItem, TaskWatchEvent,
};
use agtmux_core::task::{RunId, TaskEvent};
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use futures_util::stream;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::ServeContext;
use super::extract::{Asked, ErrorResponse};
use crate::actions::RequestCaller;
use crate::event_log::{EventLog, EventsSince};
use crate::observe::server_name;
use crate::tasks::Tasks;

const MAX_BODY_BYTES: usize = 5 << 20;
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Whoever waits for one run hears at once when something is told of it; that nothing will be any more is looked for.
const RUN_HEARTBEAT: Duration = Duration::from_secs(1);
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

type TaskResponse<T> = Result<Json<T>, ErrorResponse>;

async fn read<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let bad = |message: String| {
        ApiError::new(ErrorCode::BadRequest, message).with_hint("GET /v1/openapi.json describes every request")
    };
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| {
        ApiError::new(ErrorCode::TooLarge, format!("a request may have {} MiB at the most", MAX_BODY_BYTES >> 20))
            .with_hint("put it into a file, and have the task read that")
    })?;
    serde_json::from_slice(&bytes).map_err(|error| bad(format!("the request cannot be read: {error}")))
}

/// Goes on when the caller leaves: half of it would be worse.
async fn run_detached<T: Send + 'static>(
    doing: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> TaskResponse<T> {
    match tokio::spawn(doing).await {
        Ok(outcome) => Ok(Json(outcome?)),
        Err(error) => {
            tracing::error!(%error, "a task's command ended badly");
            Err(ApiError::new(ErrorCode::Internal, "it ended badly").with_hint("agtmux daemon logs").into())
        }
    }
}

/// The tasks of one session as they are now. A session that is not there has `exists: false`.
#[utoipa::path(get, path = "/v1/tasks", params(TaskSessionQuery), responses(
    (status = 200, body = TaskList), (status = 400, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn get_tasks(
    State(context): State<ServeContext>,
    Asked(asked): Asked<TaskSessionQuery>,
) -> TaskResponse<TaskList> {
    Ok(Json(context.tasks.list(&asked).await?))
}

/// Starts a task in a window of its own, or again in the window that has its name. Agents may do this, too, but what runs in the
/// session of another is not replaced by them.
#[utoipa::path(post, path = "/v1/tasks/run", request_body = TaskRunRequest, responses(
    (status = 200, body = TaskStarted), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 409, body = ApiError), (status = 502, body = ApiError), (status = 503, body = ApiError)))]
pub(super) async fn run_task(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskStarted> {
    let run: TaskRunRequest = read(body).await?;
    let asker = RequestCaller { owner_pid: run.owner, ..asker };
    run_detached(async move { context.tasks.run(run, &asker).await }).await
}

/// What a task has written.
#[utoipa::path(get, path = "/v1/tasks/logs", params(TaskLogsQuery), responses(
    (status = 200, body = TaskLogs), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn get_task_logs(
    State(context): State<ServeContext>,
    Asked(asked): Asked<TaskLogsQuery>,
) -> TaskResponse<TaskLogs> {
    Ok(Json(context.tasks.logs(&asked).await?))
}

/// Types a text into a task and presses Enter. Refused to agents.
#[utoipa::path(post, path = "/v1/tasks/input", request_body = TaskInputAction, responses(
    (status = 200, body = ActionOutcome<SendReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn send_task_input(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<ActionOutcome<SendReport>> {
    let action: TaskInputAction = read(body).await?;
    run_detached(async move { context.tasks.input(action, asker).await }).await
}

/// Asks a task to end, and makes it if it does not. Refused to agents.
#[utoipa::path(post, path = "/v1/tasks/stop", request_body = TaskStopRequest, responses(
    (status = 200, body = TaskEndReport), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn stop_task(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskEndReport> {
    let action: TaskStopRequest = read(body).await?;
    run_detached(async move { context.tasks.stop(action, &asker).await }).await
}

/// Starts a task again as it was started, by the same rules.
#[utoipa::path(post, path = "/v1/tasks/restart", request_body = TaskRestartRequest, responses(
    (status = 200, body = TaskStarted), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn restart_task(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskStarted> {
    let action: TaskRestartRequest = read(body).await?;
    let asker = RequestCaller { owner_pid: action.owner, ..asker };
    run_detached(async move { context.tasks.restart(action, &asker).await }).await
}

/// Takes windows away whose tasks have ended.
#[utoipa::path(post, path = "/v1/tasks/prune-dead", request_body = TaskCleanupRequest, responses(
    (status = 200, body = TaskEndReport), (status = 400, body = ApiError), (status = 409, body = ApiError),
    (status = 502, body = ApiError)))]
pub(super) async fn prune_dead_tasks(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskEndReport> {
    let action: TaskCleanupRequest = read(body).await?;
    run_detached(async move { context.tasks.prune_dead(action, &asker).await }).await
}

/// Ends all tasks of a session, and the session. Refused to agents.
#[utoipa::path(post, path = "/v1/tasks/kill-all", request_body = TaskCleanupRequest, responses(
    (status = 200, body = TaskEndReport), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn kill_all_tasks(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskEndReport> {
    let action: TaskCleanupRequest = read(body).await?;
    run_detached(async move { context.tasks.kill_all(action, &asker).await }).await
}

/// To be told when a harness session begins: removes what earlier ones of the same project have left where nothing runs in it any more, and
/// names the rest. Sessions of others, and of programs that still run, are not touched.
#[utoipa::path(post, path = "/v1/tasks/startup", request_body = TaskStartupRequest, responses(
    (status = 200, body = TaskStartupReport), (status = 400, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn start_up_tasks(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> TaskResponse<TaskStartupReport> {
    let asked: TaskStartupRequest = read(body).await?;
    let asker = RequestCaller { owner_pid: asked.owner, ..asker };
    run_detached(async move { context.tasks.startup(asked, &asker).await }).await
}

/// What happened to tasks: the newest, or what came after `after`.
#[utoipa::path(get, path = "/v1/tasks/events", params(TaskEventsQuery), responses(
    (status = 200, body = TaskEvents), (status = 400, body = ApiError)))]
pub(super) async fn get_task_events(
    State(context): State<ServeContext>,
    Asked(query): Asked<TaskEventsQuery>,
) -> TaskResponse<TaskEvents> {
    Ok(Json(context.tasks.events(query).await?))
}

/// The same as server-sent events, as they happen; with `after` or `Last-Event-ID` none is missed, also over restarts of the
/// daemon. With `run_id` the stream ends with `over` when nothing more will be told of that run.
#[utoipa::path(get, path = "/v1/tasks/events/stream", params(TaskEventsQuery), responses(
    (status = 200, body = TaskEvent, content_type = "text/event-stream"), (status = 400, body = ApiError)))]
pub(super) async fn follow_task_events(
    State(context): State<ServeContext>,
    headers: HeaderMap,
    Asked(mut query): Asked<TaskEventsQuery>,
) -> Result<Response, ErrorResponse> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    // Before it is looked where the stream begins: what comes then is told.
    let latest = context.event_log.subscribe();
    query.limit = None;
    query.after = match last.or(query.after) {
        Some(after) => Some(after),
        None => Some(context.tasks.events(TaskEventsQuery { limit: Some(1), ..Default::default() }).await?.seq),
    };
    let reader = TaskEventReader {
        tasks: context.tasks.clone(),
        event_log: context.event_log.clone(),
        latest,
        stopping: context.stopping.clone(),
        query,
        caught_up: false,
        begun: false,
        is_over: false,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct TaskEventReader {
    tasks: Tasks,
    event_log: Arc<EventLog>,
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// After which event it goes on is in it.
    query: TaskEventsQuery,
    /// It has everything that was stored when it came: the rest it hears of with everybody else.
    caught_up: bool,
    begun: bool,
    is_over: bool,
}

impl TaskEventReader {
    /// What has come since the last time; a comment at the start, and where nothing has come for long.
    async fn next(&mut self) -> Option<Bytes> {
        let pause = if self.query.run_id.is_some() { RUN_HEARTBEAT } else { HEARTBEAT };
        // Also where much happens that is not for this reader.
        let silent_until = Instant::now() + pause;
        loop {
            if self.is_over {
                return None;
            }
            self.latest.borrow_and_update();
            // Before it is read what was told of it: that was stored before it was over, and may be published later.
            let over = match self.query.run_id.clone() {
                Some(run) if self.tasks.is_over(&run).await => Some(run),
                _ => None,
            };
            self.caught_up &= over.is_none();
            let news = self.next_events().await?;
            if !news.is_empty() {
                return Some(news.into());
            }
            if self.caught_up && !std::mem::replace(&mut self.begun, true) {
                return Some(COMMENT);
            }
            if let Some(over) = over {
                self.is_over = true;
                return Some(data("over", &TaskStreamItem::Over { over }).into());
            }
            tokio::select! {
                changed = self.latest.changed() => if changed.is_err() { return None },
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = sleep_until(silent_until) => return Some(COMMENT),
            }
        }
    }

    /// Of what is kept for those who keep up. Whoever has just come, or is too far behind, reads what is stored first.
    async fn next_events(&mut self) -> Option<String> {
        let after = self.query.after.unwrap_or(0);
        let (seq, kept) = {
            let inner = self.event_log.read();
            (inner.seq(), Some(inner.since(after)).filter(|_| self.caught_up))
        };
        if let Some(EventsSince::Events(events)) = kept {
            self.query.after = Some(seq);
            let news = events.iter().filter_map(|published| published.event.task.as_deref());
            return Some(news.filter(|news| matches_query(&self.query, news)).map(|news| frame(&news.event)).collect());
        }
        let stored = self.tasks.events(self.query.clone()).await.ok()?.items;
        // What has a number up to this one was stored before it was published.
        self.caught_up = stored.is_empty();
        self.query.after = Some(stored.last().map_or(seq.max(after), |last| last.seq));
        Some(stored.iter().map(frame).collect())
    }
}

/// The same that the store would give.
fn matches_query(query: &TaskEventsQuery, news: &TaskWatchEvent) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
    let socket = query.socket.as_ref().map(|socket| server_name(Path::new(socket)).to_string());
    let event = &news.event;
    is(&query.session, Some(event.session.as_str()))
        && is(&socket, Some(&news.server))
        && is(&query.task, Some(&event.task))
        && is(&query.run_id, event.run_id.as_ref().map(RunId::as_str))
}

fn frame(event: &TaskEvent) -> String {
    format!("id: {}\n{}", event.seq, data(&event.kind.to_string(), event))
}

fn data(kind: &str, told: &impl serde::Serialize) -> String {
    let data = serde_json::to_string(told).unwrap_or_else(|error| unreachable!("a wire type serialises: {error}"));
    format!("event: {kind}\ndata: {data}\n\n")
}
