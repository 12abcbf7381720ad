use std::path::PathBuf;

use agtmux_api::wire::{WorktreeItem, WorktreeList, WorktreeQuery};
use agtmux_client::DaemonClient;
use clap::Args;

use super::repository_dir;
use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  agtmux worktree list --json --jq '.items[] | select(.merged and .dirty == 0) | .branch'"
)]
pub(crate) struct WorktreeListArgs {
    /// A directory in the repository [default: the current directory]
    #[arg(long = "in", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print the worktrees as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: WorktreeListArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let query = WorktreeQuery { dir: repository_dir(args.dir.as_deref())? };
    let listed: WorktreeList = daemon.get("/v1/worktrees", &query).await?;
    match args.json {
        true => output::json(&listed),
        false => output::lines(listed.items.iter().map(worktree_line)),
    }
}

/// `fix-login  ~/src/app.worktrees/fix-login  3 changed, 2 ahead, 1 behind, not merged  claude %5 (idle)`
fn worktree_line(item: &WorktreeItem) -> String {
    let branch = item.branch.as_deref().unwrap_or("(no branch)");
    let count =
        |count: Option<u32>, what: &str| count.filter(|count| *count > 0).map(|count| format!("{count} {what}"));
    let merged = match (item.main, item.merged) {
        (true, _) => Some("main worktree".to_owned()),
        (false, Some(true)) => Some("merged".to_owned()),
        (false, Some(false)) => Some("not merged".to_owned()),
        (false, None) => Some("unreadable".to_owned()),
    };
    let facts = [
        count(item.dirty, "changed"),
        count(item.ahead, "ahead"),
        count(item.behind, "behind"),
        merged,
        item.locked.then(|| "locked".to_owned()),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let agent = |agent: &agtmux_api::wire::WorktreeAgent| {
        format!("  {} {} ({})", agent.name.as_deref().unwrap_or(&agent.agent_type), agent.pane_id, agent.state)
    };
    let agents: String = item.agents.iter().map(agent).collect();
    format!("{branch}  {}  {facts}{agents}", item.path)
}
