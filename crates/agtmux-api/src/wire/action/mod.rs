//! Actions: requests, outcomes and audit records.

mod outcome;
mod record;
mod request;

pub use outcome::{
    ActionOutcome, AttachPlan, AttachSession, KillReport, OutputReport, PaneHealth, RespondReport, ResumeReport,
    SendReport, SshDestination, VerifiedBy,
};
pub use record::{ActionRecord, ActionStatus, AuditCaller, AuditLog, AuditQuery};
pub use request::{
    ActionGuards, ActionKind, ActionSnapshot, AttachAction, DialogAnswer, InputProfile, KillAction, KillSignal,
    OutputAction, PaneIdentityGuard, RespondAction, ResumeAction, SendAction, SnapshotAction,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the agent accepted the typed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// The agent reported it, or its input box was emptied.
    Confirmed,
    /// The text was typed; whether the agent accepted it is unknown.
    Inconclusive,
    /// The text is still in the input box.
    Failed,
}

impl Verification {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Inconclusive => "inconclusive",
            Self::Failed => "failed",
        }
    }
}
