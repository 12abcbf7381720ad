use std::path::Path;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult};
use agtmux_api::wire::{WorktreeRemoveRequest, WorktreeRemoved};

use super::{Worktrees, directory_of, find_worktree, git_failed, is_local, repository_of};
use crate::actions::{RequestCaller, precondition};
use crate::engine::LocatedPane;
use crate::git::{RemovalRefusal, check_removal, remove_worktree};

impl Worktrees {
    pub(crate) async fn remove(
        &self,
        request: &WorktreeRemoveRequest,
        caller: &RequestCaller,
    ) -> ApiResult<WorktreeRemoved> {
        let change = self.take_away(request);
        self.actions.audited_worktree_change("remove a worktree", &request.worktree, caller, change).await
    }

    async fn take_away(&self, request: &WorktreeRemoveRequest) -> ApiResult<WorktreeRemoved> {
        let repository = repository_of(&request.dir).await?;
        let worktrees = repository.worktrees().await.map_err(git_failed)?;
        let worktree = find_worktree(&worktrees, &request.worktree)?;
        check_removal(worktree, request.force).await.map_err(refused)?;
        let panes = self.engine.local_panes().await;
        refuse_agents(&panes, &worktree.path)?;
        let shells = self.actions.idle_agent_shells(panes, &worktree.path).await;
        let removed = remove_worktree(&repository, worktree, request.force).await.map_err(refused)?;
        let mut closed_panes = Vec::new();
        for shell in shells {
            if self.actions.close_pane(&shell).await {
                closed_panes.push(shell.key.pane.to_string());
            }
        }
        Ok(WorktreeRemoved {
            schema_version: SCHEMA_VERSION,
            path: removed.path.display().to_string(),
            branch: removed.branch,
            branch_deleted: removed.branch_deleted,
            closed_panes,
        })
    }
}

fn refuse_agents(panes: &[LocatedPane], path: &Path) -> ApiResult<()> {
    let works_there = |pane: &&LocatedPane| {
        let is_inside = directory_of(pane).is_some_and(|dir| dir.starts_with(path));
        is_local(pane) && pane.agent.is_some() && is_inside
    };
    let Some(pane) = panes.iter().find(works_there) else { return Ok(()) };
    let agent = pane.agent.as_ref().map(|agent| agent.runtime.agent_type.to_string()).unwrap_or_default();
    let message = format!("{agent} in {} works in this worktree", pane.key.pane);
    Err(precondition(message, format!("agtmux kill --signal TERM {}", pane.reference())))
}

fn refused(error: RemovalRefusal) -> ApiError {
    let hint = match &error {
        RemovalRefusal::Unsaved(_) => "commit and merge or push the work, or remove the worktree with --force",
        RemovalRefusal::Main => "agtmux worktree list",
        RemovalRefusal::Locked => "git worktree unlock PATH",
        RemovalRefusal::Git(_) => "agtmux daemon logs",
    };
    precondition(error.to_string(), hint)
}
