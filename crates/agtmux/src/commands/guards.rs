//! The agent reference and the guard options of every action.

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{ActionGuards, ActionSnapshot, SnapshotAction};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::state::State;
use clap::Args;

use super::pick;
use crate::error::CliResult;

/// The name of this client in the audit log.
pub(crate) const CLIENT_NAME: &str = "cli";

#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The agent: its name, type or session, a place (work:1.2, work:editor), %12 or @3 (a pane or window of this
    /// machine), runtime:ID, or pane:TARGET/SESSION/@W/%P. If REF is omitted or several agents match, agtmux asks you
    /// to choose; without a terminal, the command fails
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// Fail unless the pane still runs this agent process (the runtime_id from `agtmux list panes --json`)
    #[arg(long, value_name = "RUNTIME")]
    if_runtime: Option<String>,
    /// Fail unless the agent is in this state
    #[arg(long, value_name = "STATE")]
    if_state: Option<State>,
    /// Fail unless the agent or its pane changed within this time, such as 30s. Changes are, for example, a new state,
    /// title, directory or size
    #[arg(long, value_name = "DURATION")]
    if_updated_within: Option<ConfigDuration>,
    /// Fail unless this dialog is open (the fingerprint from `agtmux list panes --json`)
    #[arg(long, value_name = "FINGERPRINT")]
    if_dialog: Option<String>,
    /// Act even if the state is unknown or the condition of an --if-* option is not met. agtmux still refuses if the
    /// pane or its process changes during the action. The audit log marks the action as forced
    #[arg(long)]
    force_stale: bool,
    /// Idempotency key: repeated requests with the same key run once
    #[arg(long, value_name = "NAME")]
    request_ref: Option<String>,
}

impl GuardArgs {
    /// The guards with a reference to one agent. If the user's reference is missing or ambiguous, asks on the terminal
    /// which agent the user means.
    pub(crate) async fn resolved(&self, daemon: &DaemonClient) -> CliResult<ActionGuards> {
        let reference = pick::resolve_reference(daemon, self.reference.as_deref()).await?;
        Ok(ActionGuards { r#ref: reference, ..self.conditions() })
    }

    /// The guards with the reference as the user typed it, for commands that also accept an agent that has ended.
    pub(crate) fn unresolved(&self) -> CliResult<ActionGuards> {
        let reference = self.reference.clone().ok_or_else(pick::no_agent_named)?;
        Ok(ActionGuards { r#ref: reference, ..self.conditions() })
    }

    /// Like [`resolved`](Self::resolved), but also accepts a reference that names no running agent, because it may name
    /// one that has ended.
    pub(crate) async fn resolved_or_ended(&self, daemon: &DaemonClient) -> CliResult<ActionGuards> {
        match &self.reference {
            Some(_) => self.unresolved(),
            None => self.resolved(daemon).await,
        }
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

/// The current snapshot of the agent that the guards name.
pub(super) async fn snapshot(daemon: &DaemonClient, guards: &ActionGuards) -> CliResult<ActionSnapshot> {
    Ok(parse(&daemon.act("/v1/actions/snapshot", &SnapshotAction { guards: guards.clone() }).await?)?)
}
