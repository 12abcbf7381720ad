use agtmux_core::dialog::Dialog;
use agtmux_core::ids::TargetName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Verification;
use super::request::KillSignal;

/// What an action came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionOutcome<T> {
    pub schema_version: u32,
    pub action_id: String,
    pub snapshot_id: String,
    /// Whom it was done to.
    pub runtime_id: Option<String>,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    pub latency_ms: u64,
    /// It had been done before under the same `request_ref`: this is the answer that was given then.
    #[serde(default)]
    pub repeated: bool,
    #[serde(flatten)]
    pub report: T,
}

impl<T> ActionOutcome<T> {
    /// The tmux server that it was done on, with its host where that is another one.
    pub fn server_label(&self) -> String {
        server_label(&self.target, &self.server)
    }
}

pub(super) fn server_label(target: &str, server: &str) -> String {
    if target == TargetName::LOCAL { server.to_owned() } else { format!("{target}@{server}") }
}

/// How a text was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SendReport {
    pub verified: Verification,
    pub by: VerifiedBy,
    /// How often Enter was pressed.
    pub attempts: u32,
    pub bytes: u64,
    /// Events of the agent's own that tell of it.
    pub event_ids: Vec<String>,
}

/// What told whether it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedBy {
    /// The agent's own event.
    Event,
    /// The input box.
    Box,
    /// Something on the screen changed.
    Change,
    /// The dialog that was answered is closed.
    Dialog,
    /// Nothing.
    Nothing,
}

/// What was asked, and what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RespondReport {
    pub dialog: Dialog,
    /// In words: `1. Yes`, `Escape`.
    pub answered: String,
    pub verified: Verification,
    pub by: VerifiedBy,
    /// What it asks since then, where the answer brought up another question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_now: Option<Dialog>,
    pub event_ids: Vec<String>,
}

/// The way to a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AttachPlan {
    /// The socket of the tmux server.
    pub socket: String,
    pub server_pid: u32,
    pub server_start: i64,
    pub session_id: String,
    pub session_name: String,
    /// Every session that shows the pane, the one above first.
    pub sessions: Vec<AttachSession>,
    pub window_id: String,
    pub pane_pid: u32,
    /// How to get to the host that it is on; null on this one.
    #[serde(default)]
    pub ssh: Option<SshDestination>,
}

/// The way to another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SshDestination {
    /// The `ssh` to use.
    pub program: String,
    /// The host, as it is written in your ssh_config.
    pub destination: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AttachSession {
    pub session_id: String,
    pub session_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct OutputReport {
    /// From the top. Colours only where they were asked for, and nothing else that a terminal would obey.
    pub lines: Vec<String>,
    /// The pane's title, as plain text.
    pub title: Option<String>,
    /// Its program draws the whole screen anew instead of writing line after line.
    pub full_screen: bool,
    /// The pane's terminal, for whoever wants to know when it is written to; null on another host.
    pub tty: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct KillReport {
    pub signal: KillSignal,
    /// The processes that it was sent to; none for INT, which is typed.
    pub pids: Vec<u32>,
    /// Whether the agent was seen to be gone.
    pub ended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ResumeReport {
    /// What was typed into the pane's shell, or started in the dead pane.
    pub command: String,
    pub session: String,
    /// The agent as it lives now; null when it was not seen in time.
    pub resumed_runtime_id: Option<String>,
}

/// Whether a pane can be typed into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneHealth {
    pub schema_version: u32,
    /// The pane exists.
    pub available: bool,
    /// The agent's process lives in it.
    pub running: bool,
    pub runtime_id: Option<String>,
    pub pane_id: Option<String>,
    /// Why not.
    pub reason: Option<String>,
}
