//! `/v1/adapters`: which agents are recognized, and how well.

use agtmux_api::wire::{AdapterList, AdapterSwitch};
use axum::Json;

use super::ServeContext;
use super::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES};
use super::routes::Error;

/// List the adapters with their capabilities, health and evidence sources.
#[utoipa::path(get, path = "/v1/adapters", responses((status = 200, body = AdapterList)))]
pub(super) async fn get_adapters(context: ServeContext) -> JsonResult<AdapterList> {
    Ok(Json(context.engine.adapters().await?))
}

/// Switch an adapter on or off.
///
/// Agents of a disabled adapter are still listed, but their state is `unknown`.
#[utoipa::path(post, path = "/v1/adapters", request_body = AdapterSwitch, responses(
    (status = 200, body = AdapterList), Error<400>, Error<404>))]
pub(super) async fn switch_adapter(
    context: ServeContext,
    JsonBody(switch): JsonBody<AdapterSwitch, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<AdapterList> {
    Ok(Json(context.engine.switch_adapter(switch).await?))
}
