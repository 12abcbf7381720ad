//! What is done on another host is asked of the agtmux there, which looks, checks and types for itself. Who asks, whom it
//! is for and what was seen has been checked here before; nothing is ever asked twice that could be done twice.

use std::time::Duration;

use agtmux_api::collect::HubRequest;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, PaneIdentityGuard};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use serde::de::DeserializeOwned;

use super::action_pane::ActionPane;
use super::{ActionFailure, Actions, guards, sanitize_remote};
use crate::engine::LocatedPane;
use crate::targets::{LinkError, TargetLink};

/// Others may be typing there, and agents take their time.
const ACTION_TIMEOUT: Duration = Duration::from_secs(100);
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Where an action is done.
pub(super) enum ActionTarget<'a> {
    Local(Box<ActionPane<'a>>),
    Remote(Box<RemotePane>),
}

/// A pane of a host that has an agtmux of its own.
pub(super) struct RemotePane {
    located: LocatedPane,
    link: TargetLink,
}

impl Actions {
    pub(super) fn action_target(&self, located: LocatedPane, forced: bool) -> Result<ActionTarget<'_>, ApiError> {
        match self.remote_link(&located)? {
            Some(link) => Ok(ActionTarget::Remote(Box::new(RemotePane { located, link }))),
            None => Ok(ActionTarget::Local(Box::new(self.action_pane(located, forced)?))),
        }
    }

    /// The way to the agtmux of its host, where there is one.
    pub(super) fn remote_link(&self, located: &LocatedPane) -> Result<Option<TargetLink>, ApiError> {
        let target = &located.key.server.target;
        if target.is_local() {
            return Ok(None);
        }
        let link = self.0.targets.link(target).ok_or_else(|| crate::targets::no_such_target(target.as_str()))?;
        Ok(Some(link).filter(TargetLink::is_native))
    }
}

impl RemotePane {
    /// What changes nothing is asked again if the line breaks; what may have been done is not.
    pub(super) async fn relay<T: DeserializeOwned>(
        &self,
        kind: ActionKind,
        guards: &ActionGuards,
        ask: &(dyn Fn(ActionGuards) -> HubRequest + Sync),
    ) -> Result<T, ActionFailure> {
        let ask = ask(self.guards(kind, guards)?);
        let changes = kind.is_mutating();
        let answer = match changes {
            true => self.link.request(ask, ACTION_TIMEOUT).await,
            false => self.link.request_read_only(ask, READ_TIMEOUT).await,
        };
        let mut value = answer.map_err(|error| self.failure(error, changes))?;
        sanitize_remote::sanitize_report(&mut value);
        let outcome: ActionOutcome<T> = serde_json::from_value(value).map_err(|error| {
            let why = format!("its answer cannot be read: {error}");
            self.failure(LinkError::Lost(why), changes)
        })?;
        Ok(outcome.report)
    }

    /// The same agent under the name that it has there, or the same pane while it is the same. What was seen here goes along:
    /// the host knows more by now, and nobody has answered that.
    fn guards(&self, kind: ActionKind, given: &ActionGuards) -> Result<ActionGuards, ActionFailure> {
        let LocatedPane { key, generation, pane, agent: living, .. } = &self.located;
        let place = || {
            let session = pane.placements.first()?.session_name.clone();
            let (target, server) = (TargetName::LOCAL.to_owned(), Some(key.server.server.to_string()));
            Some(PaneRef::Path { target, server, session, window: pane.window, pane: key.pane }.to_string())
        };
        let far = living.as_ref().map(|living| living.remote_runtime_id.clone());
        let reference = match &far {
            Some(Some(id)) => Some(format!("runtime:{id}")),
            Some(None) => None,
            None => place(),
        };
        let unknown = || guards::runtime_stale("it is not known yet what it is called on its host".into());
        Ok(ActionGuards {
            r#ref: reference.ok_or_else(unknown)?,
            if_runtime: far.flatten(),
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

    /// The state that somebody acts on who has looked, or who answers something that is known by its state only.
    fn expected_state(&self, kind: ActionKind, given: &ActionGuards) -> Option<State> {
        let living = self.located.agent.as_ref()?;
        let looked = given.snapshot_id.is_some();
        let known_by_state = kind == ActionKind::Respond && living.dialog.is_none();
        Some(living.record.state).filter(|_| looked || known_by_state)
    }

    /// What an answer is an answer to.
    fn expected_dialog(&self, kind: ActionKind, given: &ActionGuards) -> Result<Option<String>, ActionFailure> {
        let living = self.located.agent.as_ref().filter(|_| kind == ActionKind::Respond);
        let Some(living) = living else { return Ok(None) };
        let dialog = living.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
        if given.force_stale || given.if_dialog.is_some() {
            return Ok(dialog);
        }
        if !matches!(living.record.state, State::WaitingApproval | State::WaitingInput) {
            let message = format!("it asks nothing: {}", living.record.state);
            return Err(ActionFailure::precondition(message, "agtmux list panes --needs-action"));
        }
        if given.snapshot_id.is_some() && dialog.is_none() {
            let message = "it asked nothing that could be read when it was seen; nothing was typed";
            return Err(ActionFailure::refused(guards::state_changed(message.into())));
        }
        Ok(dialog)
    }

    fn failure(&self, error: LinkError, changes: bool) -> ActionFailure {
        let target = &self.located.key.server.target;
        match error {
            LinkError::NotConnected => {
                let why = self.link.status().message.unwrap_or_else(|| "it is not connected".into());
                let message = format!("nothing was done: {target} is out of reach ({why})");
                let error = ApiError::new(ErrorCode::TargetUnreachable, message);
                ActionFailure::refused(error.with_hint(format!("agtmux target connect {target}")))
            }
            LinkError::Lost(why) if changes => {
                let message = format!("it was sent to {target}, and then {why}: whether it was done is not known");
                let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
                ActionFailure { error: error.with_hint(self.check_first_hint()), done_something: true }
            }
            LinkError::Lost(why) => {
                let error = ApiError::new(ErrorCode::TargetUnreachable, format!("{target} gave no answer: {why}"));
                ActionFailure::refused(error.with_hint(format!("agtmux target doctor {target}")))
            }
            LinkError::Refused(error) => self.remote_refusal(&error, changes),
        }
    }

    /// By a name that only this one has: its pane's number is another pane here.
    fn check_first_hint(&self) -> String {
        format!("look before you do it again: agtmux view-output {}", self.located.reference())
    }

    /// What to run next is ours to say: a host could have anything run here.
    fn remote_refusal(&self, error: &ApiError, changes: bool) -> ActionFailure {
        let target = &self.located.key.server.target;
        // Nobody there knows how far it came.
        let unknown = changes && error.code == ErrorCode::Internal;
        let done_something = changes && (error.done_something || unknown);
        let code = if unknown { ErrorCode::OutcomeUnknown } else { error.code };
        let hint = match error.code {
            _ if done_something => self.check_first_hint(),
            ErrorCode::CallerIsAgent => format!("set actions.allow_from_agents in the configuration of {target}"),
            ErrorCode::Internal | ErrorCode::NotStored => format!("agtmux target doctor {target}"),
            _ => format!("look again: agtmux list panes --target {target}"),
        };
        let message = format!("on {target}: {}", sanitize_remote::sanitize_message(&error.message));
        ActionFailure { error: ApiError::new(code, message).with_hint(hint), done_something }
    }
}
