//! `/v1/worktrees`: lists, makes and removes the worktrees of a repository on this machine.

mod add;
mod remove;

use std::path::{Path, PathBuf};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::config::Config;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{WorktreeAgent, WorktreeItem, WorktreeList, WorktreeQuery};
use agtmux_core::ids::TargetName;

use crate::actions::{Actions, precondition};
use crate::engine::{EngineHandle, LocatedPane};
use crate::git::{GitError, Repository, Worktree};
use crate::observe::Discovery;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Worktrees {
    actions: Actions,
    engine: EngineHandle,
    discovery: Discovery,
}

impl Worktrees {
    pub(crate) fn new(actions: Actions, engine: EngineHandle, discovery: Discovery) -> Self {
        Self { actions, engine, discovery }
    }

    fn config(&self) -> &Config {
        self.discovery.config()
    }

    pub(crate) async fn list(&self, query: &WorktreeQuery) -> ApiResult<WorktreeList> {
        let repository = repository_of(&query.dir).await?;
        let worktrees = repository.worktrees().await.map_err(git_failed)?;
        let panes = self.engine.local_panes().await;
        let main = worktrees.first().cloned().unwrap_or_default();
        let mut items = Vec::new();
        for worktree in &worktrees {
            let facts = match worktree.is_bare || !worktree.path.is_dir() {
                true => None,
                false => repository.facts(worktree, &main).await.ok(),
            };
            items.push(WorktreeItem {
                path: worktree.path.display().to_string(),
                branch: worktree.branch.clone(),
                head: worktree.head.clone(),
                main: worktree.is_main,
                locked: worktree.is_locked,
                dirty: facts.map(|facts| facts.dirty),
                ahead: facts.map(|facts| facts.ahead),
                behind: facts.map(|facts| facts.behind),
                merged: facts.map(|facts| facts.merged),
                agents: panes.iter().filter_map(|pane| agent_in(pane, &worktree.path, &worktrees)).collect(),
            });
        }
        Ok(WorktreeList { schema_version: SCHEMA_VERSION, items })
    }
}

/// The agent in this pane, if the innermost worktree that contains its directory is `path`.
fn agent_in(pane: &LocatedPane, path: &Path, worktrees: &[Worktree]) -> Option<WorktreeAgent> {
    let agent = pane.agent.as_ref().filter(|agent| !agent.runtime.agent_type.is_task())?;
    let cwd = directory_of(pane)?;
    let inside = worktrees.iter().filter(|worktree| cwd.starts_with(&worktree.path));
    let innermost = inside.max_by_key(|worktree| worktree.path.components().count())?;
    (innermost.path == path).then(|| WorktreeAgent {
        runtime_id: agent.runtime.id.to_string(),
        agent_type: agent.runtime.agent_type.to_string(),
        name: agent.runtime.name.clone(),
        pane_id: pane.key.pane.to_string(),
        state: agent.record.state,
    })
}

/// The directory of the program in this pane.
fn directory_of(pane: &LocatedPane) -> Option<PathBuf> {
    pane.pane.foreground.as_ref()?.cwd.as_ref().map(PathBuf::from)
}

/// The repository of a directory.
async fn repository_of(dir: &str) -> ApiResult<Repository> {
    let bad = |why: &str| {
        let message = format!("'{}' {why}", dir.escape_debug());
        ApiError::new(ErrorCode::BadRequest, message).with_hint("name a directory of a git repository")
    };
    if !dir.starts_with('/') || !Path::new(dir).is_dir() {
        return Err(bad("is not an absolute path of a directory"));
    }
    let found = Repository::find(Path::new(dir)).await.map_err(git_failed)?;
    found.ok_or_else(|| bad("is in no git repository"))
}

fn git_failed(error: GitError) -> ApiError {
    let hint = match error {
        GitError::NotInstalled => "install git",
        _ => "agtmux daemon logs",
    };
    precondition(error.to_string(), hint)
}

/// The worktree with this branch or path.
fn find_worktree<'w>(worktrees: &'w [Worktree], named: &str) -> ApiResult<&'w Worktree> {
    let is_named = |worktree: &&Worktree| {
        worktree.branch.as_deref() == Some(named) || worktree.path == Path::new(named.trim_end_matches('/'))
    };
    worktrees.iter().find(is_named).ok_or_else(|| {
        let shown: String = named.chars().take(200).collect();
        let message = format!("no worktree has the branch or the path '{}'", shown.escape_debug());
        ApiError::new(ErrorCode::NotFound, message).with_hint("agtmux worktree list")
    })
}

fn is_local(pane: &LocatedPane) -> bool {
    pane.key.server.target == TargetName::local()
}
