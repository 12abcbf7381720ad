use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::request::ActionKind;
use crate::error::ErrorCode;

/// One action as it is remembered, refused ones too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionRecord {
    pub action_id: String,
    pub kind: ActionKind,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Null while it goes on, and when the daemon ended in the middle of it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    pub caller: AuditCaller,
    /// As it was written.
    pub r#ref: String,
    pub target: Option<String>,
    pub server: Option<String>,
    pub pane_id: Option<String>,
    pub runtime_id: Option<String>,
    pub snapshot_id: Option<String>,
    pub forced: bool,
    pub request_ref: Option<String>,
    pub status: ActionStatus,
    pub code: Option<ErrorCode>,
    /// Why it was refused, or what failed.
    pub message: Option<String>,
    /// What was done: the answer, the signal, the keys.
    pub what: Option<String>,
    /// What was typed, without its secrets; null where texts are not kept.
    pub text: Option<String>,
    pub bytes: Option<u64>,
    pub event_ids: Vec<String>,
    /// The answer that was given.
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<serde_json::Value>,
}

/// Who asked.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AuditCaller {
    pub uid: Option<u32>,
    pub pid: Option<u32>,
    /// The program's name.
    pub program: Option<String>,
    /// `unix` or `tcp`.
    pub via: String,
    pub client: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    /// It has begun. One that stays so was cut short: whether it was done is not known.
    Begun,
    Done,
    /// Nothing was done.
    Refused,
    /// Something was done, and it did not work.
    Failed,
}

impl ActionStatus {
    pub const ALL: [Self; 4] = [Self::Begun, Self::Done, Self::Refused, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What was done, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AuditLog {
    pub schema_version: u32,
    pub items: Vec<ActionRecord>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Only what began at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// How many at the most, the newest; 1000 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl AuditQuery {
    /// How many are shown when nobody says how many.
    pub const DEFAULT_LIMIT: u32 = 1000;
}
