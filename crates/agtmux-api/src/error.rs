//! What an error says to everyone: a code for programs, what happened, and the next command to run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub enum ErrorCode {
    /// A parameter or a body that cannot be read.
    #[serde(rename = "E_BAD_REQUEST")]
    BadRequest,
    /// No such path.
    #[serde(rename = "E_NOT_FOUND")]
    NotFound,
    /// No such target.
    #[serde(rename = "E_TARGET_NOT_FOUND")]
    TargetNotFound,
    /// The method does not fit the path.
    #[serde(rename = "E_METHOD")]
    Method,
    /// A fault of ours.
    #[serde(rename = "E_INTERNAL")]
    Internal,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
