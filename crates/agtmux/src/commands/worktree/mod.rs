//! `agtmux worktree`: the git worktrees of a repository and their agents.

mod list;
mod make;
mod remove;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::error::{CliError, CliResult};

pub(crate) use make::worktree_for;

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    /// List the worktrees of a repository, their unsaved work and their agents
    #[command(visible_alias = "ls")]
    List(list::WorktreeListArgs),
    /// Remove a worktree, unless that loses work
    ///
    /// Refuses if the worktree has uncommitted files, commits that no other branch has, an unfinished merge or rebase,
    /// or a running agent. Deletes the branch only if another branch contains all its commits. Closes the panes in
    /// which agents have ended.
    Remove(remove::WorktreeRemoveArgs),
}

pub(crate) async fn run(command: WorktreeCommand) -> CliResult {
    match command {
        WorktreeCommand::List(args) => list::run(args).await,
        WorktreeCommand::Remove(args) => remove::run(args).await,
    }
}

/// The absolute path of a directory in the repository: the given one, or the current directory.
pub(crate) fn repository_dir(given: Option<&Path>) -> CliResult<String> {
    let here = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
    let dir: PathBuf = given.map_or_else(|| here.clone(), |dir| here.join(dir));
    dir.into_os_string()
        .into_string()
        .map_err(|_| CliError::usage("the path of the repository is not UTF-8").hint("agtmux worktree list --in DIR"))
}
