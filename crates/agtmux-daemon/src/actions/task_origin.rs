//! A task descends from the tmux server and not from whoever had it started. What it does counts as done by that one all the same,
//! else an agent would only have to have its own dialog answered by a task.

use std::path::{Path, PathBuf};

use agtmux_api::task_files::RunFiles;
use agtmux_tmux::platform::{Process, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::Actions;
use super::caller::Behind;

/// What every process of a task has in its environment, unless it took care not to.
const RUN: &str = "AGTMUX_RUN_ID";

impl Actions {
    /// None where no agent's task is among them.
    pub(super) fn behind_its_task(&self, processes: &dyn ProcessTable, line: &[Process]) -> Option<Behind> {
        let found = line.iter().filter_map(|process| self.origin(processes, process.pid));
        // One task may have been started by another: who it was is better than that nobody can tell.
        found.reduce(|one, other| if matches!(one, Behind::Agent(_)) { one } else { other })
    }

    fn origin(&self, processes: &dyn ProcessTable, pid: u32) -> Option<Behind> {
        let run = processes.variable(pid, RUN)?.into_string().ok().filter(|run| is_name(run))?;
        let socket = processes.variable(pid, "TMUX").and_then(|tmux| socket_of_tmux_variable(tmux.to_str()?));
        let files = RunFiles::of(&self.0.tasks_dir, &run);
        match files.read_kept_spec().or_else(|_| files.read_spec()) {
            // A tmux server that a task has started passes the variables on to whoever works in it.
            Ok(spec) if socket.is_some_and(|socket| !same_file(&socket, Path::new(&spec.socket))) => None,
            Ok(spec) => spec.agent.map(Behind::Agent),
            // Nobody knows any more whose that was.
            Err(_) => Some(Behind::Unknown),
        }
    }
}

/// It becomes a part of a path.
fn is_name(run: &str) -> bool {
    !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}
