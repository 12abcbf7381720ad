//! `/v1/adapters`: which agents are recognized, and how well.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{AdapterList, AdapterSwitch};
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;

use super::ServeContext;
use super::extract::ErrorResponse;

const MAX_BODY_BYTES: usize = 4096;

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
    body: Body,
) -> Result<Json<AdapterList>, ErrorResponse> {
    let bad = |why: String| {
        ApiError::new(ErrorCode::BadRequest, why).with_hint(r#"send {"name": "claude", "enabled": false}"#)
    };
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|error| bad(error.to_string()))?;
    let switch: AdapterSwitch = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    Ok(Json(context.engine.switch_adapter(switch).await?))
}
