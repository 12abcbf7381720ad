//! What can be asked of an agent, and what came of it.

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

/// Whether it is known that the agent took what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// The agent said so, or its input box was seen to have let go of it.
    Confirmed,
    /// It was typed, and nothing tells whether it was taken.
    Inconclusive,
    /// It was seen to be still there.
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
