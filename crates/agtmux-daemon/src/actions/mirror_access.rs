//! Decides who may use a shared terminal, and records each use in the audit log.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::ActionKind;
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{PaneId, ServerKey, SessionId};
use tokio::sync::OwnedMutexGuard;

use super::ancestry::ancestors;
use super::origin::{CallerOrigin, ContainingPane};
use super::perform::lock_name;
use super::{Actions, RequestCaller};

/// The location of a shared terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirrorPlace {
    pub(crate) server: ServerKey,
    pub(crate) session: SessionId,
    /// The pane that the terminal was made for.
    pub(crate) for_pane: Option<PaneId>,
}

/// The audit entry of an action on a shared terminal.
pub(crate) struct MirrorActionEntry<'a> {
    pub(crate) caller: &'a RequestCaller,
    pub(crate) summary: &'static str,
    pub(crate) pane: &'a str,
    /// The command. The audit log stores it under the same rules as typed text.
    pub(crate) text: Option<&'a str>,
}

impl Actions {
    pub(crate) async fn audited_mirror<T>(
        &self,
        entry: MirrorActionEntry<'_>,
        action: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let MirrorActionEntry { caller, summary, pane, text } = entry;
        self.recorded(ActionKind::Mirror, pane.to_owned(), caller, summary, text, action).await
    }

    /// Checks that the caller may use the terminal. Returns the agent behind the caller, or `None` if the caller is a
    /// person. An agent may use only the terminal that was made for its own pane or session.
    pub(crate) async fn mirror_user(
        &self,
        caller: &RequestCaller,
        place: &MirrorPlace,
        what: &str,
    ) -> ApiResult<Option<String>> {
        let agent = match self.caller_origin(caller).await {
            CallerOrigin::NotAgent => return Ok(None),
            CallerOrigin::Agent(agent) => agent,
            CallerOrigin::Unknown(why) => {
                let message = format!("the caller could be an agent, and agents may not {what}: {why}");
                return Err(ApiError::new(ErrorCode::CallerIsAgent, message).with_hint(why.hint()));
            }
        };
        let is_own = match self.pane_of_caller(caller).await {
            Some(pane) => place.is_of(&pane),
            None => false,
        };
        if is_own || self.config().actions.allow_from_agents.all() {
            return Ok(Some(agent));
        }
        let message =
            format!("the caller is {agent}, and agents may not {what}: the terminal is for another pane and session");
        Err(ApiError::new(ErrorCode::CallerIsAgent, message)
            .with_hint("agtmux mirror start   (in the agent's pane: starts a shared terminal for that agent)"))
    }

    /// The pane in which the caller runs.
    async fn pane_of_caller(&self, caller: &RequestCaller) -> Option<ContainingPane> {
        let processes = self.0.discovery.processes();
        let ancestry = ancestors(&*processes, caller.peer?.pid?);
        self.0.engine.local_agents(ancestry.iter().map(|process| process.pid).collect()).await.pane
    }

    /// Waits until no other action types into the pane, and keeps other actions out until the guard is dropped.
    pub(crate) async fn lock_pane(&self, server: ServerKey, pane: PaneId) -> OwnedMutexGuard<()> {
        self.0.pane_locks.take(lock_name(&PaneKey { server, pane })).await
    }
}

impl MirrorPlace {
    fn is_of(&self, pane: &ContainingPane) -> bool {
        let is_own_pane = self.for_pane == Some(pane.key.pane);
        pane.key.server == self.server && (is_own_pane || pane.sessions.contains(&self.session))
    }
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{ServerName, TargetName};

    use super::*;

    #[test]
    fn a_terminal_belongs_to_its_pane_and_its_session_on_one_server() {
        let server = |name: &str| ServerKey { target: TargetName::local(), server: ServerName::new(name) };
        let place = MirrorPlace { server: server("a"), session: SessionId(1), for_pane: Some(PaneId(3)) };
        let pane = |name: &str, pane: u32, session: u32| ContainingPane {
            key: PaneKey { server: server(name), pane: PaneId(pane) },
            sessions: vec![SessionId(session)],
        };
        assert!(place.is_of(&pane("a", 3, 9)), "its pane, moved to another session");
        assert!(place.is_of(&pane("a", 4, 1)), "another pane of its session");
        assert!(!place.is_of(&pane("a", 4, 9)));
        assert!(!place.is_of(&pane("b", 3, 1)), "another server");
    }
}
