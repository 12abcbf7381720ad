//! `agtmux diff`: shows what an agent has changed.

use std::os::unix::process::CommandExt;
use std::process::Command;

use agtmux_api::wire::{ListQuery, ListResponse, PaneItem};
use agtmux_client::DaemonClient;
use agtmux_core::ids::TargetName;
use clap::Args;

use super::guards::{GuardArgs, snapshot};
use crate::error::{CliError, CliResult};
use crate::message;

#[derive(Debug, Args)]
#[command(
    after_help = "Runs `git diff` in the directory of the agent. In a worktree of its own, the diff begins where the branch \
    left the main worktree, so it contains the commits of the agent, too. Otherwise it contains what is not committed. \
    Untracked files are named on stderr.\n\n\
    Examples:\n  agtmux diff claude\n  agtmux diff fix -- --stat"
)]
#[command(mut_arg("request_ref", |arg| arg.hide(true)), mut_arg("force_stale", |arg| arg.hide(true)))]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Options and paths for `git diff`
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

pub(crate) async fn run(args: DiffArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let seen = snapshot(&daemon, &guards).await?;
    if seen.target != TargetName::LOCAL {
        let message = format!("the agent runs on {}, and agtmux diff reads only this machine", seen.target);
        return Err(CliError::failed(message).hint(format!("ssh {} and run agtmux diff there", seen.target)));
    }
    let panes: ListResponse<PaneItem> =
        daemon.get("/v1/panes", &ListQuery { all: true, ..ListQuery::default() }).await?;
    let is_shown = |item: &&PaneItem| {
        item.identity.target == seen.target
            && item.identity.server == seen.server
            && item.identity.pane_id.to_string() == seen.pane_id
    };
    let dir = panes.items.iter().find(is_shown).and_then(|item| item.cwd.clone()).ok_or_else(|| {
        CliError::failed("the directory of the agent is not known").hint(format!("agtmux view-output {}", guards.r#ref))
    })?;
    show(&dir, &args.arguments)
}

fn show(dir: &str, arguments: &[String]) -> CliResult {
    let Some(head) = git(dir, &["rev-parse", "--verify", "--quiet", "HEAD"]) else {
        return Err(
            CliError::failed(format!("'{dir}' is in no git repository with a commit")).hint("agtmux diff --help")
        );
    };
    let untracked = git(dir, &["ls-files", "--others", "--exclude-standard"]).unwrap_or_default();
    untracked.lines().for_each(|file| message::line(&format!("untracked: {file}")));
    let base = main_head(dir).and_then(|main| git(dir, &["merge-base", &main, &head])).unwrap_or(head);
    let mut diff = Command::new("git");
    diff.arg("-C").arg(dir).arg("diff").arg(base).args(arguments);
    // git shows the diff with the user's own pager and colours.
    Err(CliError::io("run git", diff.exec()))
}

/// The commit of the main worktree, if the directory is in another worktree.
fn main_head(dir: &str) -> Option<String> {
    let own = git(dir, &["rev-parse", "--absolute-git-dir"])?;
    let common = git(dir, &["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    if own == common {
        return None;
    }
    let worktrees = git(dir, &["worktree", "list", "--porcelain"])?;
    worktrees.lines().find_map(|line| line.strip_prefix("HEAD ").map(str::to_owned))
}

/// The output of git without the newline at its end. `None` if git fails.
fn git(dir: &str, args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(dir).args(args).env("GIT_OPTIONAL_LOCKS", "0").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
