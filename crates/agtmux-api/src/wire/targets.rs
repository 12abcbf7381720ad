use agtmux_core::target::{TargetFault, TargetHealth, TargetKind};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The hosts that are watched, this one first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetList {
    pub schema_version: u32,
    pub items: Vec<TargetItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetItem {
    pub name: String,
    pub kind: TargetKind,
    /// What `ssh` is given; null for this host.
    pub ssh_target: Option<String>,
    pub health: TargetHealth,
    pub evidence: EvidenceKind,
    /// The agtmux there, where there is one.
    pub agtmux_version: Option<String>,
    pub panes: u32,
    pub agents: u32,
    /// Since when it is connected, or is not.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// What kind of trouble it is in.
    pub fault: Option<TargetFault>,
    /// What is wrong, in words.
    pub message: Option<String>,
    /// What to run about it, or to see more.
    pub hint: Option<String>,
    /// How far its clock is ahead of ours, in milliseconds; null where that is not known.
    pub clock_ahead_ms: Option<i64>,
}

/// What is known of the agents of a target, and from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// All that is known of agents on this host: agtmux runs there.
    Native,
    /// Their screens and processes, by tmux and a shell: agtmux is not installed there.
    Screen,
    /// Nothing yet.
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

/// A host to be watched from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTarget {
    pub name: String,
    #[serde(default = "by_ssh")]
    pub kind: TargetKind,
    /// The host, as it is written in your ssh_config; the name of the target when left out.
    #[serde(default)]
    pub ssh_target: Option<String>,
}

fn by_ssh() -> TargetKind {
    TargetKind::Ssh
}

/// What a host has, what that means, and what to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCheckReport {
    pub schema_version: u32,
    pub target: TargetItem,
    pub checks: Vec<TargetCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetCheck {
    /// `ssh`, `tmux`, `agtmux`, `agents`, `hooks`, `clock`.
    pub name: String,
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What that means.
    pub means: String,
    /// What to run.
    pub run: Option<String>,
}
