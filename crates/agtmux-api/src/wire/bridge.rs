use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::action::Verification;
use crate::error::ErrorCode;

/// How an agent is answered, in the words of the tmux-bridge document.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BridgeMode {
    /// Words of one's own.
    #[default]
    Text,
    /// The option with this index, counted from 0.
    Select,
    /// As `text`: the dialog's way to words of one's own is taken in either case.
    Other,
    /// Several options, or several questions.
    MultiSelect,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeRespondRequest {
    pub mode: BridgeMode,
    pub text: Option<String>,
    pub option_index: Option<u32>,
    pub answers: Option<BridgeAnswers>,
    /// Only while this dialog is open, by the fingerprint that `/v1/panes` shows.
    pub if_dialog: Option<String>,
    /// The same request under the same name is done once.
    pub request_ref: Option<String>,
}

/// What is chosen. Indices count from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum BridgeAnswers {
    /// These options of the one question that is asked.
    Indices(Vec<u32>),
    /// One for each question, in the order in which they are asked.
    Questions(Vec<BridgeChoice>),
}

/// The answer to one of several questions: just one of these.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeChoice {
    pub option_index: Option<u32>,
    /// Where it takes several.
    pub option_indices: Option<Vec<u32>>,
    pub text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeRespondReply {
    /// `ok`
    pub status: String,
    pub agent_id: String,
    /// What was observed: IDLE, PROCESSING, AWAITING_INPUT or COMPLETE; null where nobody knows.
    pub new_state: Option<String>,
    pub latency_ms: u64,
    pub mode: BridgeMode,
    pub verified: Verification,
    pub turn_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeError {
    /// `error`
    pub status: String,
    pub error_type: String,
    /// The same in our words.
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeAvailability {
    pub agent_id: String,
    pub commander_available: bool,
    pub state: Option<String>,
}

/// What a hook brings. Fields beyond these are kept with it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct BridgeHookEvent {
    /// The agent's own name for its session.
    pub session_id: String,
    pub working_directory: Option<String>,
    /// `$TMUX_PANE`
    pub tmux_pane: Option<String>,
    /// `$TMUX`: which server the pane is of.
    pub tmux: Option<String>,
    pub iterm_pane_id: Option<String>,
    /// `claude` when left out.
    pub agent_type: Option<String>,
    /// The agent's process.
    pub pid: Option<u32>,
    /// The same id twice is the same event.
    pub event_id: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub timestamp: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct BridgeHookReply {
    /// `ok`
    pub status: String,
    pub agent_id: String,
    /// Whether it is known which pane it is about.
    pub bound: bool,
    pub event_id: Option<String>,
}
