//! `/v1/adapters`: which agents are recognized, and how well.

use agtmux_api::wire::{ActionKind, AdapterList, AdapterSwitch};
use axum::Json;

use super::ServeContext;
use super::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES, run_detached};
use super::openapi::Error;
use crate::actions::{ChangeEntry, RequestCaller};

/// List the adapters with their capabilities, health and evidence sources.
#[utoipa::path(get, path = "/v1/adapters", responses((status = 200, body = AdapterList)))]
pub(super) async fn get_adapters(context: ServeContext) -> JsonResult<AdapterList> {
    Ok(Json(context.engine.adapters().await?))
}

/// Switch an adapter on or off.
///
/// Agents of a disabled adapter are still listed, but their state is `unknown`. Fails with `E_CALLER_IS_AGENT` if the
/// caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/adapters", request_body = AdapterSwitch, responses(
    (status = 200, body = AdapterList), Error<400>, Error<403>, Error<404>))]
pub(super) async fn switch_adapter(
    context: ServeContext,
    caller: RequestCaller,
    JsonBody(switch): JsonBody<AdapterSwitch, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<AdapterList> {
    run_detached(async move {
        let name = switch.name.clone();
        let summary = if switch.enabled { "switch an adapter on" } else { "switch an adapter off" };
        let entry = ChangeEntry { kind: ActionKind::Adapter, caller: &caller, summary, name: &name };
        context.actions.audited_change_unless_agent(entry, context.engine.switch_adapter(switch)).await
    })
    .await
}
