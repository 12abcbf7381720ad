//! Whom an action is for, and under which conditions.

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::ActionGuards;
use agtmux_core::state::State;
use clap::Args;

use super::pick;
use crate::connect::DaemonClient;
use crate::error::CliError;

/// What the audit log calls us.
pub(crate) const CLIENT_NAME: &str = "cli";

#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The agent: runtime:ID, %12, its name, kind or session where there is one, or pane:TARGET/SESSION/@W/%P. On a terminal
    /// it may be left out, and is asked for
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// Only if this runtime lives there
    #[arg(long, value_name = "RUNTIME")]
    if_runtime: Option<String>,
    /// Only in this state
    #[arg(long, value_name = "STATE")]
    if_state: Option<State>,
    /// Only if its state was updated within this time, as 30s
    #[arg(long, value_name = "DURATION")]
    if_updated_within: Option<ConfigDuration>,
    /// Only while this dialog is open, by the fingerprint that `agtmux list panes --json` shows
    #[arg(long, value_name = "FINGERPRINT")]
    if_dialog: Option<String>,
    /// Go on although the state is unknown or has changed; it is noted in the audit log
    #[arg(long)]
    force_stale: bool,
    /// Do it once, however often it is asked for under this name
    #[arg(long, value_name = "NAME")]
    request_ref: Option<String>,
}

impl GuardArgs {
    /// With a reference that names one agent, or is left to the daemon to refuse.
    pub(crate) async fn resolved(&self, daemon: &DaemonClient) -> Result<ActionGuards, CliError> {
        let reference = pick::resolve_reference(daemon, self.reference.as_deref()).await?;
        Ok(ActionGuards { r#ref: reference, ..self.conditions() })
    }

    /// As it was written, for what need not live any more.
    pub(crate) fn unresolved(&self) -> Result<ActionGuards, CliError> {
        let reference = self.reference.clone().ok_or_else(pick::no_agent_named)?;
        Ok(ActionGuards { r#ref: reference, ..self.conditions() })
    }

    fn conditions(&self) -> ActionGuards {
        ActionGuards {
            if_runtime: self.if_runtime.clone(),
            if_state: self.if_state,
            if_updated_within_ms: self
                .if_updated_within
                .map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)),
            if_dialog: self.if_dialog.clone(),
            force_stale: self.force_stale,
            request_ref: self.request_ref.clone(),
            client: Some(CLIENT_NAME.into()),
            ..ActionGuards::default()
        }
    }
}
