//! A task descends from the tmux server and not from whoever had it started. What it does counts as done by that one all the same,
//! else an agent would only have to have its own dialog answered by a task.

use std::path::{Path, PathBuf};

use agtmux_api::task_files::RunFiles;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::Actions;
use super::caller::CallerOrigin;

/// What every process of a task has in its environment, unless it took care not to.
const RUN_ID_VARIABLE: &str = "AGTMUX_RUN_ID";

impl Actions {
    /// None where no agent's task is among them.
    pub(super) fn origin_of_tasks(&self, processes: &dyn ProcessTable, line: &[ProcessInfo]) -> Option<CallerOrigin> {
        let found = line.iter().filter_map(|process| self.origin_of_run(processes, process.pid));
        // One task may have been started by another: who it was is better than that nobody can tell.
        found.reduce(|one, other| if matches!(one, CallerOrigin::Agent(_)) { one } else { other })
    }

    fn origin_of_run(&self, processes: &dyn ProcessTable, pid: u32) -> Option<CallerOrigin> {
        let run =
            processes.environment_variable(pid, RUN_ID_VARIABLE)?.into_string().ok().filter(|run| is_run_id(run))?;
        let socket =
            processes.environment_variable(pid, "TMUX").and_then(|tmux| socket_of_tmux_variable(tmux.to_str()?));
        let files = RunFiles::in_dir(&self.0.tasks_dir, &run);
        match files.read_kept_spec().or_else(|_| files.read_spec()) {
            // A tmux server that a task has started passes the variables on to whoever works in it.
            Ok(spec) if socket.is_some_and(|socket| !same_file(&socket, Path::new(&spec.socket))) => None,
            Ok(spec) => spec.agent.map(CallerOrigin::Agent),
            // Nobody knows any more whose that was.
            Err(_) => Some(CallerOrigin::Unknown),
        }
    }
}

/// It becomes a part of a path.
fn is_run_id(run: &str) -> bool {
    !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}
