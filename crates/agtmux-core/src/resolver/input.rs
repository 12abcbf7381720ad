use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Observation, Source};
use crate::ids::{AgentType, ServerKey};
use crate::ledger::Ledger;
use crate::runtime::{RuntimeId, StateRecord};

/// Everything that can change a state. The engine log stores these inputs and a replay reads them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum ResolverInput {
    /// An agent was detected in a pane.
    #[serde(alias = "began")]
    Started { runtime: RuntimeId, server: ServerKey, agent_type: AgentType, suspended: bool },
    /// The runtime's process ended.
    Ended { runtime: RuntimeId },
    /// The process was stopped (Ctrl-Z) or continued.
    Suspended { runtime: RuntimeId, suspended: bool },
    /// A tmux server became reachable or unreachable.
    Reachable { server: ServerKey, reachable: bool },
    /// A source reported an observation.
    #[serde(alias = "heard")]
    Observed {
        runtime: RuntimeId,
        #[serde(alias = "statement")]
        observation: Box<Observation>,
    },
    /// The latest evidence of a source matches no rule.
    #[serde(alias = "silent")]
    Unrecognized { runtime: RuntimeId, source: Source, at: Timestamp },
    /// The agent's own session id became known.
    #[serde(alias = "named")]
    AgentIdentified { runtime: RuntimeId, agent_id: String },
    /// The remote host of the runtime sent its own ledger of the runtime. That ledger replaces the local one.
    #[serde(alias = "recalled")]
    LedgerReplaced {
        runtime: RuntimeId,
        #[serde(alias = "mind")]
        ledger: Box<Ledger>,
    },
    /// The ledger is cleared, because the user has switched the adapter off or because the rules of the adapter have
    /// changed.
    #[serde(alias = "muted")]
    LedgerCleared { runtime: RuntimeId },
    /// A completed turn has been shown long enough and becomes idle. The resolver ignores this input if the state
    /// version has changed since.
    DemotionDue { runtime: RuntimeId, state_version: u64 },
    /// From now on, dialog reports that were held back count. This input precedes the report that the dialog has
    /// closed, so that the history contains the dialog.
    HoldEnded { runtime: RuntimeId },
    /// Time has passed and an observation may have expired.
    #[serde(alias = "reconsider")]
    Reevaluate { runtime: RuntimeId },
    /// Since the last turn ended, the user has pressed a key in the agent's pane or run `agtmux seen`.
    Seen { runtime: RuntimeId },
    /// The clock of this machine was set. All times recorded so far are moved by `by`, so that every age stays as it
    /// was and no time lies in the future.
    ClockStepped { by: SignedDuration },
    /// This machine slept, or the daemon was stopped. No source could report during this time, so this time
    /// does not count for TTLs and demotions.
    TimeSkipped { by: SignedDuration },
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTransition {
    pub runtime: RuntimeId,
    /// `None` for a new runtime.
    pub from: Option<StateRecord>,
    pub to: StateRecord,
}
