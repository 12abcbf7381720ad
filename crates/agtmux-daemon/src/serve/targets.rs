//! `/v1/targets`: the watched hosts.

use agtmux_api::error::ApiError;
use agtmux_api::wire::{NewTarget, TargetCheckReport, TargetItem, TargetList};
use axum::Json;
use axum::extract::State;

use super::ServeContext;
use super::extract::{ErrorResponse, JsonBody, MAX_SMALL_BODY_BYTES, NameInPath};

/// List the targets with their health.
#[utoipa::path(get, path = "/v1/targets", responses((status = 200, body = TargetList)))]
pub(super) async fn get_targets(State(context): State<ServeContext>) -> Json<TargetList> {
    Json(context.targets.list())
}

/// Add a target and watch it from now on.
///
/// The response is sent after the first connection attempt.
#[utoipa::path(post, path = "/v1/targets", request_body = NewTarget, responses(
    (status = 200, body = TargetItem), (status = 400, body = ApiError), (status = 409, body = ApiError)))]
pub(super) async fn add_target(
    State(context): State<ServeContext>,
    JsonBody(new): JsonBody<NewTarget, MAX_SMALL_BODY_BYTES>,
) -> Result<Json<TargetItem>, ErrorResponse> {
    Ok(Json(context.targets.add(new).await?))
}

/// Remove a target.
///
/// Nothing changes on the host itself.
#[utoipa::path(delete, path = "/v1/targets/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = TargetList), (status = 400, body = ApiError), (status = 404, body = ApiError)))]
pub(super) async fn remove_target(
    State(context): State<ServeContext>,
    NameInPath(name): NameInPath,
) -> Result<Json<TargetList>, ErrorResponse> {
    context.targets.remove(&name).await?;
    Ok(Json(context.targets.list()))
}

/// Connect to a target now and return the result.
#[utoipa::path(post, path = "/v1/targets/{name}/connect", params(("name" = String, Path)), responses(
    (status = 200, body = TargetItem), (status = 404, body = ApiError)))]
pub(super) async fn connect_target(
    State(context): State<ServeContext>,
    NameInPath(name): NameInPath,
) -> Result<Json<TargetItem>, ErrorResponse> {
    Ok(Json(context.targets.connect(&name).await?))
}

/// Check what is installed on the host of a target, and suggest commands to run.
#[utoipa::path(get, path = "/v1/targets/{name}/doctor", params(("name" = String, Path)), responses(
    (status = 200, body = TargetCheckReport), (status = 404, body = ApiError)))]
pub(super) async fn get_checkup(
    State(context): State<ServeContext>,
    NameInPath(name): NameInPath,
) -> Result<Json<TargetCheckReport>, ErrorResponse> {
    let agents = context.discovery.registry().names();
    Ok(Json(context.targets.checkup(&name, agents).await?))
}
