//! One call of a tool: its arguments, its client and its time.

use std::time::Duration;

use agtmux_api::wire::CallerReport;
use agtmux_client::DaemonClient;
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::McpOptions;
use crate::answer::ToolError;
use crate::state::McpState;
use crate::untrusted;

/// How long a call may wait for something. Clients end calls after 60 seconds, so a call ends well before.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(40);
/// When a call ends at the latest, also if the daemon does not answer.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(44);

pub(crate) struct ToolCall<'a> {
    pub(crate) options: &'a McpOptions,
    pub(crate) state: &'a McpState,
    /// The daemon, with the name of this client for the audit log.
    pub(crate) daemon: DaemonClient,
    pub(crate) context: &'a RequestContext<RoleServer>,
    started: Instant,
}

impl<'a> ToolCall<'a> {
    pub(crate) fn new(options: &'a McpOptions, state: &'a McpState, context: &'a RequestContext<RoleServer>) -> Self {
        let daemon = options.daemon.named(&client_name(context));
        Self { options, state, daemon, context, started: Instant::now() }
    }

    pub(crate) async fn caller(&self) -> Result<CallerReport, ToolError> {
        Ok(self.state.caller(&self.daemon).await?)
    }

    /// When to stop waiting, if the client asks to wait this many seconds.
    pub(crate) fn deadline(&self, seconds: Option<u64>) -> Instant {
        self.started + seconds.map_or(MAX_WAIT, |seconds| Duration::from_secs(seconds).min(MAX_WAIT))
    }

    /// Ends when the client cancels the call.
    pub(crate) async fn cancelled(&self) {
        self.context.ct.cancelled().await;
    }
}

/// The name of the client in the audit log. The client chooses it, so it is no proof.
fn client_name(context: &RequestContext<RoleServer>) -> String {
    let info = context.client_info();
    let name = info.map(|info| untrusted::bounded_field(&info.name, 50)).unwrap_or_default();
    let name: String = name.chars().filter(|c| *c == ' ' || c.is_ascii_graphic()).collect();
    if name.is_empty() { "mcp".into() } else { format!("mcp {name}") }
}

/// Reads the arguments of a call.
pub(crate) fn arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T, ToolError> {
    serde_json::from_value(serde_json::Value::Object(given)).map_err(|error| {
        let why = untrusted::bounded_field(&error.to_string(), 500);
        ToolError::new(format!("invalid arguments: {why}"))
            .with_hint("the input schema of the tool lists its arguments")
    })
}
