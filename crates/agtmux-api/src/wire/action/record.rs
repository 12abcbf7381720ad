use agtmux_core::named_enum;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::request::ActionKind;
use crate::error::ErrorCode;

/// One action in the audit log. Refused actions are recorded too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionRecord {
    pub action_id: String,
    pub kind: ActionKind,
    pub at: Timestamp,
    /// When the action finished. Null while it runs, and if the daemon stopped before it finished.
    pub finished_at: Option<Timestamp>,
    pub caller: AuditCaller,
    /// The reference to the pane or agent, as the caller wrote it.
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
    /// Why the action was refused or failed.
    pub message: Option<String>,
    /// A summary of the action, such as the answer to a dialog, the signal or the keys.
    pub what: Option<String>,
    /// The typed text with secrets redacted; null if the configuration disables storing text.
    pub text: Option<String>,
    pub bytes: Option<u64>,
    pub event_ids: Vec<String>,
    /// The response to the caller.
    #[schemars(with = "serde_json::Value")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<serde_json::Value>,
}

/// The process that requested an action.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AuditCaller {
    pub uid: Option<u32>,
    pub pid: Option<u32>,
    /// The name of the program that the process runs.
    pub program: Option<String>,
    /// The connection to the daemon: `unix` or `tcp`.
    pub via: String,
    pub client: Option<String>,
}

named_enum!(
    /// The status of an action.
    #[derive(JsonSchema, ToSchema)]
    ActionStatus {
        /// The action has begun. If the status stays like this, the daemon stopped before the action finished and the
        /// outcome is unknown.
        Begun => "begun",
        Done => "done",
        /// The action was refused. Nothing was done.
        Refused => "refused",
        /// The action began and then failed.
        Failed => "failed",
    }
);

/// The audit log, newest action last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AuditLog {
    pub schema_version: u32,
    pub items: Vec<ActionRecord>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Only actions on this agent. The agent may have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
    /// Only actions that began at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The maximum number of actions, 1000 by default. If there are more, the newest ones are returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl AuditQuery {
    /// The default of `limit`.
    pub const DEFAULT_LIMIT: u32 = 1000;
}
