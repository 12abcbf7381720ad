//! Actions on a host that runs its own agtmux.
//!
//! The hub checks the caller, the reference and the guards, then forwards the request. The remote daemon checks the
//! pane and runs the action. A request that may have run is never sent twice.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, NewAction, NewReport, PaneIdentityGuard};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use serde::de::DeserializeOwned;

use super::link::{LinkError, TargetLink};
use super::sanitize_reply;
use crate::actions::{guards, precondition};
use crate::engine::LocatedPane;

/// A pane on a host that runs its own agtmux.
pub(crate) struct RemotePane {
    pub(crate) located: LocatedPane,
    pub(crate) link: TargetLink,
}

impl RemotePane {
    /// Relays an action with the caller's guards, and returns the report of the remote daemon.
    pub(crate) async fn relay<T: DeserializeOwned>(&self, mut action: HubRequest) -> Result<T, ApiError> {
        let kind = action.kind();
        if let Some(guards) = action.guards_mut() {
            *guards = self.guards(kind, guards)?;
        }
        let changes = kind.is_mutating();
        let mut value = self.link.request(action).await.map_err(|error| self.failure(error, changes))?;
        sanitize_reply::sanitize_report(&mut value);
        let outcome: ActionOutcome<T> = serde_json::from_value(value).map_err(|error| {
            // Sanitize the error, because it may quote a value of the reply.
            let error = sanitize_reply::sanitize_message(&error.to_string());
            let why = format!("the reply of the host was invalid: {error}");
            self.failure(LinkError::Lost(why), changes)
        })?;
        Ok(outcome.report)
    }

    /// The guards for the remote daemon. They name the agent by its runtime id on that host, or name the pane if the
    /// pane has no agent. The state and the dialog that the hub knows become conditions, because the host may already
    /// have newer ones.
    fn guards(&self, kind: ActionKind, given: &ActionGuards) -> Result<ActionGuards, ApiError> {
        let LocatedPane { key, generation, pane, agent, .. } = &self.located;
        let pane_path = || {
            let session = pane.placements.first()?.session_name.clone();
            let (target, server) = (TargetName::LOCAL.to_owned(), Some(key.server.server.to_string()));
            Some(PaneRef::Path { target, server, session, window: pane.window, pane: key.pane }.to_string())
        };
        let remote_id = agent.as_ref().map(|agent| agent.remote_runtime_id.clone());
        let reference = match &remote_id {
            Some(Some(id)) => Some(format!("runtime:{id}")),
            Some(None) => None,
            None => pane_path(),
        };
        let unknown = || guards::runtime_stale("the agent's runtime id on its host is not known yet".into());
        Ok(ActionGuards {
            r#ref: reference.ok_or_else(unknown)?,
            if_runtime: remote_id.flatten(),
            if_state: given.if_state.or_else(|| self.expected_state(kind, given)),
            if_dialog: given.if_dialog.clone().or(self.expected_dialog(kind, given)?),
            if_pane: Some(PaneIdentityGuard {
                server_pid: generation.pid,
                server_start: generation.start_time,
                pane_pid: pane.pid,
            }),
            force_stale: given.force_stale,
            client: Some("hub".into()),
            ..ActionGuards::default()
        })
    }

    /// The state that the agent must still have. Only set if the caller refers to a snapshot, or answers a dialog whose
    /// content the hub does not know.
    fn expected_state(&self, kind: ActionKind, given: &ActionGuards) -> Option<State> {
        let agent = self.located.agent.as_ref()?;
        let looked = given.snapshot_id.is_some();
        let known_by_state = kind == ActionKind::Respond && agent.dialog.is_none();
        Some(agent.record.state).filter(|_| looked || known_by_state)
    }

    /// The fingerprint of the dialog that the action `respond` answers.
    fn expected_dialog(&self, kind: ActionKind, given: &ActionGuards) -> Result<Option<String>, ApiError> {
        let agent = self.located.agent.as_ref().filter(|_| kind == ActionKind::Respond);
        let Some(agent) = agent else { return Ok(None) };
        let dialog = agent.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
        if given.force_stale || given.if_dialog.is_some() {
            return Ok(dialog);
        }
        if !matches!(agent.record.state, State::WaitingApproval | State::WaitingInput) {
            let message = format!("the agent has no open dialog; its state is {}", agent.record.state);
            return Err(precondition(message, "agtmux list panes --needs-action"));
        }
        if given.snapshot_id.is_some() && dialog.is_none() {
            let message = "the snapshot contains no readable dialog; nothing was typed";
            return Err(guards::state_changed(message.into()));
        }
        Ok(dialog)
    }

    fn failure(&self, error: LinkError, changes: bool) -> ApiError {
        link_failure(&self.located.key.server.target, &self.link, error, changes, || self.check_first_hint())
    }

    /// The hint that tells the user to check the pane before repeating the command. It contains the full reference of
    /// the pane, because the pane id alone would name a pane of the hub.
    fn check_first_hint(&self) -> String {
        format!("check the pane before you repeat the command: agtmux view-output {}", self.located.reference())
    }
}

/// Relays the start of an agent to the daemon of a host.
pub(crate) async fn relay_new(
    link: &TargetLink,
    target: &TargetName,
    action: NewAction,
) -> Result<ActionOutcome<NewReport>, ApiError> {
    let failed = |error: LinkError| {
        link_failure(target, link, error, true, || {
            format!("check the host before you repeat the command: agtmux list panes --target {target}")
        })
    };
    let mut value = link.request(HubRequest::New(action)).await.map_err(failed)?;
    sanitize_reply::sanitize_report(&mut value);
    serde_json::from_value(value).map_err(|error| {
        let error = sanitize_reply::sanitize_message(&error.to_string());
        failed(LinkError::Lost(format!("the reply of the host was invalid: {error}")))
    })
}

fn link_failure(
    target: &TargetName,
    link: &TargetLink,
    error: LinkError,
    changes: bool,
    check_first: impl Fn() -> String,
) -> ApiError {
    match error {
        LinkError::NotConnected => {
            let why = link.status().target.message.unwrap_or_else(|| "not connected".into());
            let message = format!("nothing was done: {target} is unreachable ({why})");
            let error = ApiError::new(ErrorCode::TargetUnreachable, message);
            error.with_hint(format!("agtmux target connect {target}"))
        }
        LinkError::Lost(why) if changes => {
            let message = format!("the outcome is unknown: the request was sent to {target}, then {why}");
            let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
            ApiError { done_something: true, ..error.with_hint(check_first()) }
        }
        LinkError::Lost(why) => {
            let error = ApiError::new(ErrorCode::TargetUnreachable, format!("{target} did not answer: {why}"));
            error.with_hint(format!("agtmux target doctor {target}"))
        }
        LinkError::Refused(error) => remote_refusal(target, &error, changes, check_first),
    }
}

/// Converts an error of the remote daemon. The hint of the error is replaced, because a hostile host could suggest any
/// command.
fn remote_refusal(target: &TargetName, error: &ApiError, changes: bool, check_first: impl Fn() -> String) -> ApiError {
    // After an internal error the remote daemon does not know how far the action got.
    let unknown = changes && error.code == ErrorCode::Internal;
    let done_something = changes && (error.done_something || unknown);
    let code = if unknown { ErrorCode::OutcomeUnknown } else { error.code };
    let hint = match error.code {
        _ if done_something => check_first(),
        ErrorCode::CallerIsAgent => format!("set actions.allow_from_agents in the configuration of {target}"),
        ErrorCode::Internal | ErrorCode::NotStored => format!("agtmux target doctor {target}"),
        _ => format!("agtmux list panes --target {target}   (shows the current state)"),
    };
    let message = format!("on {target}: {}", sanitize_reply::sanitize_message(&error.message));
    ApiError { done_something, ..ApiError::new(code, message).with_hint(hint) }
}
