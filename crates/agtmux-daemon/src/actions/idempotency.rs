//! Idempotency: repeated requests with the same `request_ref` run once.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionOutcome, ActionStatus};
use serde::de::DeserializeOwned;

use super::perform::ActionRequest;
use super::{Actions, audit};

/// The maximum number of characters of a `request_ref`.
const MAX_REQUEST_REF_CHARS: usize = 200;

impl Actions {
    /// The outcome of an earlier request with the same `request_ref`, if there is one.
    pub(super) async fn earlier_outcome<T: DeserializeOwned>(
        &self,
        request: &ActionRequest<'_>,
    ) -> ApiResult<Option<ApiResult<ActionOutcome<T>>>> {
        let Some(name) = &request.guards.request_ref else { return Ok(None) };
        if !is_valid_request_ref(name) {
            let message = format!("a request_ref must have 1 to {MAX_REQUEST_REF_CHARS} printable characters");
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("use a UUID or a short name"));
        }
        let Some(row) = self.stored_request(name).await? else { return Ok(None) };
        if row.content_hash != audit::hash(&request.content) {
            let error = ApiError::new(
                ErrorCode::IdempotencyConflict,
                format!("request_ref '{name}' was used for a different request"),
            );
            return Err(error.with_hint("use the same request_ref only to repeat an identical request"));
        }
        let record = row.record;
        let result = record.result.clone().and_then(|value| serde_json::from_value::<ActionOutcome<T>>(value).ok());
        match (record.status, result) {
            (ActionStatus::Done, Some(outcome)) => Ok(Some(Ok(ActionOutcome { repeated: true, ..outcome }))),
            (ActionStatus::Failed, _) => {
                let code = record.code.unwrap_or(ErrorCode::Unknown);
                let error = ApiError::new(code, record.message.unwrap_or_default());
                Ok(Some(Err(error.with_hint(format!("agtmux audit   (action {})", record.action_id)))))
            }
            _ => {
                let message = format!("request '{name}' was started before and its outcome is unknown");
                let error = ApiError::new(ErrorCode::Precondition, message);
                Err(error.with_hint("check the pane with agtmux view-output, then use a new request_ref"))
            }
        }
    }
}

/// Serializes a request, so that it can be compared with an earlier request. Leaves out the fields that may differ when
/// a client retries the same request.
pub(super) fn request_content(request: &HubRequest) -> String {
    let mut body = request.body().unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        for name in ["snapshot_id", "nonce", "client", "not_after"] {
            fields.remove(name);
        }
    }
    format!("{} {body}", request.kind().as_str())
}

pub(super) fn is_valid_request_ref(name: &str) -> bool {
    (1..=MAX_REQUEST_REF_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}
