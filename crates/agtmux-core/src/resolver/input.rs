use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::evidence::{Observation, Source};
use crate::ids::{AgentType, ServerKey};
use crate::ledger::Ledger;
use crate::runtime::{RuntimeId, StateRecord};

/// Everything that can change a state. This is what the log keeps and a replay reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum ResolverInput {
    /// An agent was found in a pane.
    #[serde(alias = "began")]
    Started { runtime: RuntimeId, server: ServerKey, agent_type: AgentType, suspended: bool },
    /// Its process is gone.
    Ended { runtime: RuntimeId },
    /// It was stopped with Ctrl-Z, or goes on.
    Suspended { runtime: RuntimeId, suspended: bool },
    /// Its server answers, or no longer does.
    Reachable { server: ServerKey, reachable: bool },
    /// A source made a statement about it.
    #[serde(alias = "heard")]
    Observed { runtime: RuntimeId, observation: Box<Observation> },
    /// A source was looked at again and shows nothing that is understood.
    #[serde(alias = "silent")]
    Unrecognized { runtime: RuntimeId, source: Source, at: Timestamp },
    /// It told which of the agent's own sessions it is.
    #[serde(alias = "named")]
    AgentIdentified { runtime: RuntimeId, agent_id: String },
    /// All that is known of it elsewhere: it takes the place of what was known here.
    #[serde(alias = "recalled")]
    LedgerReplaced { runtime: RuntimeId, ledger: Box<Ledger> },
    /// Nobody listens to it any more: what it said is forgotten.
    #[serde(alias = "muted")]
    LedgerCleared { runtime: RuntimeId },
    /// A completed turn was shown for long enough, unless something has happened since that version.
    DemotionDue { runtime: RuntimeId, state_version: u64 },
    /// Time has passed: something may have gone stale.
    #[serde(alias = "reconsider")]
    Reevaluate { runtime: RuntimeId },
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTransition {
    pub runtime: RuntimeId,
    /// None when the runtime began.
    pub from: Option<StateRecord>,
    pub to: StateRecord,
}
