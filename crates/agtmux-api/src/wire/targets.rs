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
    /// Since when the target has been connected or disconnected.
    pub since: Timestamp,
    /// Why the target is not healthy.
    pub fault: Option<TargetFault>,
    /// The problem, in words.
    pub message: Option<String>,
    /// The next command to run.
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
    /// The host as named in ssh_config; the target's name by default.
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
    /// The finding.
    pub found: String,
    /// The meaning of the finding.
    pub means: String,
    /// The command to run next.
    pub run: Option<String>,
}
