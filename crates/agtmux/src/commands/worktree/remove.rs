use std::path::PathBuf;

use agtmux_api::wire::{WorktreeRemoveRequest, WorktreeRemoved};
use agtmux_client::DaemonClient;
use clap::Args;

use super::repository_dir;
use crate::error::CliResult;
use crate::{input, output};

#[derive(Debug, Args)]
#[command(after_help = "Ignored files, such as build results, do not count as work.\n\n\
    Exit codes:\n  0  removed\n  1  you did not confirm\n  5  the worktree contains work or a running agent; the message says what\n\n\
    Examples:\n  agtmux worktree remove fix-login\n  agtmux worktree remove ../app.worktrees/try --force")]
pub(crate) struct WorktreeRemoveArgs {
    /// The branch or the path of the worktree
    #[arg(value_name = "BRANCH")]
    worktree: String,
    /// A directory in the repository [default: the current directory]
    #[arg(long = "in", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Remove it with its uncommitted files. The branch stays, so its commits are not lost. Asks for confirmation
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation
    #[arg(long, requires = "force")]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: WorktreeRemoveArgs) -> CliResult {
    if args.force && !args.yes {
        let question = format!("remove the worktree {} with its uncommitted files?", args.worktree);
        input::require_confirmation(&question, &format!("agtmux worktree remove {} --force --yes", args.worktree))?;
    }
    let daemon = DaemonClient::from_env()?;
    let dir = repository_dir(args.dir.as_deref())?;
    // A path of the user is relative to the user's directory.
    let named = PathBuf::from(&args.worktree);
    let is_path = args.worktree.starts_with(['.', '/', '~']) && named.is_dir();
    let worktree = match is_path.then(|| named.canonicalize().ok()).flatten() {
        Some(path) => path.display().to_string(),
        None => args.worktree.clone(),
    };
    let answer =
        daemon.act("/v1/worktrees/remove", &WorktreeRemoveRequest { dir, worktree, force: args.force }).await?;
    output::answer(&answer, args.json, |done: &WorktreeRemoved| {
        let branch = match (&done.branch, done.branch_deleted) {
            (Some(branch), true) => format!("; deleted the merged branch {branch}"),
            (Some(branch), false) => format!("; the branch {branch} stays"),
            (None, _) => String::new(),
        };
        let closed = match done.closed_panes.is_empty() {
            true => String::new(),
            false => format!("; closed {}", done.closed_panes.join(", ")),
        };
        vec![format!("removed {}{branch}{closed}", done.path)]
    })
}
