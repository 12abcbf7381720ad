//! `/v1/adapters`: which agents are recognized, and how well.

use agtmux_api::error::ApiError;
use agtmux_api::wire::{AdapterList, AdapterSwitch};
use axum::Json;
use axum::extract::State;

use super::ServeContext;
use super::extract::{ErrorResponse, JsonBody, MAX_SMALL_BODY_BYTES};

/// List the adapters with their capabilities, health and evidence sources.
#[utoipa::path(get, path = "/v1/adapters", responses((status = 200, body = AdapterList)))]
pub(super) async fn get_adapters(State(context): State<ServeContext>) -> Result<Json<AdapterList>, ErrorResponse> {
    Ok(Json(context.engine.adapters().await?))
}

/// Switch an adapter on or off.
///
/// Agents of a disabled adapter are still listed, but their state is `unknown`.
#[utoipa::path(post, path = "/v1/adapters", request_body = AdapterSwitch, responses(
    (status = 200, body = AdapterList), (status = 400, body = ApiError), (status = 404, body = ApiError)))]
pub(super) async fn switch_adapter(
    State(context): State<ServeContext>,
    JsonBody(switch): JsonBody<AdapterSwitch, MAX_SMALL_BODY_BYTES>,
) -> Result<Json<AdapterList>, ErrorResponse> {
    Ok(Json(context.engine.switch_adapter(switch).await?))
}
