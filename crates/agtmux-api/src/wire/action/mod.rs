//! Actions: requests, outcomes and audit records.

mod last;
mod new;
mod outcome;
mod record;
mod request;

pub use last::{AnswerEnding, AnswerSource, AnsweredTurn, LastAction, LastReport};
pub use new::{NewAction, NewPlace, NewReport, PromptDelivery, PromptStatus};
pub use outcome::{
    ActionOutcome, AttachPlan, AttachSession, KillReport, OutputReport, PaneHealth, RenameReport, RespondReport,
    ResumeReport, SeenReport, SendReport, SshDestination, VerifiedBy,
};
pub use record::{ActionRecord, ActionStatus, AuditCaller, AuditLog, AuditQuery};
pub use request::{
    ActionGuards, ActionKind, ActionSnapshot, AttachAction, DialogAnswer, InputProfile, KillAction, KillSignal,
    OutputAction, PaneIdentityGuard, RenameAction, RespondAction, ResumeAction, SeenAction, SendAction, SnapshotAction,
};

use agtmux_core::named_enum;
use schemars::JsonSchema;
use utoipa::ToSchema;

named_enum!(
    /// Whether agtmux has verified that the agent accepted the typed text.
    #[derive(JsonSchema, ToSchema)]
    Verification {
        /// The agent's events report the text, or the text has left the input box.
        Confirmed => "confirmed",
        /// The text was typed; whether the agent accepted it is unknown.
        Inconclusive => "inconclusive",
        /// The text is still in the input box.
        Failed => "failed",
    }
);
