use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::evidence::{Source, Statement};
use crate::ids::{AgentType, ServerKey};
use crate::mind::Mind;
use crate::runtime::{RuntimeId, StateRecord};

/// Everything that can change a state. This is what the log keeps and a replay reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// An agent was found in a pane.
    Began { runtime: RuntimeId, server: ServerKey, agent_type: AgentType, suspended: bool },
    /// Its process is gone.
    Ended { runtime: RuntimeId },
    /// It was stopped with Ctrl-Z, or goes on.
    Suspended { runtime: RuntimeId, suspended: bool },
    /// Its server answers, or no longer does.
    Reachable { server: ServerKey, reachable: bool },
    /// A source made a statement about it.
    Heard { runtime: RuntimeId, statement: Box<Statement> },
    /// A source was looked at again and shows nothing that is understood.
    Silent { runtime: RuntimeId, source: Source, at: Timestamp },
    /// It told which of the agent's own sessions it is.
    Named { runtime: RuntimeId, agent_id: String },
    /// All that is known of it elsewhere: it takes the place of what was known here.
    Recalled { runtime: RuntimeId, mind: Box<Mind> },
    /// Nobody listens to it any more: what it said is forgotten.
    Muted { runtime: RuntimeId },
    /// A completed turn was shown for long enough, unless something has happened since that version.
    DemotionDue { runtime: RuntimeId, state_version: u64 },
    /// Time has passed: something may have gone stale.
    Reconsider { runtime: RuntimeId },
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub runtime: RuntimeId,
    /// None when the runtime began.
    pub from: Option<StateRecord>,
    pub to: StateRecord,
}
