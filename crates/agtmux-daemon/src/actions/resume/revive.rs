//! Starts an ended agent again in a new pane, because its old pane is gone.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{
    ActionGuards, ActionOutcome, EndedAgentItem, EndedAgentList, EndedAgentQuery, NewAction, NewPlace, ResumeAction,
    ResumeReport,
};
use agtmux_core::ids::ServerName;
use agtmux_core::runtime::RuntimeId;
use agtmux_tmux::default_socket;
use jiff::{SignedDuration, Timestamp};

use super::super::perform::{ActionRequest, outcome};
use super::super::{Actions, RequestCaller, precondition, snapshots};
use super::{launched_like, resume_command};
use crate::store::StoreChange;
use crate::store::ended_agents::{self, EndedAgent};
use crate::store::past_runtimes::PastRuntime;

/// The socket of a local server. Its name is a path, or a file name in the user's tmux directory.
fn socket_of(server: &ServerName) -> String {
    let default = default_socket(std::env::var_os("TMUX_TMPDIR").as_deref());
    default.with_file_name(server.as_str()).display().to_string()
}

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

impl Actions {
    /// The agents of this machine that have ended.
    pub(crate) async fn ended_agents(&self, query: &EndedAgentQuery) -> ApiResult<EndedAgentList> {
        let most = query.limit.unwrap_or(DEFAULT_LIMIT);
        if most > MAX_LIMIT {
            let error = ApiError::new(ErrorCode::BadRequest, format!("the limit must be at most {MAX_LIMIT}"));
            return Err(error.with_hint("ask for fewer agents"));
        }
        let since = query.since.unwrap_or(Timestamp::MIN);
        let found = self.0.store.read(move |connection| ended_agents::since(connection, since, most)).await?;
        let items = found.into_iter().map(|agent| self.ended_item(agent)).collect();
        Ok(EndedAgentList { schema_version: SCHEMA_VERSION, items })
    }

    fn ended_item(&self, agent: EndedAgent) -> EndedAgentItem {
        let command = resume_command(self, &agent.agent_type, agent.session.as_ref());
        let EndedAgent { runtime_id, agent_type, name, session, cwd, started_at, ended_at, launch, .. } = agent;
        EndedAgentItem {
            runtime_id,
            agent_type,
            name,
            session,
            cwd,
            started_at,
            ended_at,
            session_name: agent.session_name,
            window_name: agent.window_name,
            arguments: launch.arguments,
            ended_with_server: agent.ended_with_server,
            not_resumable: command.err().map(|error| error.message),
        }
    }

    /// Starts the agent in a new window of its old session, which is created if it does not exist.
    pub(super) async fn revive(
        &self,
        action: ResumeAction,
        past: PastRuntime,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<ResumeReport>> {
        let guards = ActionGuards { r#ref: action.guards.r#ref.clone(), ..action.guards.clone() };
        let request = ActionRequest {
            summary: Some(format!("runtime:{}", past.runtime_id)),
            ..ActionRequest::new(HubRequest::Resume(action), &guards, caller.clone())
        };
        self.perform_without_pane(request, async |action_id| {
            self.refuse_agents_unless_allowed(&caller, "resume").await?;
            // Two requests for the same agent at the same time start it once.
            let _turn = self.0.request_locks.take(format!("revive {}", past.runtime_id)).await;
            self.start_again(&past, action_id).await
        })
        .await
    }

    async fn start_again(&self, past: &PastRuntime, action_id: String) -> ApiResult<ActionOutcome<ResumeReport>> {
        let begun = tokio::time::Instant::now();
        let id = past.runtime_id.clone();
        let ended = self.0.store.read(move |connection| ended_agents::by_id(connection, &id)).await?;
        let ended = ended.ok_or_else(|| {
            let message = format!("the session of runtime:{} runs already, or was started again", past.runtime_id);
            precondition(message, "agtmux list panes")
        })?;
        let (session, command) = resume_command(self, &past.agent_type, past.session.as_ref())?;
        let place = match &ended.session_name {
            Some(name) if !name.is_empty() => NewPlace::Session(name.replace([':', '.', '#'], "-")),
            _ => NewPlace::Project,
        };
        let new = NewAction {
            agent: past.agent_type.clone(),
            cwd: past.cwd.clone().unwrap_or_default(),
            name: past.name.clone().filter(|_| !past.launch.wrapped),
            place,
            socket: Some(socket_of(&ended.server)),
            ..NewAction::default()
        };
        let command = launched_like(past, command);
        let started = self.launch_command(&new, command.clone(), ended.window_name.as_deref()).await?;
        let runtime = started.agent.runtime.id.clone();
        self.note_resumed(&past.runtime_id, &runtime).await;
        let snapshot = snapshots::take_snapshot(&started.located, self.0.clock.now(), SignedDuration::ZERO);
        let report = ResumeReport { command, session, resumed_runtime_id: Some(runtime.to_string()) };
        Ok(outcome(action_id, &snapshot, begun.elapsed(), report))
    }

    /// Notes that the agent was started again, so that it is not started twice.
    pub(super) async fn note_resumed(&self, old: &str, new: &RuntimeId) {
        let change = StoreChange::NoteResumed { old: RuntimeId::from_stored(old.to_owned()), new: new.clone() };
        if let Err(error) = self.0.store.commit(vec![change]).await {
            tracing::error!(%error, runtime = old, "cannot store that an agent was started again");
        }
    }
}
