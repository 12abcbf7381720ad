use std::collections::BTreeMap;

use agtmux_core::dialog::Dialog;
use agtmux_core::ids::{AgentType, PaneId, WindowId};
use agtmux_core::runtime::RuntimeKind;
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Identifies a pane in one session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneIdentity {
    pub target: String,
    /// The tmux server: the file name of its socket, or the full path if the socket is outside the user's tmux
    /// directory.
    pub server: String,
    pub session_name: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@3")]
    pub window_id: WindowId,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
}

impl PaneIdentity {
    pub fn window(&self) -> WindowIdentity {
        WindowIdentity {
            target: self.target.clone(),
            server: self.server.clone(),
            session_name: self.session_name.clone(),
            window_id: self.window_id,
        }
    }

    pub fn session(&self) -> SessionIdentity {
        SessionIdentity {
            target: Some(self.target.clone()),
            server: Some(self.server.clone()),
            session_name: self.session_name.clone(),
        }
    }
}

/// A pane in one session. A pane of a linked window is listed once per session that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneItem {
    pub identity: PaneIdentity,
    /// The index of the window in this session, as tmux shows it in the status line.
    pub window_index: u32,
    pub window_name: String,
    /// The index of the pane in its window.
    pub pane_index: u32,
    /// What runs in the pane. Null for other panes. An agent that runs in a shared terminal counts as an agent.
    #[serde(default)]
    pub runtime_kind: Option<RuntimeKind>,
    /// The shared terminal of this pane.
    #[serde(default)]
    pub mirror_id: Option<String>,
    /// The id of the agent's runtime; null for a pane without an agent.
    pub runtime_id: Option<String>,
    pub agent_id: Option<String>,
    #[schemars(with = "Option<String>")]
    #[schema(value_type = Option<String>, example = "claude")]
    pub agent_type: Option<AgentType>,
    /// The name that the agent was given at its start (`agtmux run --name`). References to the agent can use this name.
    pub name: Option<String>,
    /// The agent's state; null for a pane without an agent.
    pub state: Option<State>,
    pub reason_code: Option<ReasonCode>,
    pub confidence: Option<Confidence>,
    pub state_version: Option<u64>,
    /// When the agent entered this state.
    pub since: Option<Timestamp>,
    /// When this pane last changed.
    pub updated_at: Timestamp,
    /// Whether the agent needs a person to act.
    pub needs_action: bool,
    /// Whether the agent has completed a turn, and no attached tmux client has visited the pane since. The state may be
    /// `idle` by now.
    pub unseen: bool,
    /// When agtmux last submitted a text to the agent. Null if agtmux has submitted none since the daemon started.
    #[serde(default)]
    pub submitted_at: Option<Timestamp>,
    /// True until agtmux sees a turn after the text that it last submitted, or finds that the text began no turn. While
    /// this is true, `state` may be older than the text.
    #[serde(default)]
    pub turn_pending: bool,
    /// The open dialog of a waiting agent.
    pub dialog: Option<Dialog>,
    pub title: Option<String>,
    pub cwd: Option<String>,
    /// The program in the foreground of the pane.
    pub command: Option<String>,
    /// How the process of a dead pane ended; null if the pane is not dead. tmux keeps a dead pane open if the option
    /// `remain-on-exit` is set.
    pub dead: Option<DeadPane>,
}

impl PaneItem {
    /// Creates a pane without an agent and leaves its other fields empty. Tests set the fields that they need.
    pub fn new(identity: PaneIdentity, updated_at: Timestamp) -> Self {
        Self {
            identity,
            window_index: 0,
            window_name: String::new(),
            pane_index: 0,
            runtime_kind: None,
            mirror_id: None,
            runtime_id: None,
            agent_id: None,
            agent_type: None,
            name: None,
            state: None,
            reason_code: None,
            confidence: None,
            state_version: None,
            since: None,
            updated_at,
            needs_action: false,
            unseen: false,
            submitted_at: None,
            turn_pending: false,
            dialog: None,
            title: None,
            cwd: None,
            command: None,
            dead: None,
        }
    }

    /// The order in which a person should look at panes: first agents that wait for an answer, then failed agents,
    /// agents with an unseen result, running agents, idle or completed agents, unknown agents, and last panes without
    /// an agent. If two agents are equally urgent, the one that has been in its state for longer comes first.
    pub fn attention_order(&self) -> impl Ord + '_ {
        (self.attention_rank(), self.since, &self.identity)
    }

    /// The rank in the attention order. It differs from the order of `State`, which decides the state shown for a
    /// window. Here, waiting agents come before failed ones, because an answer lets a waiting agent continue, while a
    /// failed agent has already stopped.
    fn attention_rank(&self) -> u8 {
        match self.state {
            Some(State::WaitingApproval | State::WaitingInput) => 0,
            Some(State::Error) => 1,
            Some(_) if self.unseen => 2,
            Some(State::Running) => 3,
            Some(State::Completed | State::Idle) => 4,
            Some(State::Unknown) => 5,
            None => u8::MAX,
        }
    }
}

/// How the process of a dead pane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct DeadPane {
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
}

/// Identifies a window in one session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WindowIdentity {
    pub target: String,
    pub server: String,
    pub session_name: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@3")]
    pub window_id: WindowId,
}

/// The number of agents per state. All states are listed, including those with 0.
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

/// A window and the states of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WindowItem {
    pub identity: WindowIdentity,
    /// The index of the window in this session, as tmux shows it in the status line.
    pub window_index: u32,
    pub window_name: String,
    /// The most urgent state of the window's agents; null if the window has no agents.
    pub top_state: Option<State>,
    /// The number of agents waiting for input or approval.
    pub waiting: u32,
    /// The number of running agents.
    pub running: u32,
    pub counts: StateTally,
}

/// Identifies a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SessionIdentity {
    /// The target; null if sessions of this name on several targets are merged.
    pub target: Option<String>,
    pub server: Option<String>,
    pub session_name: String,
}

/// The part of a session on one target.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCounts {
    pub counts: StateTally,
    pub windows: u32,
    pub panes: u32,
}

/// A session and the states of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SessionItem {
    pub identity: SessionIdentity,
    pub counts: StateTally,
    pub by_target: BTreeMap<String, TargetCounts>,
    pub windows: u32,
    pub panes: u32,
}
