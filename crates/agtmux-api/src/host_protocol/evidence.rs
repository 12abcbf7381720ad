//! The evidence that a host sends.

use std::collections::BTreeMap;

use agtmux_core::asked_command::AskedCommand;
use agtmux_core::dialog::Dialog;
use agtmux_core::ids::{PaneId, SessionId, WindowId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Evidence that is new since the last batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceBatch {
    /// Whether the batch is complete: servers not in it do not exist.
    pub full: bool,
    pub evidence: Vec<HostEvidence>,
}

/// One piece of evidence. It does not name its target: the hub knows which host it connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostEvidence {
    /// The panes of a server: all if `complete`, else those that changed.
    Panes {
        server: HostServer,
        complete: bool,
        panes: Vec<HostPane>,
    },
    ServerGone {
        server: String,
    },
    /// The server exists, but agtmux cannot read its panes.
    ServerOutage {
        server: HostServer,
        outage: HostOutage,
    },
    /// The host's tmux cannot be read, or can be read again.
    HostOutage {
        outage: Option<HostOutage>,
    },
    Agent(Box<AgentEvidence>),
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// One run of a tmux server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostServer {
    pub name: String,
    pub pid: u32,
    /// Seconds since the Unix epoch, as tmux reports it.
    pub start_time: i64,
}

/// Why a server or the host cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostOutage {
    /// The error code that the list of panes also shows, in `target_errors`.
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPane {
    #[schemars(with = "String")]
    pub pane: PaneId,
    pub pane_index: u32,
    #[schemars(with = "String")]
    pub window: WindowId,
    pub window_name: String,
    /// Where the pane is shown. A linked window or a grouped session shows it in several sessions.
    pub placements: Vec<HostPlacement>,
    /// The pane's first process.
    pub pid: u32,
    pub tty: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<i32>,
    /// The command in the foreground.
    pub command: Option<String>,
    /// The working directory of the command in the foreground.
    pub cwd: Option<String>,
    pub agent: Option<HostAgent>,
}

/// One session and window index that shows a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostPlacement {
    #[schemars(with = "String")]
    pub session: SessionId,
    pub session_name: String,
    pub window_index: u32,
}

/// An agent among the processes of a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostAgent {
    pub agent_type: String,
    pub process: HostProcess,
    /// Stopped with Ctrl-Z.
    pub suspended: bool,
}

/// A process on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostProcess {
    pub pid: u32,
    /// The start time in the unit of the host's kernel.
    pub start: u64,
}

/// All evidence that determines the state of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEvidence {
    pub server: HostServer,
    #[schemars(with = "String")]
    pub pane: PaneId,
    pub process: HostProcess,
    /// The runtime's id on the host.
    pub runtime_id: String,
    pub name: Option<String>,
    pub agent_id: Option<String>,
    pub observations: Vec<HostObservation>,
    /// For each source, the time since which its evidence has matched no rule.
    #[serde(default)]
    pub unrecognized_since: BTreeMap<String, Timestamp>,
    /// For each source, when it last reported a running turn.
    #[serde(default)]
    pub last_running: BTreeMap<String, Timestamp>,
    /// For each source, when it last reported that no turn was running.
    #[serde(default)]
    pub last_resting: BTreeMap<String, Timestamp>,
    /// For each source, when it last showed no trace of a turn.
    #[serde(default)]
    pub last_cleared: BTreeMap<String, Timestamp>,
    /// For each source, when it last showed an open dialog.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last_asked: BTreeMap<String, Timestamp>,
    /// Whether a person has visited the agent's pane on the host since its last turn ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// The last text that the host's daemon submitted to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<HostSubmission>,
}

/// A text that the host's daemon submitted to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSubmission {
    pub at: Timestamp,
    /// How many texts the daemon has submitted to this agent.
    pub number: u64,
    /// True until the host sees a turn after the text, or finds that the text began no turn.
    pub pending: bool,
}

/// What the host concluded from the evidence of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostObservation {
    /// `hook`, `screen` and so on.
    pub source: String,
    /// `running`, `completed`, `idle`, `failed`, `approval_dialog`, `input_dialog` or `no_dialog`.
    pub assertion: String,
    pub conclusive: bool,
    pub as_of: Timestamp,
    pub settled: bool,
    /// `null`: valid until it is contradicted.
    pub valid_for_ms: Option<i64>,
    pub source_seq: Option<u64>,
    pub event_time: Timestamp,
    pub received_at: Timestamp,
    pub event_id: String,
    pub rule: String,
    pub rule_version: u32,
    /// The line of evidence.
    pub excerpt: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tentative: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred_from_absence: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_turn_visible: bool,
    /// The observation is ignored until this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Box<Dialog>>,
    /// The open requests for approval that the agent itself reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedCommand>,
    pub recorded_at: Timestamp,
    /// Whether the observation reports a completed turn that now counts as idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demoted: bool,
}
