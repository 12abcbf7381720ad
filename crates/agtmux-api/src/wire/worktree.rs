use agtmux_core::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects a repository of this machine.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorktreeQuery {
    /// A directory in the repository: an absolute path.
    pub dir: String,
}

/// The worktrees of a repository, the main one first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WorktreeList {
    pub schema_version: u32,
    pub items: Vec<WorktreeItem>,
}

/// One worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WorktreeItem {
    pub path: String,
    /// The branch; null if no branch is checked out.
    pub branch: Option<String>,
    /// The commit; null if the branch has no commit, and in a bare repository.
    pub head: Option<String>,
    /// Whether this is the main worktree, which cannot be removed.
    pub main: bool,
    pub locked: bool,
    /// The number of changed and untracked files, without ignored files. Null if git could not read the worktree.
    pub dirty: Option<u32>,
    /// The number of commits that the main worktree does not have.
    pub ahead: Option<u32>,
    /// The number of commits that only the main worktree has.
    pub behind: Option<u32>,
    /// Whether another branch, a tag or a remote branch contains all commits.
    pub merged: Option<bool>,
    /// The agents whose directory is in this worktree.
    pub agents: Vec<WorktreeAgent>,
}

/// An agent that works in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WorktreeAgent {
    pub runtime_id: String,
    pub agent_type: String,
    pub name: Option<String>,
    pub pane_id: String,
    pub state: State,
}

/// Makes a worktree beside the repository.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorktreeAddRequest {
    /// A directory in the repository: an absolute path.
    pub dir: String,
    /// The branch. It is created if it does not exist. Blanks become `-`.
    pub branch: String,
    /// The commit at which a new branch begins; the current commit of the main worktree if null.
    pub base: Option<String>,
}

/// A worktree for a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WorktreeAdded {
    pub schema_version: u32,
    pub path: String,
    pub branch: String,
    /// The top directory of the repository.
    pub repository: String,
    /// Whether the worktree was made now. False: the branch was already checked out there.
    pub created: bool,
    /// The files that were copied from the main worktree (`worktrees.copy`).
    pub copied: Vec<String>,
    /// The command that prepares a new worktree (`worktrees.setup`). The client runs it; null if there is none.
    pub setup: Option<String>,
}

/// Removes a worktree.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorktreeRemoveRequest {
    /// A directory in the repository: an absolute path.
    pub dir: String,
    /// The branch or the path of the worktree.
    pub worktree: String,
    /// Remove it although it has uncommitted files or unmerged commits. Uncommitted files are then lost; the branch
    /// stays, so commits are not.
    pub force: bool,
}

/// A worktree that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WorktreeRemoved {
    pub schema_version: u32,
    pub path: String,
    pub branch: Option<String>,
    /// Whether the branch was deleted, because another branch contains all its commits.
    pub branch_deleted: bool,
    /// The panes that were closed: shells in which an agent had run in this worktree.
    pub closed_panes: Vec<String>,
}
