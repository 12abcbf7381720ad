use agtmux_core::evidence::DialogKind;
use agtmux_core::named_enum;
use agtmux_core::notify::NotifyChannel;
use agtmux_core::state::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

named_enum!(
    /// What a notice tells.
    #[derive(JsonSchema, ToSchema)]
    NoticeKind {
        /// An agent needs a person, or has finished.
        Notify => "notify",
        /// An earlier notice is over: its agent was answered, seen or has gone on.
        Withdraw => "withdraw",
        /// What still waits after quiet hours.
        Digest => "digest",
        /// A test by `agtmux notify test`.
        Test => "test",
    }
);

/// One notice, as the channels `command` and `webhook` get it. Secrets are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct Notice {
    pub schema_version: u32,
    pub kind: NoticeKind,
    /// Identifies the notice. A withdrawal has the id of the notice that it withdraws.
    pub notice_id: String,
    pub at: Timestamp,
    /// Whether this notice repeats an earlier one on a further channel, because the agent still waits.
    pub escalated: bool,
    /// What happened, on one line.
    pub title: String,
    /// The question, where and since when, on one or more lines.
    pub text: String,
    /// The agents: one, several in a digest, none in a test.
    pub agents: Vec<NoticeAgent>,
}

/// An agent that a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NoticeAgent {
    pub runtime_id: String,
    pub agent_type: String,
    /// The name that the agent was given at its start.
    pub name: Option<String>,
    pub target: String,
    pub server: String,
    pub session_name: String,
    pub window_index: u32,
    pub window_name: String,
    pub pane_index: u32,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: agtmux_core::ids::PaneId,
    pub cwd: Option<String>,
    pub state: State,
    /// When the agent entered the state.
    pub since: Option<Timestamp>,
    pub dialog_kind: Option<DialogKind>,
    pub question: Option<String>,
    /// The subject of the question, such as the command to run.
    pub subject: Option<String>,
    /// Identifies the dialog, for `--if-dialog`.
    pub fingerprint: Option<String>,
}

named_enum!(
    /// What happened to a notice.
    #[derive(JsonSchema, ToSchema)]
    NotifyLogEvent {
        Sent => "sent",
        /// The notice was not sent, or is sent later. `reason` tells why.
        Held => "held",
        Withdrawn => "withdrawn",
        /// The channel did not take the notice. `reason` tells why.
        Failed => "failed",
        /// The notice was not sent, because the channel was busy or the agent was answered in the meantime.
        Dropped => "dropped",
    }
);

/// One line of the notification log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NotifyLogItem {
    pub at: Timestamp,
    pub event: NotifyLogEvent,
    /// Null if the event is about all channels of the rules.
    pub channel: Option<NotifyChannel>,
    pub reason: Option<String>,
    pub notice: Notice,
}

/// The notification log, newest line last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NotifyLog {
    pub schema_version: u32,
    pub items: Vec<NotifyLogItem>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NotifyLogQuery {
    /// Only lines at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The maximum number of lines. If there are more, the newest ones are returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A request to send a test notice.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyTestRequest {
    /// The channel. Null: all channels that rules name.
    pub channel: Option<NotifyChannel>,
}

/// The result of a test notice on one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NotifyTestItem {
    pub channel: NotifyChannel,
    /// Whether the channel took the notice.
    pub delivered: bool,
    /// Why it did not.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct NotifyTestReport {
    pub schema_version: u32,
    pub items: Vec<NotifyTestItem>,
}
