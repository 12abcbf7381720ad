use agtmux_core::dialog::Dialog;
use agtmux_core::ids::TargetName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Verification;
use super::request::KillSignal;

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionOutcome<T> {
    pub schema_version: u32,
    pub action_id: String,
    pub snapshot_id: String,
    /// The runtime that the action was applied to.
    pub runtime_id: Option<String>,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    pub latency_ms: u64,
    /// Whether the action had already run with the same `request_ref`. If so, this is the earlier response.
    #[serde(default)]
    pub repeated: bool,
    #[serde(flatten)]
    pub report: T,
}

impl<T> ActionOutcome<T> {
    /// The tmux server's name, prefixed with the target if it is not this machine.
    pub fn server_label(&self) -> String {
        server_label(&self.target, &self.server)
    }
}

pub(super) fn server_label(target: &str, server: &str) -> String {
    if target == TargetName::LOCAL { server.to_owned() } else { format!("{target}@{server}") }
}

/// The result of sending text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SendReport {
    pub verified: Verification,
    pub by: VerifiedBy,
    /// The number of Enter presses.
    pub attempts: u32,
    pub bytes: u64,
    /// The ids of the agent's events that confirm the text.
    pub event_ids: Vec<String>,
    /// Whether the pane was in copy mode and agtmux had to leave that mode to type the text.
    #[serde(default)]
    pub left_copy_mode: bool,
}

/// The evidence on which a verification result is based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedBy {
    /// An event of the agent reports the text.
    Event,
    /// The input box shows whether the text was submitted.
    Box,
    /// The screen changed after the input.
    Change,
    /// The dialog closed after the answer.
    Dialog,
    /// There is no evidence.
    Nothing,
}

/// The result of answering a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RespondReport {
    pub dialog: Dialog,
    /// The answer as agtmux gave it, such as `1. Yes` or `Escape`.
    pub answered: String,
    pub verified: Verification,
    pub by: VerifiedBy,
    /// The dialog that opened after the answer; null if none opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_now: Option<Dialog>,
    pub event_ids: Vec<String>,
}

/// Everything needed to attach to a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AttachPlan {
    /// The socket of the tmux server.
    pub socket: String,
    pub server_pid: u32,
    pub server_start: i64,
    pub session_id: String,
    pub session_name: String,
    /// All sessions that show the pane, starting with `session_id`.
    pub sessions: Vec<AttachSession>,
    pub window_id: String,
    pub pane_pid: u32,
    /// How to reach the host of the pane; null if the pane is on this machine.
    #[serde(default)]
    pub ssh: Option<SshDestination>,
}

/// How to reach another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SshDestination {
    /// The `ssh` program to run.
    pub program: String,
    /// The name of the host in ssh_config.
    pub destination: String,
}

/// A session that shows the pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AttachSession {
    pub session_id: String,
    pub session_name: String,
}

/// The output of a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct OutputReport {
    /// The lines from top to bottom, without control sequences. Colours are included if the request asks for them.
    pub lines: Vec<String>,
    /// The pane's title, as plain text.
    pub title: Option<String>,
    /// Whether the program draws the full screen instead of writing line by line.
    pub full_screen: bool,
    /// The pane's terminal device, on which a client can watch for output; null for a pane on another host.
    pub tty: Option<String>,
}

/// The result of a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct KillReport {
    pub signal: KillSignal,
    /// The processes that received the signal; empty for INT, which is typed as Ctrl-C.
    pub pids: Vec<u32>,
    /// Whether agtmux has seen that the agent ended.
    pub ended: bool,
}

/// The result of naming an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RenameReport {
    pub name: String,
    /// The name that the agent had before.
    pub previous: Option<String>,
}

/// The result of resuming an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ResumeReport {
    /// The command that was typed into the pane's shell or started in the dead pane.
    pub command: String,
    pub session: String,
    /// The runtime of the resumed agent; null if agtmux did not detect the agent in time.
    pub resumed_runtime_id: Option<String>,
}

/// The result of recording that a person has seen a completed agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct SeenReport {
    pub schema_version: u32,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    pub runtime_id: String,
    /// Whether the agent still counted as unseen before this request.
    pub was_unseen: bool,
}

impl SeenReport {
    /// The tmux server's name, prefixed with the target if it is not this machine.
    pub fn server_label(&self) -> String {
        server_label(&self.target, &self.server)
    }
}

/// Whether a pane accepts input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneHealth {
    pub schema_version: u32,
    /// Whether the pane exists.
    pub available: bool,
    /// Whether the agent's process runs in the pane.
    pub running: bool,
    pub runtime_id: Option<String>,
    pub pane_id: Option<String>,
    /// Why the pane does not accept input.
    pub reason: Option<String>,
}
