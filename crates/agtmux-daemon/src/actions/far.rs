//! What is done on another host is asked of the agtmux there, which looks, checks and types for itself. Who asks, whom it
//! is for and what was seen has been checked here before; nothing is ever asked twice that could be done twice.

use std::time::Duration;

use agtmux_api::collect::Ask;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, Guards, SamePane};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::Ref;
use agtmux_core::state::State;
use serde::de::DeserializeOwned;

use super::scene::Scene;
use super::{Actions, Failure, foreign, guards};
use crate::engine::Located;
use crate::targets::{Link, LinkError};

/// Others may be typing there, and agents take their time.
const DONE_WITHIN: Duration = Duration::from_secs(100);
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Where an action is done.
pub(super) enum Stage<'a> {
    Here(Box<Scene<'a>>),
    There(Box<Far>),
}

/// A pane of a host that has an agtmux of its own.
pub(super) struct Far {
    located: Located,
    link: Link,
}

impl Actions {
    pub(super) fn stage(&self, located: Located, forced: bool) -> Result<Stage<'_>, ApiError> {
        match self.far(&located)? {
            Some(link) => Ok(Stage::There(Box::new(Far { located, link }))),
            None => Ok(Stage::Here(Box::new(self.scene(located, forced)?))),
        }
    }

    /// The way to the agtmux of its host, where there is one.
    pub(super) fn far(&self, located: &Located) -> Result<Option<Link>, ApiError> {
        let target = &located.key.server.target;
        if target.is_local() {
            return Ok(None);
        }
        let link = self.0.targets.link(target).ok_or_else(|| crate::targets::no_such_target(target.as_str()))?;
        Ok(Some(link).filter(Link::is_native))
    }
}

impl Far {
    /// What changes nothing is asked again if the line breaks; what may have been done is not.
    pub(super) async fn relay<T: DeserializeOwned>(
        &self,
        kind: ActionKind,
        guards: &Guards,
        ask: &(dyn Fn(Guards) -> Ask + Sync),
    ) -> Result<T, Failure> {
        let ask = ask(self.guards(kind, guards)?);
        let changes = kind.is_mutating();
        let answer = match changes {
            true => self.link.ask(ask, DONE_WITHIN).await,
            false => self.link.read(ask, READ_WITHIN).await,
        };
        let mut value = answer.map_err(|error| self.failure(error, changes))?;
        foreign::report(&mut value);
        let outcome: ActionOutcome<T> = serde_json::from_value(value).map_err(|error| {
            let why = format!("its answer cannot be read: {error}");
            self.failure(LinkError::Lost(why), changes)
        })?;
        Ok(outcome.report)
    }

    /// The same agent under the name that it has there, or the same pane while it is the same. What was seen here goes along:
    /// the host knows more by now, and nobody has answered that.
    fn guards(&self, kind: ActionKind, given: &Guards) -> Result<Guards, Failure> {
        let Located { key, generation, pane, living, .. } = &self.located;
        let place = || {
            let session = pane.placements.first()?.session_name.clone();
            let (target, server) = (TargetName::LOCAL.to_owned(), Some(key.server.server.to_string()));
            Some(Ref::Place { target, server, session, window: pane.window, pane: key.pane }.to_string())
        };
        let far = living.as_ref().map(|living| living.far.clone());
        let reference = match &far {
            Some(Some(id)) => Some(format!("runtime:{id}")),
            Some(None) => None,
            None => place(),
        };
        let unknown = || guards::stale("it is not known yet what it is called on its host".into());
        Ok(Guards {
            r#ref: reference.ok_or_else(unknown)?,
            if_runtime: far.flatten(),
            if_state: given.if_state.or_else(|| self.seen_state(kind, given)),
            if_dialog: given.if_dialog.clone().or(self.meant_dialog(kind, given)?),
            if_pane: Some(SamePane {
                server_pid: generation.pid,
                server_start: generation.start_time,
                pane_pid: pane.pid,
            }),
            force_stale: given.force_stale,
            client: Some("hub".into()),
            ..Guards::default()
        })
    }

    /// The state that somebody acts on who has looked, or who answers something that is known by its state only.
    fn seen_state(&self, kind: ActionKind, given: &Guards) -> Option<State> {
        let living = self.located.living.as_ref()?;
        let looked = given.snapshot_id.is_some();
        let known_by_state = kind == ActionKind::Respond && living.dialog.is_none();
        Some(living.record.state).filter(|_| looked || known_by_state)
    }

    /// What an answer is an answer to.
    fn meant_dialog(&self, kind: ActionKind, given: &Guards) -> Result<Option<String>, Failure> {
        let living = self.located.living.as_ref().filter(|_| kind == ActionKind::Respond);
        let Some(living) = living else { return Ok(None) };
        let dialog = living.dialog.as_ref().map(|dialog| dialog.fingerprint.clone());
        if given.force_stale || given.if_dialog.is_some() {
            return Ok(dialog);
        }
        if !matches!(living.record.state, State::WaitingApproval | State::WaitingInput) {
            let message = format!("it asks nothing: {}", living.record.state);
            return Err(Failure::precondition(message, "agtmux list panes --needs-action"));
        }
        if given.snapshot_id.is_some() && dialog.is_none() {
            let message = "it asked nothing that could be read when it was seen; nothing was typed";
            return Err(Failure::refused(guards::changed(message.into())));
        }
        Ok(dialog)
    }

    fn failure(&self, error: LinkError, changes: bool) -> Failure {
        let target = &self.located.key.server.target;
        match error {
            LinkError::NotConnected => {
                let why = self.link.status().message.unwrap_or_else(|| "it is not connected".into());
                let message = format!("nothing was done: {target} is out of reach ({why})");
                let error = ApiError::new(ErrorCode::TargetUnreachable, message);
                Failure::refused(error.with_hint(format!("agtmux target connect {target}")))
            }
            LinkError::Lost(why) if changes => {
                let message = format!("it was sent to {target}, and then {why}: whether it was done is not known");
                let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
                Failure { error: error.with_hint(self.look_first()), done_something: true }
            }
            LinkError::Lost(why) => {
                let error = ApiError::new(ErrorCode::TargetUnreachable, format!("{target} gave no answer: {why}"));
                Failure::refused(error.with_hint(format!("agtmux target doctor {target}")))
            }
            LinkError::Refused(error) => self.refused(&error, changes),
        }
    }

    /// By a name that only this one has: its pane's number is another pane here.
    fn look_first(&self) -> String {
        format!("look before you do it again: agtmux view-output {}", self.located.reference())
    }

    /// What to run next is ours to say: a host could have anything run here.
    fn refused(&self, error: &ApiError, changes: bool) -> Failure {
        let target = &self.located.key.server.target;
        // Nobody there knows how far it came.
        let unknown = changes && error.code == ErrorCode::Internal;
        let done_something = changes && (error.done_something || unknown);
        let code = if unknown { ErrorCode::OutcomeUnknown } else { error.code };
        let hint = match error.code {
            _ if done_something => self.look_first(),
            ErrorCode::CallerIsAgent => format!("set actions.allow_from_agents in the configuration of {target}"),
            ErrorCode::Internal | ErrorCode::NotStored => format!("agtmux target doctor {target}"),
            _ => format!("look again: agtmux list panes --target {target}"),
        };
        let message = format!("on {target}: {}", foreign::message(&error.message));
        Failure { error: ApiError::new(code, message).with_hint(hint), done_something }
    }
}
