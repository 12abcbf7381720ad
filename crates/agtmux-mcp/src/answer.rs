//! The result of a tool: the same facts as text and as structured content. Some clients show the model only the one,
//! some only the other.

use agtmux_api::error::ErrorCode;
use agtmux_client::ClientError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

/// The result of a successful call.
#[derive(Debug)]
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    pub(crate) structured: serde_json::Value,
}

/// Why a call failed. The model reads this.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ToolError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) code: Option<ErrorCode>,
}

pub(crate) type ToolResult = Result<ToolAnswer, ToolError>;

impl ToolAnswer {
    pub(crate) fn new(text: String, facts: &impl Serialize) -> Result<Self, ToolError> {
        let structured = serde_json::to_value(facts).map_err(|error| ToolError::new(error.to_string()))?;
        Ok(Self { text, structured })
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structured);
        result
    }
}

impl ToolError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The error as text only: structured content would have to match the schema of a successful result.
    pub(crate) fn into_result(self) -> CallToolResult {
        let code = self.code.and_then(|code| serde_json::to_value(code).ok());
        let code = code.as_ref().and_then(|code| code.as_str()).map(|code| format!(" ({code})")).unwrap_or_default();
        let hint = self.hint.map(|hint| format!("\nWhat to do: {hint}")).unwrap_or_default();
        CallToolResult::error(vec![ContentBlock::text(format!("Failed{code}: {}{hint}", self.message))])
    }
}

impl From<ClientError> for ToolError {
    fn from(error: ClientError) -> Self {
        match error {
            // Messages and hints of the daemon quote names that other programs chose.
            ClientError::Refused(error) => Self {
                message: crate::untrusted::bounded_field(&error.message, 1000),
                hint: error.hint.map(|hint| crate::untrusted::bounded_field(&hint, 1000)),
                code: Some(error.code),
            },
            ClientError::Timeout(_) => Self::new(error.to_string())
                .with_hint("the request may still be carried out; look at the current state before you try again"),
            error => Self::new(error.to_string()).with_hint("ask the user to run `agtmux daemon status`"),
        }
    }
}
