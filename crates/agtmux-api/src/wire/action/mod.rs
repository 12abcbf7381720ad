//! What can be asked of an agent, and what came of it.

mod outcome;
mod record;
mod request;

pub use outcome::{
    ActionOutcome, Answered, AttachPlan, KillReport, Output, PaneHealth, PlanSession, ResumeReport, SendReport, SshWay,
    VerifiedBy,
};
pub use record::{ActionRecord, ActionStatus, Audit, AuditQuery, Caller};
pub use request::{
    ActionKind, Answer, AttachAction, Guards, KillAction, KillSignal, OutputAction, Profile, RespondAction,
    ResumeAction, SamePane, SendAction, Snapshot, SnapshotAction,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether it is known that the agent took what was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// The agent said so, or its input box was seen to have let go of it.
    Confirmed,
    /// It was typed, and nothing tells whether it was taken.
    Inconclusive,
    /// It was seen to be still there.
    Failed,
}

impl Verified {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Inconclusive => "inconclusive",
            Self::Failed => "failed",
        }
    }
}
