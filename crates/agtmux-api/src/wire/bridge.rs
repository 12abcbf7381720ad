use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::action::Verification;
use crate::error::ErrorCode;

/// The answer mode of `/api/respond`, with the names of the tmux-bridge API.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BridgeMode {
    /// Free text.
    #[default]
    Text,
    /// One option, which `option_index` names, counted from 0.
    Select,
    /// Same as `text`: both use the dialog's free-text option.
    Other,
    /// Several options, or answers to several questions.
    MultiSelect,
}

/// A request that answers an agent's open dialog.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeRespondRequest {
    pub mode: BridgeMode,
    pub text: Option<String>,
    pub option_index: Option<u32>,
    pub answers: Option<BridgeAnswers>,
    /// Answer only while the dialog with this fingerprint is open. `/v1/panes` shows the fingerprint of each dialog.
    pub if_dialog: Option<String>,
    /// Approve even if `subject_truncated` is set. Set this only after a person has read the whole subject elsewhere,
    /// for example in the pane.
    pub accept_truncated: bool,
    /// Idempotency key: repeated requests with the same key run once.
    pub request_ref: Option<String>,
}

/// The chosen options. Indices count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum BridgeAnswers {
    /// The chosen options of a single question.
    Indices(Vec<u32>),
    /// One answer per question, in order.
    Questions(Vec<BridgeChoice>),
}

/// The answer to one of several questions. Exactly one field is set.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeChoice {
    pub option_index: Option<u32>,
    /// The chosen options of a question that allows several.
    pub option_indices: Option<Vec<u32>>,
    pub text: Option<String>,
}

/// The reply to a request that has answered a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeRespondReply {
    /// Always `ok`.
    pub status: String,
    pub agent_id: String,
    /// The state after the answer: IDLE, PROCESSING, AWAITING_INPUT or COMPLETE; null if unknown.
    pub new_state: Option<String>,
    pub latency_ms: u64,
    pub mode: BridgeMode,
    pub verified: Verification,
    pub turn_id: String,
}

/// The body of a bridge error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeError {
    /// Always `error`.
    pub status: String,
    pub error_type: String,
    /// The error code of the agtmux API.
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<String>,
}

/// Whether agtmux can send text to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeAvailability {
    pub agent_id: String,
    pub commander_available: bool,
    pub state: Option<String>,
}

/// A hook event. The daemon also stores fields that are not listed here.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct BridgeHookEvent {
    /// The agent's own session id.
    pub session_id: String,
    pub working_directory: Option<String>,
    /// The value of `$TMUX_PANE`.
    pub tmux_pane: Option<String>,
    /// The value of `$TMUX`, which identifies the pane's tmux server.
    pub tmux: Option<String>,
    pub iterm_pane_id: Option<String>,
    /// The agent type; `claude` by default.
    pub agent_type: Option<String>,
    /// The agent's process id.
    pub pid: Option<u32>,
    /// Idempotency key: events with the same id count once.
    pub event_id: Option<String>,
    pub timestamp: Option<Timestamp>,
}

/// The reply to a hook event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeHookReply {
    /// Always `ok`.
    pub status: String,
    pub agent_id: String,
    /// Whether agtmux found the pane that the event belongs to.
    pub bound: bool,
    pub event_id: Option<String>,
}
