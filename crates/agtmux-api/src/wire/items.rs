use std::collections::BTreeMap;

use agtmux_core::dialog::Dialog;
use agtmux_core::ids::{AgentType, PaneId, WindowId};
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneIdentity {
    pub target: String,
    /// The tmux server: its socket's name, or the whole path when the socket is not in the user's tmux directory.
    pub server: String,
    pub session_name: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@3")]
    pub window_id: WindowId,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
}

/// One pane in one place. A pane of a linked window is listed once for each session that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneItem {
    pub identity: PaneIdentity,
    pub runtime_id: Option<String>,
    pub agent_id: Option<String>,
    #[schemars(with = "Option<String>")]
    #[schema(value_type = Option<String>, example = "claude")]
    pub agent_type: Option<AgentType>,
    /// What whoever started the agent calls it (`agtmux run --name`): a reference by itself.
    pub name: Option<String>,
    /// Null where no agent lives.
    pub state: Option<State>,
    pub reason_code: Option<ReasonCode>,
    pub confidence: Option<Confidence>,
    pub state_version: Option<u64>,
    /// When the agent entered its state.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// When anything about this pane last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    pub needs_action: bool,
    /// What a waiting agent asks.
    pub dialog: Option<Dialog>,
    pub title: Option<String>,
    pub cwd: Option<String>,
    /// The program that has the terminal.
    pub command: Option<String>,
    /// How the pane's process ended, for a pane that is kept open after its death.
    pub dead: Option<DeadPane>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct DeadPane {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WindowIdentity {
    pub target: String,
    pub server: String,
    pub session_name: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@3")]
    pub window_id: WindowId,
}

/// How many agents are in which state. Every state is there, also with 0.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(transparent)]
#[schema(value_type = BTreeMap<String, u32>)]
pub struct StateTally(#[schemars(with = "BTreeMap<String, u32>")] pub BTreeMap<State, u32>);

impl StateTally {
    pub fn of(&self, state: State) -> u32 {
        self.0.get(&state).copied().unwrap_or(0)
    }
}

impl From<&agtmux_core::rollup::StateCounts> for StateTally {
    fn from(counts: &agtmux_core::rollup::StateCounts) -> Self {
        Self(State::ALL.iter().map(|state| (*state, counts.of(*state))).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WindowItem {
    pub identity: WindowIdentity,
    pub window_name: String,
    /// The strongest state of the window's agents; null where none lives.
    pub top_state: Option<State>,
    pub waiting: u32,
    pub running: u32,
    pub counts: StateTally,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SessionIdentity {
    /// Null where sessions of the same name on several targets are merged and there is more than one.
    pub target: Option<String>,
    pub server: Option<String>,
    pub session_name: String,
}

/// A session's share on one target.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCounts {
    pub counts: StateTally,
    pub windows: u32,
    pub panes: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SessionItem {
    pub identity: SessionIdentity,
    pub counts: StateTally,
    pub by_target: BTreeMap<String, TargetCounts>,
    pub windows: u32,
    pub panes: u32,
}
