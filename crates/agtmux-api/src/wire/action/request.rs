use std::fmt;

use agtmux_core::dialog::Dialog;
use agtmux_core::named_enum;
use agtmux_core::state::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The fields shared by all actions: the reference and the guards. The action runs only if all guards hold.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct ActionGuards {
    /// The pane or agent: `runtime:ID`, `pane:TARGET/SESSION/@W/%P`, `%12`, or a name that matches one agent.
    pub r#ref: String,
    /// Run only if this snapshot is still valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// The nonce that the daemon returned with the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Run only if the pane has this runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_runtime: Option<String>,
    /// Run only if the agent is in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_state: Option<State>,
    /// Run only if the agent or its pane changed in the last N milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_updated_within_ms: Option<u64>,
    /// Run only while the dialog with this fingerprint is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_dialog: Option<String>,
    /// Run only if the pane still has these processes. `force_stale` does not override this guard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_pane: Option<PaneIdentityGuard>,
    /// Run only if the request arrives before this time, by the receiving daemon's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Run even if the state is unknown or a guard other than `if_pane` fails. The request is still refused if another
    /// pane has taken the place of this one. The audit log marks the action as forced.
    #[serde(skip_serializing_if = "is_false")]
    pub force_stale: bool,
    /// Idempotency key: repeated requests with the same key run once and get the first response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ref: Option<String>,
    /// The client's name for the audit log, such as `cli`, `web` or a script's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// The processes of a pane and of its tmux server. After a respawn of the pane or a restart of the server, these values
/// differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PaneIdentityGuard {
    /// The tmux server's process id.
    pub server_pid: u32,
    /// The tmux server's start time, in seconds since the Unix epoch.
    pub server_start: i64,
    /// The process id of the pane's first process.
    pub pane_pid: u32,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How the program in the pane reads input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputProfile {
    /// An agent with an input box. The default for panes with an agent.
    Tui,
    /// A shell or a program that reads lines. Never the default.
    Shell,
}

/// Types text or presses keys.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SendAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Keys to press after the text, by their tmux names: `Escape`, `C-u`, `Down`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Leave the text in the input box without pressing Enter.
    #[serde(skip_serializing_if = "is_false")]
    pub no_enter: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<InputProfile>,
}

/// Answers the open dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RespondAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    pub answer: DialogAnswer,
    /// Approve even if `subject_truncated` is set. Set this only after a person has read the whole subject elsewhere,
    /// for example in the pane.
    #[serde(default, skip_serializing_if = "is_false")]
    pub accept_truncated: bool,
}

/// The answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialogAnswer {
    Approve,
    Deny,
    /// The option with this number.
    Option(u32),
    /// Exactly the options with these numbers, if the dialog accepts several.
    Options(Vec<u32>),
    /// Free text, if the dialog accepts it.
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

/// Ends or interrupts the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KillAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    #[serde(default)]
    pub signal: KillSignal,
}

named_enum!(
    /// The signal of a kill.
    #[derive(Default, JsonSchema, ToSchema)]
    KillSignal {
        /// Types Ctrl-C into the pane.
        #[default]
        Int => "INT",
        /// Sends SIGTERM to the agent's process and its group.
        Term => "TERM",
        /// Sends SIGKILL to the agent's process and its group.
        Kill => "KILL",
    }
);

/// Returns how to attach to the pane.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttachAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// Returns the output of the pane.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    /// The maximum number of lines; the visible screen by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// Whether to keep the colours of the output.
    #[serde(skip_serializing_if = "is_false")]
    pub ansi: bool,
    /// Set this if the same viewer has read this pane before. The audit log then records only the first read.
    #[serde(skip_serializing_if = "is_false")]
    pub again: bool,
}

/// Restarts an ended agent in its pane and resumes its session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// Gives an agent a name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RenameAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    /// The name: at most 64 letters, digits, `-`, `_` and `.`. No other agent of the host may have it.
    pub name: String,
}

/// Takes a snapshot that later actions can name. A snapshot is valid for `actions.snapshot_lifetime`, 30 seconds by
/// default.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
}

/// The state of a pane at one moment. An action that names the snapshot is refused if the state has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActionSnapshot {
    pub schema_version: u32,
    pub snapshot_id: String,
    pub nonce: String,
    pub target: String,
    pub server: String,
    pub pane_id: String,
    /// The pane's runtime; null for a pane without an agent.
    pub runtime_id: Option<String>,
    pub agent_type: Option<String>,
    pub state: Option<State>,
    pub state_version: Option<u64>,
    /// When agtmux last submitted a text to the agent. Null if agtmux has submitted none since the daemon started.
    #[serde(default)]
    pub submitted_at: Option<Timestamp>,
    /// True until agtmux sees a turn after the text that it last submitted, or finds that the text began no turn. While
    /// this is true, `state` may be older than the text.
    #[serde(default)]
    pub turn_pending: bool,
    pub dialog: Option<Dialog>,
    pub observed_at: Timestamp,
    pub expires_at: Timestamp,
}

impl ActionSnapshot {
    /// The tmux server's name, prefixed with the target if it is not this machine.
    pub fn server_label(&self) -> String {
        super::outcome::server_label(&self.target, &self.server)
    }
}

/// Marks a completed agent as seen by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenAction {
    /// The agent: `runtime:ID`, `pane:TARGET/SESSION/@W/%P`, `%12`, or a name that matches one agent.
    pub r#ref: String,
}

named_enum!(
    /// The kind of an action.
    #[derive(JsonSchema, ToSchema)]
    ActionKind {
        Send => "send",
        Respond => "respond",
        Attach => "attach",
        ViewOutput => "view-output",
        Last => "last",
        Kill => "kill",
        Resume => "resume",
        /// An agent was started.
        New => "new",
        Rename => "rename",
        /// An action on a managed task.
        Task => "task",
        /// An action on a shared terminal.
        Mirror => "mirror",
        /// An adapter was switched on or off.
        Adapter => "adapter",
        /// A target was added, removed or connected.
        Target => "target",
        /// A link for a browser was created.
        Web => "web",
        /// An agent was given a name.
        Name => "name",
        /// A worktree was made or removed.
        Worktree => "worktree",
        /// A completed agent was marked as seen.
        Seen => "seen",
    }
);

impl ActionKind {
    /// Whether the action changes anything.
    pub fn is_mutating(self) -> bool {
        !matches!(self, Self::Attach | Self::ViewOutput | Self::Last)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::super::{LastAction, NewAction};
    use super::*;

    /// Checks that an action with an unknown field is rejected. serde does not promise that `flatten` and
    /// `deny_unknown_fields` work together.
    fn assert_rejects_unknown_fields<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(action: Value) {
        let read: T = serde_json::from_value(action.clone()).expect("a valid request");
        let written = serde_json::to_value(&read).expect("writes");
        assert_eq!(serde_json::from_value::<T>(written).expect("reads"), read);
        let mut misspelled = action;
        misspelled["if_sate"] = json!("idle");
        let error = serde_json::from_value::<T>(misspelled).expect_err("an unknown guard");
        // For a type without flattened parts, the error also lists the known fields.
        let error = error.to_string();
        assert_eq!(error.split(", expected ").next(), Some("unknown field `if_sate`"), "{error}");
    }

    #[test]
    fn every_action_rejects_unknown_fields() {
        let guards = json!({"ref": "%1", "if_state": "idle", "not_after": "2026-11-15T09:00:00Z",
            "if_pane": {"server_pid": 1, "server_start": 2, "pane_pid": 3}, "force_stale": true, "client": "cli"});
        let with = |name: &str, value: Value| {
            let mut action = guards.clone();
            action[name] = value;
            action
        };
        assert_rejects_unknown_fields::<SendAction>(with("text", json!("x")));
        assert_rejects_unknown_fields::<RespondAction>(with("answer", json!("approve")));
        assert_rejects_unknown_fields::<KillAction>(with("signal", json!("TERM")));
        assert_rejects_unknown_fields::<OutputAction>(with("lines", json!(3)));
        assert_rejects_unknown_fields::<AttachAction>(guards.clone());
        assert_rejects_unknown_fields::<ResumeAction>(guards.clone());
        assert_rejects_unknown_fields::<LastAction>(with("turns", json!(2)));
        assert_rejects_unknown_fields::<RenameAction>(with("name", json!("x")));
        assert_rejects_unknown_fields::<NewAction>(json!({"agent": "claude", "place": {"split": "%1"}}));
        assert_rejects_unknown_fields::<SnapshotAction>(guards.clone());
        assert_rejects_unknown_fields::<PaneIdentityGuard>(guards["if_pane"].clone());
    }
}
