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
    /// Whether the batch describes all tmux servers of the host. If true, a server that the batch does not contain no
    /// longer exists.
    pub full: bool,
    pub evidence: Vec<HostEvidence>,
}

/// One piece of evidence. It does not name its target: the hub knows which host it connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostEvidence {
    /// Panes of a server. If `complete` is true, these are all its panes. Otherwise they are the panes that changed.
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
    /// Whether agtmux can read the host's tmux. If not, `outage` says why. Otherwise `outage` is null.
    HostOutage {
        outage: Option<HostOutage>,
    },
    Agent(Box<AgentEvidence>),
    /// A kind of evidence that this version of agtmux does not know.
    #[serde(other)]
    Unknown,
}

/// One run of a tmux server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostServer {
    pub name: String,
    pub pid: u32,
    /// When the server started, in seconds since the Unix epoch, as tmux reports it.
    pub start_time: i64,
}

/// Why agtmux cannot read a server or the whole host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostOutage {
    /// The error code, the same as in `target_errors` of the list of panes.
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
    /// The sessions that show the pane, with the window's index in each. A pane is in several sessions if its window is
    /// linked or its session is grouped.
    pub placements: Vec<HostPlacement>,
    /// The process id of the pane's first process.
    pub pid: u32,
    pub tty: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead: bool,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<i32>,
    /// The program in the foreground of the pane.
    pub command: Option<String>,
    /// The working directory of the program in the foreground.
    pub cwd: Option<String>,
    pub agent: Option<HostAgent>,
}

/// A session that shows a pane, and the index of the pane's window in that session.
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
    /// Whether the agent is stopped, as after Ctrl-Z.
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
    /// For each source, since when no rule has matched what the source reports.
    #[serde(default)]
    pub unrecognized_since: BTreeMap<String, Timestamp>,
    /// For each source, when it last reported a running turn.
    #[serde(default)]
    pub last_running: BTreeMap<String, Timestamp>,
    /// For each source, when it last reported that no turn was running.
    #[serde(default)]
    pub last_resting: BTreeMap<String, Timestamp>,
    /// For each source, when it last showed no sign that any turn had run.
    #[serde(default)]
    pub last_cleared: BTreeMap<String, Timestamp>,
    /// For each source, when it last showed an open dialog.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last_asked: BTreeMap<String, Timestamp>,
    /// Whether a person on the host has visited the agent's pane since the agent's last turn ended.
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
    /// How many texts the host's daemon has submitted to this agent so far.
    pub number: u64,
    /// True until the host sees a turn after the text, or finds that the text began no turn.
    pub pending: bool,
}

/// What the host concluded from the evidence of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostObservation {
    /// The source, such as `hook` or `screen`.
    pub source: String,
    /// What the observation asserts: `running`, `completed`, `idle`, `failed`, `approval_dialog`, `input_dialog` or
    /// `no_dialog`.
    pub assertion: String,
    pub conclusive: bool,
    pub as_of: Timestamp,
    pub settled: bool,
    /// How long the observation is valid, in milliseconds. Null if it is valid until another observation contradicts
    /// it.
    pub valid_for_ms: Option<i64>,
    pub source_seq: Option<u64>,
    pub event_time: Timestamp,
    pub received_at: Timestamp,
    pub event_id: String,
    pub rule: String,
    pub rule_version: u32,
    /// The line of text, such as a screen row or the type of an event, on which the observation is based.
    pub excerpt: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tentative: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred_from_absence: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_turn_visible: bool,
    /// The observation does not count before this time.
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
