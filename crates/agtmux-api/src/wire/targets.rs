use agtmux_core::target::{TargetFault, TargetHealth, TargetKind};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All watched targets, this machine first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetList {
    pub schema_version: u32,
    pub items: Vec<TargetItem>,
}

/// A watched host with its status and the number of its panes and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetItem {
    #[serde(flatten)]
    pub status: TargetStatus,
    pub panes: u32,
    pub agents: u32,
}

/// The connection to a watched host and its health.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetStatus {
    pub name: String,
    pub kind: TargetKind,
    /// The destination passed to `ssh`; null for this machine.
    pub ssh_target: Option<String>,
    pub health: TargetHealth,
    pub evidence: EvidenceKind,
    /// The agtmux version on the target; null if agtmux is not installed there.
    pub agtmux_version: Option<String>,
    /// The time since which the target has been connected or disconnected. For this machine, the time of the last
    /// change of `health`.
    pub since: Timestamp,
    /// Why the target is not healthy; null if it is healthy or if the reason is not one of these faults.
    pub fault: Option<TargetFault>,
    /// A description of the problem; null if there is none.
    pub message: Option<String>,
    /// What the user can do next, usually a command; null if there is nothing to do.
    pub hint: Option<String>,
    /// How far the target's clock is ahead of the local clock, in milliseconds; null if unknown.
    pub clock_ahead_ms: Option<i64>,
}

/// The kind of evidence available from a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// agtmux runs on the target and forwards all evidence.
    Native,
    /// Only screens and processes, read through a shell: agtmux is not installed on the target.
    Screen,
    /// No evidence yet.
    Nothing,
}

impl EvidenceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Screen => "screen",
            Self::Nothing => "nothing",
        }
    }
}

/// A request to watch a new target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTarget {
    pub name: String,
    #[serde(default = "by_ssh")]
    pub kind: TargetKind,
    /// The destination passed to `ssh`, such as a host name from ssh_config. Default: the target's name.
    #[serde(default)]
    pub ssh_target: Option<String>,
}

fn by_ssh() -> TargetKind {
    TargetKind::Ssh
}

/// The result of checking a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCheckReport {
    pub schema_version: u32,
    pub target: TargetItem,
    pub checks: Vec<TargetCheck>,
}

/// One check of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCheck {
    /// `ssh`, `tmux`, `agtmux`, `agents`, `hooks` or `clock`.
    pub name: String,
    pub ok: bool,
    /// What the check found, such as a version or an error message.
    pub found: String,
    /// What the result of the check means for the user.
    pub means: String,
    /// The command that the user should run next; null if the check passed.
    pub run: Option<String>,
}
