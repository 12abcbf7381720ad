use agtmux_core::dialog::Dialog;
use agtmux_core::named_enum;
use agtmux_core::state::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::outcome::SendReport;
use super::request::ActionGuards;

/// Starts an agent in a new window or pane.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewAction {
    /// The type of the agent, such as `claude`.
    pub agent: String,
    /// Arguments for the agent's command line. They must not contain the prompt, because other users can read command
    /// lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The directory in which the agent starts: an absolute path on its host. Empty: the home directory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// A name for the agent. References to the agent can use this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first prompt. It is typed as soon as the agent waits for a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    pub place: NewPlace,
    /// The socket of the tmux server; the user's default server if null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The host; this machine if null. Another host needs agtmux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Start the agent only if the request arrives before this time, by the receiving daemon's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Timestamp>,
    /// Idempotency key: repeated requests with the same key start one agent and get the first response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ref: Option<String>,
    /// The client's name for the audit log, such as `cli`, `web` or a script's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl NewAction {
    /// The guards of an action on an existing pane that also apply to this action.
    pub fn guards(&self) -> ActionGuards {
        ActionGuards {
            r#ref: self.agent.clone(),
            not_after: self.not_after,
            request_ref: self.request_ref.clone(),
            client: self.client.clone(),
            ..ActionGuards::default()
        }
    }
}

/// Where a new agent gets its pane.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewPlace {
    /// A new window of the session that is named after the directory. The session is created if it does not exist.
    #[default]
    Project,
    /// A new window of the session with this name. The session is created if it does not exist.
    Session(String),
    /// A new window after the window of the pane with this id (`%12`).
    Window(String),
    /// A new pane beside the pane with this id (`%12`).
    Split(String),
}

/// The result of starting an agent. `runtime_id` and `pane_id` of the outcome name the new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NewReport {
    pub agent_type: String,
    pub name: Option<String>,
    /// The command that was typed into the shell of the new pane.
    pub command: String,
    pub cwd: String,
    pub session_name: String,
    pub window_id: String,
    pub state: Option<State>,
    /// The dialog that the new agent shows, such as a question about trust or a login.
    pub dialog: Option<Dialog>,
    /// What became of the prompt; null if the request had none.
    pub prompt: Option<PromptDelivery>,
}

/// What became of the first prompt of a new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct PromptDelivery {
    pub status: PromptStatus,
    /// The proof that the prompt was submitted; null if it was not sent yet.
    pub sent: Option<SendReport>,
    /// Why the prompt was not sent.
    pub reason: Option<String>,
}

named_enum!(
    /// The status of the first prompt of a new agent.
    #[derive(JsonSchema, ToSchema)]
    PromptStatus {
        /// The prompt was sent.
        Sent => "sent",
        /// The agent is not ready for a prompt. The daemon keeps the prompt and sends it when the agent is ready.
        Kept => "kept",
        /// The prompt was not sent, and will not be sent.
        Failed => "failed",
    }
);
