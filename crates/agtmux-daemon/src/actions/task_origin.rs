//! Finds the agent that started a task.
//!
//! A task descends from the tmux server, not from the agent that started it. A request from a process of the task
//! counts as a request from that agent. Otherwise an agent could start a task that approves the agent's own dialogs.

use std::path::{Path, PathBuf};

use agtmux_api::task_files::RunFiles;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::Actions;
use super::caller::CallerOrigin;

/// Set in the environment of every process of a task, unless the process removes it.
const RUN_ID_VARIABLE: &str = "AGTMUX_RUN_ID";

impl Actions {
    /// The origin of a caller that runs in a task: the agent that started the task, or `Unknown` if the run files of
    /// the task are gone. `None` if the caller runs in no task, or if no agent started the task.
    pub(super) fn origin_of_tasks(
        &self,
        processes: &dyn ProcessTable,
        ancestry: &[ProcessInfo],
    ) -> Option<CallerOrigin> {
        let found = ancestry.iter().filter_map(|process| self.origin_of_run(processes, process.pid));
        // Tasks may start tasks, so there may be several origins. A known agent is a better answer than `Unknown`.
        found.reduce(|one, other| if matches!(one, CallerOrigin::Agent(_)) { one } else { other })
    }

    fn origin_of_run(&self, processes: &dyn ProcessTable, pid: u32) -> Option<CallerOrigin> {
        let run =
            processes.environment_variable(pid, RUN_ID_VARIABLE)?.into_string().ok().filter(|run| is_run_id(run))?;
        let socket =
            processes.environment_variable(pid, "TMUX").and_then(|tmux| socket_of_tmux_variable(tmux.to_str()?));
        let files = RunFiles::in_dir(&self.0.tasks_dir, &run);
        match files.read_kept_spec().or_else(|_| files.read_spec()) {
            // A tmux server started by a task passes the variables on to all its panes. Those panes do not belong to
            // the task.
            Ok(spec) if socket.is_some_and(|socket| !same_file(&socket, Path::new(&spec.socket))) => None,
            Ok(spec) => spec.agent.map(CallerOrigin::Agent),
            // The files of the run are gone, so its origin is unknown.
            Err(_) => Some(CallerOrigin::Unknown),
        }
    }
}

/// Accepts only letters, digits and hyphens, because the id becomes part of a path.
fn is_run_id(run: &str) -> bool {
    !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}
