use std::fmt;

use agtmux_core::dialog::Dialog;
use agtmux_core::state::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What every action has in common: whom it is for, and under which conditions.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct ActionGuards {
    /// `runtime:ID`, `pane:TARGET/SESSION/@W/%P`, `%12`, or an agent's name where there is one of it.
    pub r#ref: String,
    /// Only if this snapshot still holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// The one that came with the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Only if this runtime lives there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_runtime: Option<String>,
    /// Only in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_state: Option<State>,
    /// Only if the state was updated within this many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_updated_within_ms: Option<u64>,
    /// Only while this dialog is open, by its fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_dialog: Option<String>,
    /// Only while the pane is that one, whatever else is forced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_pane: Option<PaneIdentityGuard>,
    /// Only if it comes before this moment, by the clock of the daemon that it comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub not_after: Option<Timestamp>,
    /// Go on although the state is unknown or has changed. It is noted in the audit log. A pane that is another one is refused
    /// all the same.
    #[serde(skip_serializing_if = "is_false")]
    pub force_stale: bool,
    /// The same request under the same name is done once; the answer of the first is given again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ref: Option<String>,
    /// What asks, for the audit log: `cli`, `web`, a script's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// What a pane cannot keep when it becomes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PaneIdentityGuard {
    /// The tmux server's process, and when it was started.
    pub server_pid: u32,
    pub server_start: i64,
    /// The pane's first process.
    pub pane_pid: u32,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How the program in the pane takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputProfile {
    /// An agent with an input box. The usual one where an agent lives.
    Tui,
    /// A shell, or a program that reads lines. It has to be asked for.
    Shell,
}

/// Types a text, or presses keys.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct SendAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Keys to press after the text, by tmux's names: `Escape`, `C-u`, `Down`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Leave the text in the input box.
    #[serde(skip_serializing_if = "is_false")]
    pub no_enter: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<InputProfile>,
}

/// Answers the dialog that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct RespondAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    pub answer: DialogAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialogAnswer {
    Approve,
    Deny,
    /// The option with this number.
    Option(u32),
    /// The options with these numbers and no others, where the dialog takes several.
    Options(Vec<u32>),
    /// Words of one's own, where the dialog takes them.
    Text(String),
}

impl fmt::Display for DialogAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approve => f.write_str("approve"),
            Self::Deny => f.write_str("deny"),
            Self::Option(n) => write!(f, "option {n}"),
            Self::Options(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                write!(f, "options {}", numbers.join(", "))
            }
            Self::Text(_) => f.write_str("text"),
        }
    }
}

/// Ends or interrupts what runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct KillAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    #[serde(default)]
    pub signal: KillSignal,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum KillSignal {
    /// Ctrl-C, typed into the pane.
    #[default]
    Int,
    /// To the agent's process and its group.
    Term,
    Kill,
}

impl KillSignal {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Term => "TERM",
            Self::Kill => "KILL",
        }
    }
}

/// Tells how to get to the pane, if it is still the same.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct AttachAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// Shows what the pane has shown.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct OutputAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    /// How many lines at the most; what fits the screen when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// Keep colours.
    #[serde(skip_serializing_if = "is_false")]
    pub ansi: bool,
    /// Read again and again: only the first reading is noted in the audit log.
    #[serde(skip_serializing_if = "is_false")]
    pub again: bool,
}

/// Starts an agent that has ended again, in its pane, with its session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct ResumeAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// Takes a snapshot to act on within the next 30 seconds, or as long as `actions.snapshot_lifetime` says.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct SnapshotAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// What was there when it was looked at. An action that names it is refused as soon as it is no longer so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionSnapshot {
    pub schema_version: u32,
    pub snapshot_id: String,
    pub nonce: String,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    /// Null where no agent lives.
    pub runtime_id: Option<String>,
    pub agent_type: Option<String>,
    pub state: Option<State>,
    pub state_version: Option<u64>,
    pub dialog: Option<Dialog>,
    #[schema(value_type = String, format = DateTime)]
    pub observed_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

impl ActionSnapshot {
    /// The server, and its host where that is another one.
    pub fn server_label(&self) -> String {
        super::outcome::server_label(&self.target, &self.server)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    Send,
    Respond,
    Attach,
    ViewOutput,
    Kill,
    Resume,
    /// Something was done to a managed task.
    Task,
}

impl ActionKind {
    pub const ALL: [Self; 6] = [Self::Send, Self::Respond, Self::Attach, Self::ViewOutput, Self::Kill, Self::Resume];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Respond => "respond",
            Self::Attach => "attach",
            Self::ViewOutput => "view-output",
            Self::Kill => "kill",
            Self::Resume => "resume",
            Self::Task => "task",
        }
    }

    /// Whether it changes anything but what the caller sees.
    pub fn is_mutating(self) -> bool {
        !matches!(self, Self::Attach | Self::ViewOutput)
    }
}
