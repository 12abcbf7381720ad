//! Makes the worktree of a new agent and prepares it.

use std::path::Path;

use agtmux_api::wire::{TaskEventsQuery, TaskRunRequest, TaskStarted, WorktreeAddRequest, WorktreeAdded};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::task::TaskSessionName;

use crate::commands::task::session_args::socket;
use crate::commands::task::wait::{self, TaskWaitOutcome};
use crate::error::{CliError, CliResult};
use crate::message;
use crate::quit_signals::QuitSignals;

/// The longest name of a task.
const MAX_TASK_NAME: usize = 40;

/// The worktree for a branch. If it is new, runs `worktrees.setup` in it as a task and waits for the end of the task.
pub(crate) async fn worktree_for(
    daemon: &DaemonClient,
    dir: String,
    branch: &str,
    base: Option<&String>,
) -> CliResult<WorktreeAdded> {
    let request = WorktreeAddRequest { dir, branch: branch.to_owned(), base: base.cloned() };
    let added: WorktreeAdded = parse(&daemon.act("/v1/worktrees/add", &request).await?)?;
    if let Some(setup) = &added.setup {
        run_setup(daemon, &added, setup).await?;
    }
    Ok(added)
}

async fn run_setup(daemon: &DaemonClient, added: &WorktreeAdded, setup: &str) -> CliResult {
    let session = TaskSessionName::default_of(Path::new(&added.repository));
    let session = session.map_err(|error| CliError::usage(error.to_string()))?.to_string();
    let run = TaskRunRequest {
        session: session.clone(),
        socket: Some(socket().display().to_string()),
        task: task_name(&added.branch),
        command: setup.to_owned(),
        cwd: added.path.clone(),
        project: Some(added.repository.clone()),
        owner: None,
        replace: false,
    };
    let started: TaskStarted = parse(&daemon.act("/v1/tasks/run", &run).await?)?;
    message::line(&format!(
        "preparing {}: {setup}   (agtmux task logs {} -f --session {session})",
        added.path, started.task
    ));
    let query = TaskEventsQuery { run_id: Some(started.run_id.clone()), after: Some(0), ..TaskEventsQuery::default() };
    let logs = format!("agtmux task logs {} --session {session}", started.task);
    match wait::wait_until_end(daemon, query, None, &mut QuitSignals::new()?).await? {
        TaskWaitOutcome::Ended(event) if event.exit_code == Some(0) => Ok(()),
        TaskWaitOutcome::Interrupted(exit) => Err(CliError::silent(exit)),
        TaskWaitOutcome::Ended(event) => Err(CliError::failed("no agent was started: worktrees.setup failed")
            .because(event.message)
            .because(format!("the worktree stays: {}", added.path))
            .hint(logs)),
        TaskWaitOutcome::Removed | TaskWaitOutcome::TimedOut => {
            Err(CliError::failed("no agent was started: the task of worktrees.setup was removed").hint(logs))
        }
    }
}

/// A valid name for the task: `setup-` and the branch.
fn task_name(branch: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = format!("setup-{branch}").chars().map(plain).take(MAX_TASK_NAME).collect();
    name.trim_end_matches(['.', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_becomes_the_name_of_a_task() {
        for branch in ["fix/login", "über", &"x".repeat(99), "a..", "-"] {
            let name = task_name(branch);
            assert!(name.parse::<agtmux_core::task::TaskName>().is_ok(), "{name}");
        }
    }
}
