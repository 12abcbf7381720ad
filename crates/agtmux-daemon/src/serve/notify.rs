//! Notifications: the log, and test notices.

use agtmux_api::wire::{NotifyLog, NotifyLogQuery, NotifyTestReport, NotifyTestRequest};
use axum::Json;

use super::ServeContext;
use super::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES, StrictQuery};
use super::openapi::Error;

/// Return the notification log: what was sent, and what was held back and why. Newest line last.
#[utoipa::path(get, path = "/v1/notify/log", params(NotifyLogQuery), responses(
    (status = 200, body = NotifyLog), Error<400>))]
pub(super) async fn get_notify_log(
    context: ServeContext,
    StrictQuery(query): StrictQuery<NotifyLogQuery>,
) -> Json<NotifyLog> {
    Json(context.notifier.log(&query))
}

/// Send a test notice, and wait until the channels have taken it or failed.
///
/// The text of the notice is fixed.
#[utoipa::path(post, path = "/v1/notify/test", request_body = NotifyTestRequest, responses(
    (status = 200, body = NotifyTestReport), Error<400>, Error<409>))]
pub(super) async fn test_notify(
    context: ServeContext,
    JsonBody(request): JsonBody<NotifyTestRequest, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<NotifyTestReport> {
    Ok(Json(context.notifier.test(request.channel).await?))
}
