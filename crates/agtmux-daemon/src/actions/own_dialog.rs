//! The rules for actions that agents request: which kinds the settings allow, and that no agent answers its own dialog.

use agtmux_api::config::AgentAction;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::ActionKind;

use super::ancestry::{agent_among, ancestors};
use super::origin::CallerOrigin;
use super::{Actions, RequestCaller};
use crate::engine::LocatedPane;

impl Actions {
    /// Refuses callers that are agents, unless the settings allow agents this kind of action.
    pub(super) async fn refuse_agents_by_kind(&self, caller: &RequestCaller, kind: ActionKind) -> ApiResult<()> {
        let action = match kind {
            ActionKind::Send => AgentAction::Send,
            ActionKind::Respond => AgentAction::Respond,
            ActionKind::Kill => AgentAction::Kill,
            ActionKind::Resume => AgentAction::Resume,
            _ => return self.refuse_agents_unless_allowed(caller, kind.as_str()).await,
        };
        self.refuse_agents_unless_listed(caller, action, kind.as_str()).await
    }

    /// Refuses an answer to the dialog of the agent that requests it, whatever the settings allow. Keys count as an
    /// answer while a dialog is open.
    pub(super) async fn refuse_own_dialog(
        &self,
        caller: &RequestCaller,
        kind: ActionKind,
        located: &LocatedPane,
    ) -> ApiResult<()> {
        let Some(agent) = &located.agent else { return Ok(()) };
        let may_answer = match kind {
            ActionKind::Respond => true,
            ActionKind::Send => agent.dialog.is_some(),
            _ => false,
        };
        if !may_answer || !self.is_agent_behind(caller, located).await {
            return Ok(());
        }
        let error = ApiError::new(ErrorCode::CallerIsAgent, "an agent cannot answer its own dialog");
        Err(error.with_hint("ask the user to answer it in the pane, or with `agtmux respond`"))
    }

    /// Whether the agent in this pane is, or started, the caller. If agtmux knows only the type of the agent behind the
    /// caller, every agent of that type counts.
    async fn is_agent_behind(&self, caller: &RequestCaller, located: &LocatedPane) -> bool {
        let (Some(agent), Some(pid)) = (&located.agent, caller.peer.and_then(|peer| peer.pid)) else { return false };
        let process = agent.runtime.process;
        if self.descends_from(caller, (process.pid, process.start)) {
            return true;
        }
        let processes = self.0.discovery.processes();
        if agent_among(&self.0.discovery.registry(), &ancestors(&*processes, pid)).is_some() {
            return false;
        }
        match self.caller_origin(caller).await {
            CallerOrigin::Agent(agent_type) => agent.runtime.agent_type.as_str() == agent_type,
            CallerOrigin::NotAgent | CallerOrigin::Unknown(_) => false,
        }
    }
}
