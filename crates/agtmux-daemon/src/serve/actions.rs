//! `POST /v1/actions/…`: actions on agents.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, AttachAction, AttachPlan, AuditLog,
    AuditQuery, KillAction, KillReport, OutputAction, OutputReport, PaneHealth, RespondAction, RespondReport,
    ResumeAction, ResumeReport, SendAction, SendReport, SnapshotAction,
};
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::IntoParams;

use super::ServeContext;
use super::extract::{
    ErrorResponse, JsonBody, MAX_BODY_BYTES, NameInPath, StrictQuery, parse_object, read_body, run_detached,
};
use crate::actions::RequestCaller;

type ActionResult<T> = Result<Json<ActionOutcome<T>>, ErrorResponse>;

/// Reads the body. A request that cannot be read is rejected and recorded in the audit log.
async fn read_or_audit<T: DeserializeOwned>(
    context: &ServeContext,
    caller: &RequestCaller,
    kind: ActionKind,
    body: Body,
) -> Result<T, ApiError> {
    let (partial, error) = match read_body(body, MAX_BODY_BYTES).await {
        Ok(bytes) => match parse_object(&bytes) {
            Ok(action) => return Ok(action),
            Err(error) => (serde_json::from_slice(&bytes).unwrap_or_default(), error),
        },
        Err(error) if error.code == ErrorCode::TooLarge => (Value::Null, error),
        // The caller disconnected before the request was complete, so there is nothing to record.
        Err(error) => return Err(error),
    };
    let text = |name: &str| partial[name].as_str().map(str::to_owned);
    let guards =
        ActionGuards { r#ref: text("ref").unwrap_or_default(), client: text("client"), ..ActionGuards::default() };
    Err(context.actions.reject_unreadable(kind, &guards, caller, error).await)
}

/// Take a snapshot of a pane to guard a later action.
///
/// The snapshot is valid for 30 seconds, or for `actions.snapshot_lifetime`. Pass its `snapshot_id` and
/// `nonce` to the action: the action fails if the pane has changed.
#[utoipa::path(post, path = "/v1/actions/snapshot", request_body = SnapshotAction, responses(
    (status = 200, body = ActionSnapshot), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn take_snapshot(
    State(context): State<ServeContext>,
    JsonBody(action): JsonBody<SnapshotAction>,
) -> Result<Json<ActionSnapshot>, ErrorResponse> {
    Ok(Json(context.actions.snapshot(&action.guards).await?))
}

/// Type a text into an agent and submit it, or press keys.
#[utoipa::path(post, path = "/v1/actions/send", request_body = SendAction, responses(
    (status = 200, body = ActionOutcome<SendReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 413, body = ApiError),
    (status = 502, body = ApiError), (status = 503, body = ApiError), (status = 504, body = ApiError)))]
pub(super) async fn send(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<SendReport> {
    let action: SendAction = read_or_audit(&context, &caller, ActionKind::Send, body).await?;
    run_detached(async move { context.actions.send(action, caller).await }).await
}

/// Answer an agent's open dialog.
///
/// Fails if the dialog has changed.
#[utoipa::path(post, path = "/v1/actions/respond", request_body = RespondAction, responses(
    (status = 200, body = ActionOutcome<RespondReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn respond(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<RespondReport> {
    let action: RespondAction = read_or_audit(&context, &caller, ActionKind::Respond, body).await?;
    run_detached(async move { context.actions.respond(action, caller).await }).await
}

/// Return everything needed to attach to a pane: its server, session, window and host.
#[utoipa::path(post, path = "/v1/actions/attach", request_body = AttachAction, responses(
    (status = 200, body = ActionOutcome<AttachPlan>), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn attach(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<AttachPlan> {
    let action: AttachAction = read_or_audit(&context, &caller, ActionKind::Attach, body).await?;
    run_detached(async move { context.actions.attach(action, caller).await }).await
}

/// Return the recent output of a pane.
#[utoipa::path(post, path = "/v1/actions/view-output", request_body = OutputAction, responses(
    (status = 200, body = ActionOutcome<OutputReport>), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError)))]
pub(super) async fn view_output(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<OutputReport> {
    let action: OutputAction = read_or_audit(&context, &caller, ActionKind::ViewOutput, body).await?;
    run_detached(async move { context.actions.view_output(action, caller).await }).await
}

/// Interrupt or end an agent.
#[utoipa::path(post, path = "/v1/actions/kill", request_body = KillAction, responses(
    (status = 200, body = ActionOutcome<KillReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn kill(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<KillReport> {
    let action: KillAction = read_or_audit(&context, &caller, ActionKind::Kill, body).await?;
    run_detached(async move { context.actions.kill(action, caller).await }).await
}

/// Start an ended agent again in its pane, with its session.
#[utoipa::path(post, path = "/v1/actions/resume", request_body = ResumeAction, responses(
    (status = 200, body = ActionOutcome<ResumeReport>), (status = 400, body = ApiError), (status = 403, body = ApiError),
    (status = 404, body = ApiError), (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn resume(
    State(context): State<ServeContext>,
    Extension(caller): Extension<RequestCaller>,
    body: Body,
) -> ActionResult<ResumeReport> {
    let action: ResumeAction = read_or_audit(&context, &caller, ActionKind::Resume, body).await?;
    run_detached(async move { context.actions.resume(action, caller).await }).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PaneHealthQuery {
    /// `runtime:ID`, `%12`, an agent's name, or `pane:TARGET/SESSION/@W/%P`.
    r#ref: String,
}

/// Check whether a pane exists and its agent runs.
#[utoipa::path(get, path = "/v1/actions/health", params(PaneHealthQuery), responses(
    (status = 200, body = PaneHealth), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError), (status = 502, body = ApiError)))]
pub(super) async fn get_pane_health(
    State(context): State<ServeContext>,
    StrictQuery(query): StrictQuery<PaneHealthQuery>,
) -> Result<Json<PaneHealth>, ErrorResponse> {
    let guards = ActionGuards { r#ref: query.r#ref.clone(), ..ActionGuards::default() };
    Ok(Json(context.actions.check_health(&guards).await?))
}

/// Return the record of one action.
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

/// List the recorded actions, oldest first.
///
/// Rejected actions are included.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery), responses(
    (status = 200, body = AuditLog), (status = 400, body = ApiError)))]
pub(super) async fn get_audit(
    State(context): State<ServeContext>,
    StrictQuery(query): StrictQuery<AuditQuery>,
) -> Result<Json<AuditLog>, ErrorResponse> {
    Ok(Json(context.actions.audit(&query).await?))
}
