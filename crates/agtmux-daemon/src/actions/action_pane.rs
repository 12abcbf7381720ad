//! The pane that an action runs in, and the checks directly before typing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_tmux::platform::{PaneProcesses, ProcessInfo};
use agtmux_tmux::{PaneGuard, PaneInput, TmuxServer, TypeError, TypeRefusal};

use super::pane_screen::PaneScreen;
use super::resume::shell;
use super::{Actions, guards, precondition, type_error};
use crate::engine::{LocatedAgent, LocatedPane};
use crate::observe;
use crate::remote::{HostProcesses, ProcessesUnavailable, ServerAccess};

/// How long a read-only action waits for a host to reconnect after its connection broke.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an action waits for the engine to notice a change that the screen already shows.
const ENGINE_TIMEOUT: Duration = Duration::from_millis(1500);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A pane that this daemon types into. The pane is on this host or on an agentless host. tmux types only if `guard`
/// still matches the pane.
#[derive(Clone)]
pub(super) struct ActionPane<'a> {
    pub(super) actions: &'a Actions,
    pub(super) located: LocatedPane,
    pub(super) tmux: TmuxServer,
    pub(super) processes: HostProcesses,
    pub(super) guard: PaneGuard,
    pub(super) forced: bool,
    /// If true, agtmux types only while a shell in the pane waits for a command.
    pub(super) shell_only: bool,
    /// Whether this action has made the pane leave copy mode.
    pub(super) left_mode: Arc<AtomicBool>,
}

impl ActionPane<'_> {
    /// The agent in the pane. Fails if the pane has no agent.
    pub(super) fn agent(&self) -> ApiResult<&LocatedAgent> {
        self.located.agent.as_ref().ok_or_else(|| {
            let pane = self.located.key.pane;
            precondition(format!("no agent runs in {pane}"), "agtmux list panes")
        })
    }

    /// The processes in the pane. `None` if the first process of the pane is gone.
    pub(super) async fn process_tree(&self) -> ApiResult<Option<PaneProcesses>> {
        self.processes.try_tree(self.guard.pane_pid).await.map_err(|error| self.processes_unavailable(&error))
    }

    /// The error if the processes of the host cannot be listed.
    pub(super) fn processes_unavailable(&self, why: &ProcessesUnavailable) -> ApiError {
        let target = &self.located.key.server.target;
        let error = ApiError::new(ErrorCode::TargetUnreachable, format!("nothing was done on {target}: {why}"));
        error.with_hint(format!("agtmux target doctor {target}"))
    }

    /// Checks that the agent that was located before still runs in the foreground of the pane. If no agent was located,
    /// checks that no agent has been started in the pane since.
    ///
    /// After an agent has ended, its output is still on the screen, but the shell in the pane reads the input. That
    /// shell would run a prompt as a command.
    pub(super) async fn check_same_agent(&self) -> ApiResult<()> {
        let tree = self.process_tree().await?;
        if self.shell_only {
            let refused = |why: String| {
                let message = format!("nothing was typed: the shell no longer waits for a command: {why}");
                guards::state_changed(message)
            };
            self.waiting_shell(tree.as_ref()).map_err(refused)?;
        }
        let agent = self.located.agent.as_ref().filter(|located_agent| !located_agent.runtime.agent_type.is_task());
        let known = agent.map(|agent| (agent.runtime.agent_type.clone(), agent.runtime.process));
        let now = tree.and_then(|tree| observe::agent_in_tree(&self.actions.0.discovery.registry(), &tree, known));
        let Some(located_agent) = agent else {
            // Text for a shell must not go to an agent that has been started in the pane meanwhile.
            return match now.filter(|now| !now.suspended) {
                None => Ok(()),
                Some(_) => Err(guards::runtime_stale("nothing was typed: an agent was started in the pane".into())),
            };
        };
        if now.is_some_and(|now| now.process == located_agent.runtime.process && !now.suspended) {
            return Ok(());
        }
        let message = "nothing was typed: the agent has ended, or another program runs in the foreground of the pane";
        Err(guards::runtime_stale(message.into()))
    }

    /// Returns the shell that waits for a command in the pane, or the reason why no shell waits for a command there.
    pub(super) fn waiting_shell<'t>(&self, tree: Option<&'t PaneProcesses>) -> Result<&'t ProcessInfo, String> {
        let tree = tree.ok_or_else(|| "the pane's program is gone".to_owned())?;
        shell::shell_at_prompt(tree, self.processes.max_line_bytes(&self.located.pane.tty).is_some())
    }

    /// Types after checking that the pane and its agent are unchanged.
    pub(super) async fn type_checked(&self, typing: PaneInput<'_>) -> ApiResult<()> {
        self.check_same_agent().await?;
        self.type_guarded(typing).await
    }

    /// Types if `allows` accepts the current screen.
    ///
    /// Checks the agent before it captures the screen. The check may take long, and a person may type meanwhile, so an
    /// earlier capture could be out of date.
    pub(super) async fn type_if(
        &self,
        typing: PaneInput<'_>,
        allows: impl FnOnce(&PaneScreen) -> ApiResult<()>,
    ) -> ApiResult<()> {
        self.type_if_screen(typing, |capture| allows(&capture)).await
    }

    /// Like [`type_if`](Self::type_if), but passes the screen to `allows` by value, for callers that keep the screen.
    pub(super) async fn type_if_screen(
        &self,
        typing: PaneInput<'_>,
        allows: impl FnOnce(PaneScreen) -> ApiResult<()>,
    ) -> ApiResult<()> {
        self.check_same_agent().await?;
        allows(self.capture().await?)?;
        self.type_guarded(typing).await
    }

    async fn type_guarded(&self, typing: PaneInput<'_>) -> ApiResult<()> {
        match self.tmux.type_into(self.guard, typing).await {
            // Copy mode would receive the keys. Leave it first if the configuration allows that.
            Err(TypeError::Refused(TypeRefusal::InMode)) if self.actions.config().tmux_bridge.leave_copy_mode => {
                let left = self.tmux.type_into(self.guard, PaneInput::LeaveMode).await;
                left.map_err(|error| ApiError { done_something: false, ..type_error(error) })?;
                self.left_mode.store(true, Ordering::Relaxed);
                self.tmux.type_into(self.guard, typing).await
            }
            done => done,
        }
        .map_err(type_error)
    }

    /// The agent as the engine knows it now. `None` if the agent is gone.
    pub(super) async fn agent_now(&self) -> Option<LocatedAgent> {
        let runtime = self.located.agent.as_ref().map(|agent| agent.runtime.id.clone())?;
        self.actions.0.engine.locate(PaneRef::Runtime(runtime)).await.ok()?.agent
    }

    /// Waits until `wanted` accepts the agent as the engine knows it, and returns the agent. Returns `None` on timeout
    /// or if the agent is gone.
    ///
    /// Actions call this before they return, so that clients already see the effect of the action.
    pub(super) async fn wait_for_engine(&self, wanted: impl Fn(&LocatedAgent) -> bool) -> Option<LocatedAgent> {
        let deadline = Instant::now() + ENGINE_TIMEOUT;
        while Instant::now() < deadline {
            let agent = self.agent_now().await?;
            if wanted(&agent) {
                return Some(agent);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        None
    }

    /// Waits until the host has reconnected, and returns its tmux server. Only for read-only actions.
    pub(super) async fn reconnected_tmux(&self) -> Option<TmuxServer> {
        let deadline = Instant::now() + RECONNECT_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(reach) = self.actions.0.discovery.server_access(&self.located.key.server) {
                return Some(reach.tmux);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        None
    }

    /// Whether this action has made the pane leave copy mode.
    pub(super) fn has_left_mode(&self) -> bool {
        self.left_mode.load(Ordering::Relaxed)
    }

    pub(super) fn state(&self) -> Option<State> {
        self.located.agent.as_ref().map(|agent| agent.record.state)
    }
}

impl Actions {
    pub(super) fn action_pane(&self, located: LocatedPane, forced: bool) -> ApiResult<ActionPane<'_>> {
        let Some(ServerAccess { tmux, processes }) = self.0.discovery.server_access(&located.key.server) else {
            return Err(match located.key.server.target.is_local() {
                true => guards::runtime_stale("the tmux server is gone".into()),
                false => guards::target_unreachable(&located.key.server.target),
            });
        };
        let guard = PaneGuard {
            server_pid: located.generation.pid,
            server_start: located.generation.start_time,
            pane: located.key.pane.0,
            pane_pid: located.pane.pid,
        };
        Ok(ActionPane {
            actions: self,
            located,
            tmux,
            processes,
            guard,
            forced,
            shell_only: false,
            left_mode: Arc::default(),
        })
    }
}
