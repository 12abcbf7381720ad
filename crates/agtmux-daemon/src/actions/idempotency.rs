//! What is asked for once more under the same name is not done once more.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, ActionStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::perform::ActionRequest;
use super::{Actions, audit};

/// A name for a request is not a place for a text.
const MAX_REQUEST_REF_CHARS: usize = 200;

impl Actions {
    /// What was done under this name before, if anything was.
    pub(super) async fn earlier_outcome<T: DeserializeOwned>(
        &self,
        request: &ActionRequest<'_>,
    ) -> Result<Option<Result<ActionOutcome<T>, ApiError>>, ApiError> {
        let Some(name) = &request.guards.request_ref else { return Ok(None) };
        if !is_valid_request_ref(name) {
            let message = format!("a request_ref has 1 to {MAX_REQUEST_REF_CHARS} printable characters");
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("use a UUID, or a short name"));
        }
        let Some(row) = self.stored_request(name).await? else { return Ok(None) };
        if row.content_hash != audit::hash(&request.content) {
            let error = ApiError::new(ErrorCode::IdempotencyConflict, format!("'{name}' names another request"));
            return Err(error.with_hint("give each request a name of its own"));
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
                let message = format!("'{name}' was begun before, and whether it was done is not known");
                let error = ApiError::new(ErrorCode::Precondition, message);
                Err(error.with_hint("look at the pane with agtmux view-output; then use another request_ref"))
            }
        }
    }
}

/// Tells one request from another. What it is guarded by, and who asks, may differ from one try to the next.
pub(super) fn request_content(kind: ActionKind, action: &impl Serialize) -> String {
    let mut value = serde_json::to_value(action).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for name in ["snapshot_id", "nonce", "client", "not_after"] {
            fields.remove(name);
        }
    }
    format!("{} {value}", kind.as_str())
}

pub(super) fn is_valid_request_ref(name: &str) -> bool {
    (1..=MAX_REQUEST_REF_CHARS).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}
