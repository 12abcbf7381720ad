//! Shared terminals: shells that a person and an agent both use.

use std::collections::BTreeMap;

use agtmux_core::ids::PaneId;
use agtmux_core::mirror::{MirrorMethod, MirrorShell};
use agtmux_core::named_enum;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects a shared terminal: by its own pane, or by the pane for which it was made.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MirrorQuery {
    /// The tmux server's socket; the user's default server by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The pane of the shared terminal, such as `%12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// The pane for which the shared terminal was made. If that pane has no shared terminal, agtmux uses one in the
    /// same session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_pane: Option<String>,
}

/// Makes a shared terminal beside a pane or in an existing pane, or returns the one that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorStartRequest {
    #[serde(default)]
    pub socket: Option<String>,
    /// The pane to split, such as `%3`. With `pane`: the pane of the caller.
    pub for_pane: String,
    /// An existing pane whose shell becomes the shared terminal. It must show its prompt.
    #[serde(default)]
    pub pane: Option<String>,
    /// The shell: `bash`, `zsh`, `fish`, a POSIX shell such as `dash`, or a path. Default: the shell that tmux starts.
    #[serde(default)]
    pub shell: Option<String>,
    /// The working directory, as an absolute path. Default: the pane's working directory.
    #[serde(default)]
    pub cwd: Option<String>,
}

named_enum!(
    /// What the shell of a shared terminal does.
    #[derive(JsonSchema, ToSchema)]
    MirrorStatus {
        /// The shell has not shown its first prompt.
        Starting => "starting",
        /// The shell waits for a command.
        Ready => "ready",
        /// A command runs.
        Running => "running",
        /// The shell was replaced, another shell runs in it, or its output is not read, so agtmux cannot follow it.
        Lost => "lost",
        /// The pane of the terminal no longer exists.
        Closed => "closed",
    }
);

/// A shared terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorItem {
    pub mirror_id: String,
    pub socket: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
    /// The pane for which the terminal was made.
    #[schemars(with = "Option<String>")]
    #[schema(value_type = Option<String>, example = "%3")]
    pub for_pane: Option<PaneId>,
    /// The tmux session, such as `$3`.
    pub session: String,
    pub shell: MirrorShell,
    pub method: MirrorMethod,
    pub status: MirrorStatus,
    pub cwd: Option<String>,
    /// The command that runs now; null if none runs.
    pub running: Option<MirrorRunningItem>,
    /// Why agtmux cannot follow the shell; null if it can.
    pub problem: Option<String>,
    /// The number of the last command that was started.
    pub last_number: u64,
    /// Whether the pane existed before. `stop` then leaves it open.
    pub adopted: bool,
    /// What the shell of an adopted pane keeps from agtmux until it ends.
    pub notes: Vec<String>,
}

/// A command that runs in a shared terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorRunningItem {
    pub number: u64,
    pub command: Option<String>,
    /// The id of the request that made agtmux type the command; null if the person typed it.
    pub command_id: Option<String>,
    pub since: Timestamp,
}

/// The list of shared terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorList {
    pub schema_version: u32,
    pub items: Vec<MirrorItem>,
}

/// Runs a command in a shared terminal. Makes a terminal if `for_pane` and its session have none.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorExecRequest {
    #[serde(default)]
    pub socket: Option<String>,
    #[serde(default)]
    pub pane: Option<String>,
    #[serde(default)]
    pub for_pane: Option<String>,
    /// The command. It may have several lines.
    pub command: String,
    /// The working directory of the command, as an absolute path. Default: the shell's working directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// If the command still runs after this time, agtmux interrupts it with Ctrl-C. Default: 120000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// A name for the request, chosen by the caller. If the name was used before, the command does not run again.
    #[serde(default)]
    pub command_id: Option<String>,
    /// How long the response waits for the end of the command. Default: 0.
    #[serde(default)]
    pub wait_ms: Option<u64>,
    /// The shell of a terminal that is made for this command: a name or a path, as in `MirrorStartRequest`.
    #[serde(default)]
    pub shell: Option<String>,
    /// Variables that agtmux exports in the shell before the command. The pane does not show this, and the variables
    /// stay set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

named_enum!(
    /// Whether a command still runs, has ended or was lost.
    #[derive(JsonSchema, ToSchema)]
    MirrorCommandStatus {
        Running => "running",
        Ended => "ended",
        /// The pane was closed, or the shell was replaced, before the command ended. The result of the command is
        /// unknown.
        Lost => "lost",
    }
);

/// A command that agtmux typed into a shared terminal, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorCommand {
    pub command_id: String,
    pub mirror_id: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
    pub status: MirrorCommandStatus,
    /// How agtmux has followed the command.
    pub method: MirrorMethod,
    /// The exit code as the shell reports it; 124 after a timeout and 130 after a cancellation. Null if the shell does
    /// not report it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended the command. Set if the exit code is 128 plus this number.
    pub signal: Option<i32>,
    pub duration_ms: Option<u64>,
    pub cwd: Option<String>,
    /// The end of the output. Each byte that is not valid UTF-8 appears as the code point U+10FF00 plus the value of
    /// the byte.
    pub output: String,
    /// Whether the beginning of the output is missing in `output`.
    pub truncated: bool,
    /// The size of the part of the output that is missing before `output`.
    pub omitted_bytes: u64,
    /// The file with the raw output.
    pub output_file: Option<String>,
    pub timed_out: bool,
    pub cancelled: bool,
    /// Whether a program used the full screen. What such a program draws is not in `output`.
    pub full_screen: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MirrorCommandQuery {
    pub command_id: String,
    /// How long to wait for the end of the command. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether to keep text that was overwritten later, and what full-screen programs draw.
    #[serde(default)]
    pub raw: bool,
    /// The maximum size of `output`. Default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Interrupts a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorCancelRequest {
    pub command_id: String,
}

/// An item of the output stream of a command: a part of the output, or the end of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MirrorStreamItem {
    /// A part of the output. Each byte that is not valid UTF-8 appears as the code point U+10FF00 plus the value of the
    /// byte.
    Output(String),
    /// The command has ended. The field `output` of this result is empty.
    Ended(Box<MirrorCommand>),
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MirrorActivityQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_pane: Option<String>,
    /// Only commands with a higher number than this one. Same as the `Last-Event-ID` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The maximum number of commands. If there are more, the newest ones are returned. Default: 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A command that the person ran in a shared terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorActivityItem {
    pub number: u64,
    /// The command; null if the shell does not store this command in its history.
    pub command: Option<String>,
    pub cwd: Option<String>,
    pub exit_code: Option<i32>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// The end of the output. Each byte that is not valid UTF-8 appears as the code point U+10FF00 plus the value of
    /// the byte.
    pub output: String,
    pub truncated: bool,
    /// The directory, command, output and exit code as one text: `~/dir $ command`, the output, `[exit code: N]`.
    pub text: String,
}

/// The commands that the person ran, newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorActivity {
    pub schema_version: u32,
    pub items: Vec<MirrorActivityItem>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MirrorScreenQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_pane: Option<String>,
    /// The maximum number of lines. Default: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// The last lines of a shared terminal, as plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct MirrorScreen {
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
    pub lines: Vec<String>,
}
