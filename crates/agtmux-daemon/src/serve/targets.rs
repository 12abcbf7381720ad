//! `/v1/targets`: the watched hosts.

use agtmux_api::wire::{ActionKind, NewTarget, TargetCheckReport, TargetItem, TargetList};
use axum::{Extension, Json};

use super::ServeContext;
use super::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES, NameInPath, run_detached};
use super::openapi::Error;
use super::web::{AccessLevel, refuse_read_only};
use crate::actions::{ChangeEntry, RequestCaller};

/// List the targets with their health.
#[utoipa::path(get, path = "/v1/targets", responses((status = 200, body = TargetList)))]
pub(super) async fn get_targets(context: ServeContext) -> Json<TargetList> {
    Json(context.targets.list())
}

/// Add a target and watch it from now on.
///
/// The response is sent after the first connection attempt. Fails with `E_CALLER_IS_AGENT` if the caller is an agent,
/// unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/targets", request_body = NewTarget, responses(
    (status = 200, body = TargetItem), Error<400>, Error<403>, Error<409>))]
pub(super) async fn add_target(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(new): JsonBody<NewTarget, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<TargetItem> {
    run_detached(async move {
        let name = new.name.clone();
        let entry = ChangeEntry { kind: ActionKind::Target, caller: &caller, summary: "add a target", name: &name };
        context.actions.audited_change_unless_agent(entry, context.targets.add(new)).await
    })
    .await
}

/// Remove a target.
///
/// Nothing changes on the host itself. Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless
/// `actions.allow_from_agents` is set.
#[utoipa::path(delete, path = "/v1/targets/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = TargetList), Error<400>, Error<403>, Error<404>))]
pub(super) async fn remove_target(
    context: ServeContext,
    caller: RequestCaller,
    NameInPath(name): NameInPath,
) -> JsonResult<TargetList> {
    run_detached(async move {
        let entry = ChangeEntry { kind: ActionKind::Target, caller: &caller, summary: "remove a target", name: &name };
        context.actions.audited_change_unless_agent(entry, context.targets.remove(&name)).await?;
        Ok(context.targets.list())
    })
    .await
}

/// Connect to a target now and return the result.
#[utoipa::path(post, path = "/v1/targets/{name}/connect", params(("name" = String, Path)), responses(
    (status = 200, body = TargetItem), Error<404>))]
pub(super) async fn connect_target(
    context: ServeContext,
    caller: RequestCaller,
    NameInPath(name): NameInPath,
) -> JsonResult<TargetItem> {
    let summary = "connect to a target";
    let entry = ChangeEntry { kind: ActionKind::Target, caller: &caller, summary, name: &name };
    Ok(Json(context.actions.audited_change(entry, context.targets.connect(&name)).await?))
}

/// Check what is installed on the host of a target, and suggest commands to run.
#[utoipa::path(get, path = "/v1/targets/{name}/doctor", params(("name" = String, Path)), responses(
    (status = 200, body = TargetCheckReport), Error<404>))]
pub(super) async fn get_checkup(
    context: ServeContext,
    access: Option<Extension<AccessLevel>>,
    NameInPath(name): NameInPath,
) -> JsonResult<TargetCheckReport> {
    // The check starts programs on the host.
    access.map_or(Ok(()), |Extension(access)| refuse_read_only(access))?;
    let agents = context.discovery.registry().names();
    Ok(Json(context.targets.checkup(&name, agents).await?))
}
