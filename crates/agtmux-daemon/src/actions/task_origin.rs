//! Finds the agent that started a task.
//!
//! A task descends from the tmux server, not from the agent that started it. A request from a process of the task
//! counts as a request from that agent. Without this rule, an agent could start a task that approves the agent's own
//! dialogs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::task_files::{RunFiles, RunSpec};
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::Actions;
use super::origin::{CallerOrigin, UnknownOrigin};
use crate::store::tasks;

/// The subcommand of agtmux with which the wrapper process of each task is started.
const WRAPPER_COMMAND: &[u8] = b"task-exec";

/// The store may not know a new run yet. The first value is how many times to ask the store, the second is the pause
/// between two attempts.
const REGISTRATION_CHECKS: u32 = 40;
const REGISTRATION_INTERVAL: Duration = Duration::from_millis(50);

/// The variable that agtmux sets in the environment of a task. A process of the task can remove the variable.
const RUN_ID_VARIABLE: &str = "AGTMUX_RUN_ID";

impl Actions {
    /// The origin of a caller that runs in a task: the agent that started the task, or `Unknown` if the run files of
    /// the task are gone or do not name an agent for sure. `None` if the caller runs in no task, or if no agent started the task.
    pub(super) fn origin_of_tasks(
        &self,
        processes: &dyn ProcessTable,
        ancestry: &[ProcessInfo],
    ) -> Option<CallerOrigin> {
        let by_wrapper = ancestry.iter().filter_map(|process| self.origin_of_wrapper(process));
        let by_variable = ancestry.iter().filter_map(|process| self.origin_of_variable(processes, process.pid));
        let found = by_wrapper.chain(by_variable);
        // Tasks may start tasks, so there may be several origins. A known agent takes precedence over `Unknown`.
        found.reduce(|one, other| if matches!(one, CallerOrigin::Agent(_)) { one } else { other })
    }

    /// If this process is the wrapper of a task, returns the origin of that task. A process of the task can change its
    /// environment, but cannot choose its ancestors.
    pub(super) fn origin_of_wrapper(&self, process: &ProcessInfo) -> Option<CallerOrigin> {
        let files = self.files_of_wrapper(process)?;
        match files.read_kept_spec().or_else(|_| files.read_spec()) {
            Ok(spec) => origin_of_run(spec),
            Err(_) => Some(CallerOrigin::Unknown(UnknownOrigin::TaskFilesGone)),
        }
    }

    /// The run files of the task whose wrapper is this process.
    fn files_of_wrapper(&self, process: &ProcessInfo) -> Option<RunFiles> {
        let spec = match process.argv.as_slice() {
            [_, command, spec] if command == WRAPPER_COMMAND => Path::new(OsStr::from_bytes(spec)),
            _ => return None,
        };
        let run = spec.file_stem()?.to_str().filter(|run| is_run_id(run))?;
        Some(RunFiles::in_dir(&self.0.tasks_dir, run)).filter(|files| same_file(files.spec(), spec))
    }

    /// Whether this process is the wrapper of a task that no agent started. The process must be the one in the store,
    /// because an agent can start another wrapper with the files of any task.
    pub(super) async fn is_task_of_a_person(&self, process: &ProcessInfo) -> bool {
        let Some(files) = self.files_of_wrapper(process) else { return false };
        let Some(spec) = files.read_kept_spec().or_else(|_| files.read_spec()).ok() else { return false };
        if spec.agent.is_some() {
            return false;
        }
        // The run is stored shortly after its process has started, so the store may not know the run yet.
        for _ in 0..REGISTRATION_CHECKS {
            let run = spec.run_id.clone();
            match self.0.store.read(move |connection| tasks::process_of_run(connection, &run)).await {
                Ok(Some(stored)) => return stored == (process.pid, process.start),
                _ => tokio::time::sleep(REGISTRATION_INTERVAL).await,
            }
        }
        false
    }

    fn origin_of_variable(&self, processes: &dyn ProcessTable, pid: u32) -> Option<CallerOrigin> {
        let run =
            processes.environment_variable(pid, RUN_ID_VARIABLE)?.into_string().ok().filter(|run| is_run_id(run))?;
        let socket =
            processes.environment_variable(pid, "TMUX").and_then(|tmux| socket_of_tmux_variable(tmux.to_str()?));
        let files = RunFiles::in_dir(&self.0.tasks_dir, &run);
        match files.read_kept_spec().or_else(|_| files.read_spec()) {
            // A tmux server started by a task passes the variables on to all its panes. Those panes do not belong to
            // the task.
            Ok(spec) if socket.is_some_and(|socket| !same_file(&socket, Path::new(&spec.socket))) => None,
            Ok(spec) => origin_of_run(spec),
            // The files of the run are gone, so its origin is unknown.
            Err(_) => Some(CallerOrigin::Unknown(UnknownOrigin::TaskFilesGone)),
        }
    }
}

fn origin_of_run(spec: RunSpec) -> Option<CallerOrigin> {
    let agent = spec.agent?;
    Some(match spec.agent_is_assumed {
        true => CallerOrigin::Unknown(UnknownOrigin::TaskOfUnknown),
        false => CallerOrigin::Agent(agent),
    })
}

/// Accepts only letters, digits and hyphens, because the id becomes part of a path.
fn is_run_id(run: &str) -> bool {
    !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}
