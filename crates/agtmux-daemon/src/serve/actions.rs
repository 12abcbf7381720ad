//! `POST /v1/actions/…`: what is asked of an agent.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, AttachAction, AttachPlan, AuditLog,
    AuditQuery, KillAction, KillReport, OutputAction, OutputReport, PaneHealth, RespondAction, RespondReport,
    ResumeAction, ResumeReport, SendAction, SendReport, SnapshotAction,
};
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::{Extension, Json};
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::IntoParams;

use super::ServeContext;
use super::extract::{Asked, ErrorResponse, NameInPath};
use crate::actions::RequestCaller;

/// A text of a megabyte may need four in JSON.
const MAX_BODY_BYTES: usize = 5 << 20;

/// A key that is not known may be a guard with a typing error: it must not be left out.
const GUARD_KEYS: [&str; 12] = [
    "ref",
    "snapshot_id",
    "nonce",
    "if_runtime",
    "if_state",
    "if_updated_within_ms",
    "if_dialog",
    "if_pane",
    "not_after",
    "force_stale",
    "request_ref",
    "client",
];

type ActionResult<T> = Result<Json<ActionOutcome<T>>, ErrorResponse>;

/// What cannot be read is refused, and written down as every other request is.
async fn read_or_audit<T: DeserializeOwned>(
    context: &ServeContext,
    asker: &RequestCaller,
    kind: ActionKind,
    body: Body,
    keys: &[&str],
) -> Result<T, ApiError> {
    let (named, error) = match read(body, keys).await {
        Ok(action) => return Ok(action),
        // Whoever left in the middle of it has asked for nothing.
        Err((None, error)) => return Err(error),
        Err((Some(named), error)) => (named, error),
    };
    let text = |name: &str| named[name].as_str().map(str::to_owned);
    let guards =
        ActionGuards { r#ref: text("ref").unwrap_or_default(), client: text("client"), ..ActionGuards::default() };
    Err(context.actions.reject_unreadable(kind, &guards, asker, error).await)
}

/// Or why not, and what could be read of it; none if it did not arrive.
async fn read<T: DeserializeOwned>(body: Body, keys: &[&str]) -> Result<T, (Option<Value>, ApiError)> {
    let bad = |message: String| {
        ApiError::new(ErrorCode::BadRequest, message).with_hint("GET /v1/openapi.json describes every request")
    };
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|error| match is_too_large(&error) {
        true => {
            let message = format!("a request may have {} MiB at the most", MAX_BODY_BYTES >> 20);
            let hint = "a text may have 1 MiB; put it into a file and tell the agent to read that";
            (Some(Value::Null), ApiError::new(ErrorCode::TooLarge, message).with_hint(hint))
        }
        false => (None, bad(format!("the body did not arrive whole: {error}"))),
    })?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| (Some(Value::Null), bad(format!("the body is no JSON: {error}"))))?;
    let why = match value.as_object() {
        None => "the body is not a JSON object".to_owned(),
        Some(fields) => match fields.keys().find(|key| !is_known(key, keys)) {
            Some(key) => format!("'{}' is not known here", key.chars().take(64).collect::<String>()),
            None => match T::deserialize(&value) {
                Ok(action) => return Ok(action),
                Err(error) => format!("the request cannot be read: {error}"),
            },
        },
    };
    Err((Some(value), bad(why)))
}

fn is_known(key: &str, keys: &[&str]) -> bool {
    GUARD_KEYS.contains(&key) || keys.contains(&key)
}

fn is_too_large(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<LengthLimitError>())
}

/// Goes on when the caller leaves: half a message is worse than one that nobody waits for.
async fn run_detached<T: Send + 'static>(
    action: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<Json<T>, ErrorResponse> {
    match tokio::spawn(action).await {
        Ok(outcome) => Ok(Json(outcome?)),
        Err(error) => {
            tracing::error!(%error, "an action ended badly");
            Err(ApiError::new(ErrorCode::Internal, "the action ended badly").with_hint("agtmux daemon logs").into())
        }
    }
}

/// Looks at a pane, to act on what was seen within the next 30 seconds, or as long as `actions.snapshot_lifetime` says.
#[utoipa::path(post, path = "/v1/actions/snapshot", request_body = SnapshotAction, responses(
    (status = 200, body = ActionSnapshot), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn take_snapshot(
    State(context): State<ServeContext>,
    body: Body,
) -> Result<Json<ActionSnapshot>, ErrorResponse> {
    let action: SnapshotAction = read(body, &[]).await.map_err(|(_, error)| error)?;
    Ok(Json(context.actions.snapshot(&action.guards).await?))
}

/// Types a text and has it submitted, or presses keys.
#[utoipa::path(post, path = "/v1/actions/send", request_body = SendAction, responses(
    (status = 200, body = ActionOutcome<SendReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 413, body = ApiError),
    (status = 502, body = ApiError), (status = 503, body = ApiError), (status = 504, body = ApiError)))]
pub(super) async fn send(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<SendReport> {
    let action: SendAction =
        read_or_audit(&context, &asker, ActionKind::Send, body, &["text", "keys", "no_enter", "profile"]).await?;
    run_detached(async move { context.actions.send(action, asker).await }).await
}

/// Answers the dialog that is open.
#[utoipa::path(post, path = "/v1/actions/respond", request_body = RespondAction, responses(
    (status = 200, body = ActionOutcome<RespondReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn respond(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<RespondReport> {
    let action: RespondAction = read_or_audit(&context, &asker, ActionKind::Respond, body, &["answer"]).await?;
    run_detached(async move { context.actions.respond(action, asker).await }).await
}

/// Tells how to get to a pane.
#[utoipa::path(post, path = "/v1/actions/attach", request_body = AttachAction, responses(
    (status = 200, body = ActionOutcome<AttachPlan>), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn attach(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<AttachPlan> {
    let action: AttachAction = read_or_audit(&context, &asker, ActionKind::Attach, body, &[]).await?;
    run_detached(async move { context.actions.attach(action, asker).await }).await
}

/// Shows what a pane has shown.
#[utoipa::path(post, path = "/v1/actions/view-output", request_body = OutputAction, responses(
    (status = 200, body = ActionOutcome<OutputReport>), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn view_output(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<OutputReport> {
    let action: OutputAction =
        read_or_audit(&context, &asker, ActionKind::ViewOutput, body, &["lines", "ansi", "again"]).await?;
    run_detached(async move { context.actions.view_output(action, asker).await }).await
}

/// Interrupts an agent, or ends it.
#[utoipa::path(post, path = "/v1/actions/kill", request_body = KillAction, responses(
    (status = 200, body = ActionOutcome<KillReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn kill(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<KillReport> {
    let action: KillAction = read_or_audit(&context, &asker, ActionKind::Kill, body, &["signal"]).await?;
    run_detached(async move { context.actions.kill(action, asker).await }).await
}

/// Starts an agent that has ended again, in its pane, with its session.
#[utoipa::path(post, path = "/v1/actions/resume", request_body = ResumeAction, responses(
    (status = 200, body = ActionOutcome<ResumeReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn resume(
    State(context): State<ServeContext>,
    Extension(asker): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<ResumeReport> {
    let action: ResumeAction = read_or_audit(&context, &asker, ActionKind::Resume, body, &[]).await?;
    run_detached(async move { context.actions.resume(action, asker).await }).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PaneHealthQuery {
    /// `runtime:ID`, `%12`, an agent's name, or `pane:TARGET/SESSION/@W/%P`.
    r#ref: String,
}

/// Whether a pane is there and its agent runs.
#[utoipa::path(get, path = "/v1/actions/health", params(PaneHealthQuery), responses(
    (status = 200, body = PaneHealth), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn get_pane_health(
    State(context): State<ServeContext>,
    Asked(query): Asked<PaneHealthQuery>,
) -> Result<Json<PaneHealth>, ErrorResponse> {
    let guards = ActionGuards { r#ref: query.r#ref.clone(), ..ActionGuards::default() };
    Ok(Json(context.actions.check_health(&guards).await?))
}

/// What came of an action.
#[utoipa::path(get, path = "/v1/actions/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = ActionRecord), (status = 404, body = ApiError)))]
pub(super) async fn get_action(
    State(context): State<ServeContext>,
    NameInPath(id): NameInPath,
) -> Result<Json<ActionRecord>, ErrorResponse> {
    match context.actions.action(id).await? {
        Some(record) => Ok(Json(record)),
        None => Err(ApiError::new(ErrorCode::NotFound, "no such action").with_hint("agtmux audit").into()),
    }
}

/// Every action, refused ones too, the newest last.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery), responses(
    (status = 200, body = AuditLog), (status = 400, body = ApiError)))]
pub(super) async fn get_audit(
    State(context): State<ServeContext>,
    Asked(query): Asked<AuditQuery>,
) -> Result<Json<AuditLog>, ErrorResponse> {
    Ok(Json(context.actions.audit(&query).await?))
}
