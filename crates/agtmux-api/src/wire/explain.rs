use agtmux_core::evidence::{Assertion, Claim, Source};
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a runtime's state is what it is.
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
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    pub candidates: Vec<ExplainCandidate>,
    /// What would change it.
    pub would_change: Vec<String>,
}

/// One statement that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ExplainCandidate {
    pub source: Source,
    pub claim: Claim,
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Object)]
    pub says: Assertion,
    pub conclusive: bool,
    /// Whether it counts.
    pub fresh: bool,
    /// Why not.
    pub why_not: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Timestamp,
    pub age_ms: i64,
    pub rule: String,
    pub rule_version: u32,
    pub evidence: String,
}

/// The changes of state of one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StateHistory {
    pub schema_version: u32,
    pub runtime_id: String,
    pub items: Vec<StateHistoryItem>,
}

/// The last events about one runtime, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RuntimeEvents {
    pub schema_version: u32,
    pub runtime_id: String,
    pub items: Vec<RuntimeEvent>,
}

/// An event as it came, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RuntimeEvent {
    pub event_id: String,
    pub source: Source,
    pub event_type: String,
    #[schema(value_type = String, format = DateTime)]
    pub event_time: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub ingested_at: Timestamp,
    /// Null once it is too old to be kept.
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Object)]
    pub body: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StateHistoryItem {
    pub seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub from: Option<State>,
    pub state: State,
    pub reason_code: Option<ReasonCode>,
    pub confidence: Confidence,
    pub state_version: u64,
    /// How long it lasted; null while it lasts.
    pub duration_ms: Option<i64>,
}
