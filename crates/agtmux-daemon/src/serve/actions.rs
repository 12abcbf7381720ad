//! `POST /v1/actions/…`: actions on agents.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{
    ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, AttachAction, AttachPlan, AuditLog,
    AuditQuery, KillAction, KillReport, LastAction, LastReport, NewAction, NewReport, OutputAction, OutputReport,
    PaneHealth, RenameAction, RenameReport, RespondAction, RespondReport, ResumeAction, ResumeReport, SeenAction,
    SeenReport, SendAction, SendReport, SnapshotAction,
};
use agtmux_core::refs::{PaneRef, RefError};
use axum::Json;
use axum::body::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::IntoParams;

use super::ServeContext;
use super::extract::{
    JsonBody, JsonResult, MAX_BODY_BYTES, MAX_SMALL_BODY_BYTES, NameInPath, StrictQuery, parse_object, read_body,
    run_detached,
};
use super::openapi::Error;
use crate::actions::{ChangeEntry, RequestCaller};
use crate::engine::ref_error;

type ActionResult<T> = JsonResult<ActionOutcome<T>>;

/// Reads the body. A request that cannot be read is rejected and recorded in the audit log.
async fn read_or_audit<T: DeserializeOwned>(
    context: &ServeContext,
    caller: &RequestCaller,
    kind: ActionKind,
    body: Body,
) -> ApiResult<T> {
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
/// The snapshot is valid for `actions.snapshot_lifetime`, by default 30 seconds. Pass its `snapshot_id` and `nonce` to
/// the action: the action fails if the pane has changed.
#[utoipa::path(post, path = "/v1/actions/snapshot", request_body = SnapshotAction, responses(
    (status = 200, body = ActionSnapshot), Error<400>, Error<404>, Error<409>))]
pub(super) async fn take_snapshot(
    context: ServeContext,
    JsonBody(action): JsonBody<SnapshotAction>,
) -> JsonResult<ActionSnapshot> {
    Ok(Json(context.actions.snapshot(&action.guards).await?))
}

/// Type a text into an agent and submit it, or press keys.
#[utoipa::path(post, path = "/v1/actions/send", request_body = SendAction, responses(
    (status = 200, body = ActionOutcome<SendReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<413>,
    Error<502>, Error<503>, Error<504>))]
pub(super) async fn send(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<SendReport> {
    let action: SendAction = read_or_audit(&context, &caller, ActionKind::Send, body).await?;
    run_detached(async move { context.actions.send(action, caller).await }).await
}

/// Answer an agent's open dialog.
///
/// Fails if the dialog has changed.
#[utoipa::path(post, path = "/v1/actions/respond", request_body = RespondAction, responses(
    (status = 200, body = ActionOutcome<RespondReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn respond(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<RespondReport> {
    let action: RespondAction = read_or_audit(&context, &caller, ActionKind::Respond, body).await?;
    run_detached(async move { context.actions.respond(action, caller).await }).await
}

/// Return everything needed to attach to a pane: its server, session, window and host.
#[utoipa::path(post, path = "/v1/actions/attach", request_body = AttachAction, responses(
    (status = 200, body = ActionOutcome<AttachPlan>), Error<400>, Error<404>, Error<409>))]
pub(super) async fn attach(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<AttachPlan> {
    let action: AttachAction = read_or_audit(&context, &caller, ActionKind::Attach, body).await?;
    run_detached(async move { context.actions.attach(action, caller).await }).await
}

/// Return the recent output of a pane.
#[utoipa::path(post, path = "/v1/actions/view-output", request_body = OutputAction, responses(
    (status = 200, body = ActionOutcome<OutputReport>), Error<400>, Error<404>, Error<409>))]
pub(super) async fn view_output(
    context: ServeContext,
    caller: RequestCaller,
    body: Body,
) -> ActionResult<OutputReport> {
    let action: OutputAction = read_or_audit(&context, &caller, ActionKind::ViewOutput, body).await?;
    run_detached(async move { context.actions.view_output(action, caller).await }).await
}

/// Return an agent's last answers.
///
/// The text is exact if `source` is `transcript`: agtmux has read it from the conversation that the agent stores.
#[utoipa::path(post, path = "/v1/actions/last", request_body = LastAction, responses(
    (status = 200, body = ActionOutcome<LastReport>), Error<400>, Error<404>, Error<409>))]
pub(super) async fn last(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<LastReport> {
    let action: LastAction = read_or_audit(&context, &caller, ActionKind::Last, body).await?;
    run_detached(async move { context.actions.last(action, caller).await }).await
}

/// Interrupt or end an agent.
#[utoipa::path(post, path = "/v1/actions/kill", request_body = KillAction, responses(
    (status = 200, body = ActionOutcome<KillReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn kill(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<KillReport> {
    let action: KillAction = read_or_audit(&context, &caller, ActionKind::Kill, body).await?;
    run_detached(async move { context.actions.kill(action, caller).await }).await
}

/// Start an ended agent again in its pane, with its session.
#[utoipa::path(post, path = "/v1/actions/resume", request_body = ResumeAction, responses(
    (status = 200, body = ActionOutcome<ResumeReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn resume(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<ResumeReport> {
    let action: ResumeAction = read_or_audit(&context, &caller, ActionKind::Resume, body).await?;
    run_detached(async move { context.actions.resume(action, caller).await }).await
}

/// Start an agent in a new window or pane, and send its first prompt when the agent is ready.
///
/// Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_new_from_agents` or
/// `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/actions/new", request_body = NewAction, responses(
    (status = 200, body = ActionOutcome<NewReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<413>,
    Error<502>, Error<503>, Error<504>))]
pub(super) async fn new_agent(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<NewReport> {
    let action: NewAction = read_or_audit(&context, &caller, ActionKind::New, body).await?;
    run_detached(async move { context.actions.new_agent(action, caller).await }).await
}

/// Give an agent a name.
#[utoipa::path(post, path = "/v1/actions/rename", request_body = RenameAction, responses(
    (status = 200, body = ActionOutcome<RenameReport>), Error<400>, Error<403>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn rename(context: ServeContext, caller: RequestCaller, body: Body) -> ActionResult<RenameReport> {
    let action: RenameAction = read_or_audit(&context, &caller, ActionKind::Rename, body).await?;
    run_detached(async move { context.actions.rename(action, caller).await }).await
}

/// Mark a completed agent as seen.
///
/// Its `unseen` becomes false, as if a person had visited the pane. Fails with `E_CALLER_IS_AGENT` if the caller is an
/// agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/actions/seen", request_body = SeenAction, responses(
    (status = 200, body = SeenReport), Error<400>, Error<403>, Error<404>, Error<409>))]
pub(super) async fn mark_seen(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(action): JsonBody<SeenAction, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<SeenReport> {
    let name = action.r#ref;
    let reference: PaneRef = name.parse().map_err(|error: RefError| ref_error(&error))?;
    run_detached(async move {
        let summary = "mark an agent as seen";
        let entry = ChangeEntry { kind: ActionKind::Seen, caller: &caller, summary, name: &name };
        context.actions.audited_change_unless_agent(entry, context.engine.mark_seen(reference)).await
    })
    .await
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
    (status = 200, body = PaneHealth), Error<400>, Error<404>, Error<409>, Error<502>))]
pub(super) async fn get_pane_health(
    context: ServeContext,
    StrictQuery(query): StrictQuery<PaneHealthQuery>,
) -> JsonResult<PaneHealth> {
    let guards = ActionGuards { r#ref: query.r#ref.clone(), ..ActionGuards::default() };
    Ok(Json(context.actions.check_health(&guards).await?))
}

/// Return the record of one action.
#[utoipa::path(get, path = "/v1/actions/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = ActionRecord), Error<404>))]
pub(super) async fn get_action(context: ServeContext, NameInPath(id): NameInPath) -> JsonResult<ActionRecord> {
    match context.actions.action(id).await? {
        Some(record) => Ok(Json(record)),
        None => Err(ApiError::new(ErrorCode::NotFound, "no action has this id").with_hint("agtmux audit").into()),
    }
}

/// List the recorded actions, oldest first.
///
/// Rejected actions are included.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery), responses(
    (status = 200, body = AuditLog), Error<400>, Error<404>, Error<409>))]
pub(super) async fn get_audit(
    context: ServeContext,
    StrictQuery(query): StrictQuery<AuditQuery>,
) -> JsonResult<AuditLog> {
    Ok(Json(context.actions.audit(&query).await?))
}
