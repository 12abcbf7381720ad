//! `/v1/caller`: the agent and the pane behind a request.

use agtmux_api::wire::CallerReport;
use axum::Json;

use super::ServeContext;
use crate::actions::RequestCaller;

/// Return the agent and the pane behind this request.
///
/// The daemon finds them by the process of the caller, so the caller need not know them.
#[utoipa::path(get, path = "/v1/caller", responses((status = 200, body = CallerReport)))]
pub(super) async fn get_caller(context: ServeContext, caller: RequestCaller) -> Json<CallerReport> {
    Json(context.actions.report_caller(&caller).await)
}
