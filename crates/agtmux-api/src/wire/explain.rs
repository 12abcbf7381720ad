use agtmux_core::evidence::{Assertion, Claim, Source};
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ingest::EventSender;

/// Explains the state of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct Explanation {
    pub schema_version: u32,
    pub runtime_id: String,
    pub agent_type: String,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    pub state: State,
    pub reason_code: Option<ReasonCode>,
    pub confidence: Confidence,
    pub state_version: u64,
    pub since: Timestamp,
    /// All recorded observations.
    pub candidates: Vec<ExplainCandidate>,
    /// For each source, its newest event and the process that sent it.
    #[serde(default)]
    pub last_events: Vec<ExplainEvent>,
    /// Which events or changes would change the state, in words.
    pub would_change: Vec<String>,
}

/// One recorded observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ExplainCandidate {
    pub source: Source,
    pub claim: Claim,
    /// The asserted state: `running`, `completed`, `idle`, `failed`, `asks` with the dialog kind, or `asks_nothing`.
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Object)]
    pub says: Assertion,
    /// Whether this observation is enough to decide the state.
    pub conclusive: bool,
    /// Whether the observation currently counts.
    pub fresh: bool,
    /// Why the observation does not count; null if the observation counts.
    pub why_not: Option<String>,
    pub as_of: Timestamp,
    pub age_ms: i64,
    /// The adapter rule that produced the observation.
    pub rule: String,
    pub rule_version: u32,
    /// The line of text that the rule matched.
    pub evidence: String,
}

/// The newest event of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ExplainEvent {
    pub source: Source,
    pub event_type: String,
    pub ingested_at: Timestamp,
    /// The process that sent the event; null if the event was saved while no daemon ran.
    pub sender: Option<EventSender>,
}

/// The state history of one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StateHistory {
    pub schema_version: u32,
    pub runtime_id: String,
    pub items: Vec<StateHistoryItem>,
}

/// The latest events of one runtime, newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RuntimeEvents {
    pub schema_version: u32,
    pub runtime_id: String,
    pub items: Vec<RuntimeEvent>,
}

/// An event that the daemon received, with secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RuntimeEvent {
    pub event_id: String,
    pub source: Source,
    pub event_type: String,
    pub event_time: Timestamp,
    pub ingested_at: Timestamp,
    /// The process that sent the event; null if the event was saved while no daemon ran.
    #[serde(default)]
    pub sender: Option<EventSender>,
    /// The payload; null after the retention time for payloads has passed.
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Object)]
    pub body: serde_json::Value,
}

/// One state change of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StateHistoryItem {
    pub seq: u64,
    pub at: Timestamp,
    pub from: Option<State>,
    pub state: State,
    pub reason_code: Option<ReasonCode>,
    pub confidence: Confidence,
    pub state_version: u64,
    /// How long the state lasted; null for the current state.
    pub duration_ms: Option<i64>,
}
