//! The pane in which something is done, and the last looks before anything is typed into it.

use std::time::{Duration, Instant};

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_tmux::platform::{PaneProcesses, ProcessInfo};
use agtmux_tmux::{PaneGuard, PaneInput, TmuxServer, TypeError, TypeRefusal};

use super::pane_screen::PaneScreen;
use super::resume::shell;
use super::{ActionFailure, Actions, guards};
use crate::engine::{LocatedAgent, LocatedPane};
use crate::observe::{self, HostProcesses, ProcessesUnavailable, ServerAccess};

/// A host whose line broke is waited for so long by those who only look.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the engine takes at the most to hear of what is on the screen.
const ENGINE_TIMEOUT: Duration = Duration::from_millis(1500);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Where an action is done. Whatever is typed goes through its guard.
pub(super) struct ActionPane<'a> {
    pub(super) actions: &'a Actions,
    pub(super) located: LocatedPane,
    pub(super) tmux: TmuxServer,
    pub(super) processes: HostProcesses,
    pub(super) guard: PaneGuard,
    pub(super) forced: bool,
    /// Nothing is typed unless a shell waits for a command there.
    pub(super) shell_only: bool,
}

impl ActionPane<'_> {
    /// The agent there, or a refusal.
    pub(super) fn agent(&self) -> Result<&LocatedAgent, ActionFailure> {
        self.located.agent.as_ref().ok_or_else(|| {
            let pane = self.located.key.pane;
            ActionFailure::precondition(format!("no agent lives in {pane}"), "agtmux list panes")
        })
    }

    /// Refused, because nobody tells what runs there.
    pub(super) fn processes_unavailable(&self, why: &ProcessesUnavailable) -> ActionFailure {
        let target = &self.located.key.server.target;
        let error = ApiError::new(ErrorCode::TargetUnreachable, format!("nothing was done on {target}: {why}"));
        ActionFailure::refused(error.with_hint(format!("agtmux target doctor {target}")))
    }

    /// Refused unless whoever lived there when it was looked at has the terminal still: an agent that ends leaves its screen
    /// behind, and what is meant for it would be a command to its shell.
    pub(super) async fn check_same_agent(&self) -> Result<(), ActionFailure> {
        let tree =
            self.processes.try_tree(self.guard.pane_pid).await.map_err(|untold| self.processes_unavailable(&untold))?;
        if self.shell_only {
            let refused = |why: String| {
                let message = format!("nothing was typed: no shell waits for a command there any more: {why}");
                ActionFailure::refused(guards::state_changed(message))
            };
            self.waiting_shell(tree.as_ref()).map_err(refused)?;
        }
        let now = tree.and_then(|tree| observe::agent_in_tree(&self.actions.0.discovery.registry(), &tree));
        let agent = self.located.agent.as_ref().filter(|living| !living.runtime.agent_type.is_task());
        let Some(living) = agent else {
            // What was meant for a shell is not for an agent that has been started in it since.
            return match now.filter(|now| !now.suspended) {
                None => Ok(()),
                Some(_) => Err(ActionFailure::refused(guards::runtime_stale(
                    "nothing was typed: an agent was started there".into(),
                ))),
            };
        };
        if now.is_some_and(|now| now.process == living.runtime.process && !now.suspended) {
            return Ok(());
        }
        let message = "nothing was typed: the agent has ended, or something else has its terminal";
        Err(ActionFailure::refused(guards::runtime_stale(message.into())))
    }

    /// The shell that waits for a command, or what has the terminal instead.
    pub(super) fn waiting_shell<'t>(&self, tree: Option<&'t PaneProcesses>) -> Result<&'t ProcessInfo, String> {
        let tree = tree.ok_or_else(|| "its program is gone".to_owned())?;
        shell::shell_at_prompt(tree, self.processes.max_line_bytes(&self.located.pane.tty).is_some())
    }

    /// The same once more.
    pub(super) fn duplicate(&self) -> Self {
        let Self { actions, located, tmux, processes, guard, forced, shell_only } = self;
        Self {
            actions,
            located: located.clone(),
            tmux: tmux.clone(),
            processes: processes.clone(),
            guard: *guard,
            forced: *forced,
            shell_only: *shell_only,
        }
    }

    /// Types, if the pane is the one that is meant, and so is whoever lives there.
    pub(super) async fn type_checked(&self, typing: PaneInput<'_>) -> Result<(), ActionFailure> {
        self.check_same_agent().await?;
        self.type_guarded(typing).await
    }

    /// The same, if a look allows it. The look is the last thing before: to find out who lives there may take long, and
    /// somebody at the pane may do something meanwhile.
    pub(super) async fn type_if(
        &self,
        typing: PaneInput<'_>,
        allows: impl FnOnce(&PaneScreen) -> Result<(), ActionFailure>,
    ) -> Result<(), ActionFailure> {
        self.check_same_agent().await?;
        allows(&self.capture().await?)?;
        self.type_guarded(typing).await
    }

    async fn type_guarded(&self, typing: PaneInput<'_>) -> Result<(), ActionFailure> {
        match self.tmux.type_into(self.guard, typing).await {
            // Copy mode would take what is typed: it is left first, where that is allowed.
            Err(TypeError::Refused(TypeRefusal::InMode)) if self.actions.config().tmux_bridge.leave_copy_mode => {
                let left = self.tmux.type_into(self.guard, PaneInput::LeaveMode).await;
                left.map_err(|error| ActionFailure::refused(ActionFailure::from(error).error))?;
                Ok(self.tmux.type_into(self.guard, typing).await?)
            }
            done => Ok(done?),
        }
    }

    /// The fingerprint of the dialog that the engine knows of, as soon as it and the state are as wanted. Whoever is told of what was
    /// done goes on from what everybody knows.
    pub(super) async fn wait_for_engine(
        &self,
        wanted: impl Fn(State, Option<&String>) -> bool,
    ) -> Option<Option<String>> {
        let runtime = self.located.agent.as_ref().map(|living| living.runtime.id.clone())?;
        let deadline = Instant::now() + ENGINE_TIMEOUT;
        while Instant::now() < deadline {
            let living = self.actions.0.engine.locate(PaneRef::Runtime(runtime.clone())).await.ok()?.agent?;
            let dialog = living.dialog.map(|dialog| dialog.fingerprint);
            if wanted(living.record.state, dialog.as_ref()) {
                return Some(dialog);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        None
    }

    /// The way there, once its host is back after the line broke. Only for what changes nothing.
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

    pub(super) fn state(&self) -> Option<State> {
        self.located.agent.as_ref().map(|living| living.record.state)
    }
}

impl Actions {
    pub(super) fn action_pane(&self, located: LocatedPane, forced: bool) -> Result<ActionPane<'_>, ApiError> {
        let Some(ServerAccess { tmux, processes }) = self.0.discovery.server_access(&located.key.server) else {
            return Err(match located.key.server.target.is_local() {
                true => guards::runtime_stale("its tmux server is not there".into()),
                false => guards::target_unreachable(&located.key.server.target),
            });
        };
        let guard = PaneGuard {
            server_pid: located.generation.pid,
            server_start: located.generation.start_time,
            pane: located.key.pane.0,
            pane_pid: located.pane.pid,
        };
        Ok(ActionPane { actions: self, located, tmux, processes, guard, forced, shell_only: false })
    }
}
