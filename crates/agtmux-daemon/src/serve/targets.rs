//! `/v1/targets`: the watched hosts.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{NewTarget, TargetCheckReport, TargetItem, TargetList};
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;

use super::ServeContext;
use super::extract::{ErrorResponse, NameInPath};

const MAX_BODY_BYTES: usize = 4096;

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
    body: Body,
) -> Result<Json<TargetItem>, ErrorResponse> {
    let bad = |why: String| {
        ApiError::new(ErrorCode::BadRequest, why)
            .with_hint(r#"send {"name": "vm1", "kind": "ssh", "ssh_target": "vm1"}"#)
    };
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|error| bad(error.to_string()))?;
    let new: NewTarget = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
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
    let agents = context.discovery.registry().adapters().map(|adapter| adapter.name).collect();
    Ok(Json(context.targets.checkup(&name, agents).await?))
}
