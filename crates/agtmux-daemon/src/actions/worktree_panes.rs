//! The panes of agents that have ended in a worktree, and the audit entries of changes of worktrees.

use std::path::Path;

use agtmux_api::error::ApiResult;
use agtmux_api::wire::ActionKind;

use super::perform::lock_name;
use super::{Actions, ChangeEntry, RequestCaller};
use crate::engine::LocatedPane;
use crate::store::past_runtimes;

impl Actions {
    pub(crate) async fn audited_worktree_change<T>(
        &self,
        summary: &str,
        name: &str,
        caller: &RequestCaller,
        change: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let entry = ChangeEntry { kind: ActionKind::Worktree, caller, summary, name };
        self.audited_change_unless_agent(entry, change).await
    }

    /// Like [`Self::audited_worktree_change`], but also allows agents that may start other agents.
    pub(crate) async fn audited_worktree_of_new_agent<T>(
        &self,
        name: &str,
        caller: &RequestCaller,
        change: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let entry = ChangeEntry { kind: ActionKind::Worktree, caller, summary: "make a worktree", name };
        let allowed = async {
            self.refuse_agents_that_start(caller).await?;
            change.await
        };
        self.audited_change(entry, allowed).await
    }

    /// The panes whose shell waits for a command in this directory, and in which an agent has run before.
    pub(crate) async fn idle_agent_shells(&self, panes: Vec<LocatedPane>, dir: &Path) -> Vec<LocatedPane> {
        let mut shells = Vec::new();
        for pane in panes.into_iter().filter(|pane| pane.agent.is_none() && pane.key.server.target.is_local()) {
            if self.is_idle_agent_shell(&pane, dir).await {
                shells.push(pane);
            }
        }
        shells
    }

    async fn is_idle_agent_shell(&self, located: &LocatedPane, dir: &Path) -> bool {
        let (key, generation) = (located.key.clone(), located.generation);
        let last = move |connection: &_| past_runtimes::last_in(connection, &key.server, generation, key.pane);
        if !matches!(self.0.store.read(last).await, Ok(Some(_))) {
            return false;
        }
        let Ok(pane) = self.action_pane(located.clone(), false) else { return false };
        let Ok(tree) = pane.process_tree().await else { return false };
        let shell = pane.waiting_shell(tree.as_ref()).map(|shell| shell.pid);
        shell.is_ok_and(|pid| pane.processes.cwd(pid).is_some_and(|cwd| cwd.starts_with(dir)))
    }

    /// Closes a pane if its shell still waits for a command. Returns whether the pane was closed.
    pub(crate) async fn close_pane(&self, located: &LocatedPane) -> bool {
        let _lock = self.0.pane_locks.take(lock_name(&located.key)).await;
        let Ok(pane) = self.action_pane(located.clone(), false) else { return false };
        let Ok(tree) = pane.process_tree().await else { return false };
        let server = (pane.guard.server_pid, pane.guard.server_start);
        pane.waiting_shell(tree.as_ref()).is_ok() && pane.tmux.kill_pane(server, pane.guard.pane).await.is_ok()
    }
}
