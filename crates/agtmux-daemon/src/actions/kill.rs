//! `kill`: interrupts or ends an agent or a task.

use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionOutcome, KillAction, KillReport, KillSignal};
use agtmux_core::ids::ProcessRef;
use agtmux_tmux::platform::ProcessInfo;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::perform::ActionRequest;
use super::{ActionPane, Actions, RequestCaller, guards};
use crate::remote::SignalError;

/// How long `kill` waits for the process to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Actions {
    pub(crate) async fn kill(&self, action: KillAction, caller: RequestCaller) -> ApiResult<ActionOutcome<KillReport>> {
        let request = ActionRequest {
            summary: Some(format!("signal {}", action.signal.as_str())),
            // TERM and KILL do not type into the pane, so they do not wait for an action that a hanging program blocks.
            locks_pane: action.signal == KillSignal::Int,
            ..ActionRequest::new(HubRequest::Kill(action.clone()), &action.guards, caller)
        };
        self.perform(request, async |pane| kill(pane, action.signal).await).await
    }
}

async fn kill(pane: &ActionPane<'_>, signal: KillSignal) -> ApiResult<KillReport> {
    let process = pane.agent()?.runtime.process;
    let pids = match signal {
        KillSignal::Int => {
            pane.type_checked(PaneInput::Keys(&[TmuxKey::Named("C-c".into())])).await?;
            Vec::new()
        }
        KillSignal::Term | KillSignal::Kill => signal_processes(pane, signal).await?,
    };
    let deadline = Instant::now() + if signal == KillSignal::Int { Duration::ZERO } else { EXIT_TIMEOUT };
    loop {
        // If the process table is unavailable, the exit cannot be confirmed.
        let Ok(found) = pane.processes.try_process(process.pid).await else {
            return Ok(KillReport { signal, pids, ended: false });
        };
        let alive = found.is_some_and(|found| found.start == process.start && !found.zombie);
        if !alive || Instant::now() >= deadline {
            return Ok(KillReport { signal, pids, ended: !alive });
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Signals an agent and the other processes of its process group in the pane. For a task, signals all its processes
/// except the supervisor. Each process is identified by its pid and start time, so another process that has reused the
/// pid is not signalled.
async fn signal_processes(pane: &ActionPane<'_>, signal: KillSignal) -> ApiResult<Vec<u32>> {
    let located_agent = pane.agent()?;
    let (agent, is_task) = (located_agent.runtime.process, located_agent.runtime.agent_type.is_task());
    let tree = pane.process_tree().await?.map(|tree| tree.processes).unwrap_or_default();
    let Some(group) = (if is_task { task_processes(&tree, agent) } else { agent_process_group(&tree, agent) }) else {
        return Err(guards::runtime_stale("the agent's process is no longer in the pane".into()));
    };
    let mut signalled = Vec::new();
    for process in group {
        match pane.processes.signal_process(process, signal == KillSignal::Kill).await {
            Ok(true) => signalled.push(process.pid),
            // The process has already ended.
            Ok(false) => {}
            Err(SignalError::Unknown(why)) => return Err(outcome_unknown(pane, process.pid, &why)),
            Err(error) if signalled.is_empty() => {
                let message = format!("cannot signal process {}: {error}", process.pid);
                let error = ApiError::new(ErrorCode::SubprocessFailed, message);
                return Err(error.with_hint("agtmux daemon logs"));
            }
            Err(error) => tracing::warn!(pid = process.pid, %error, "cannot signal a process"),
        }
    }
    Ok(signalled)
}

/// Builds the error for the case that agtmux does not know whether the signal was sent. The process may have received
/// the signal, so the caller must check the pane before repeating the command.
fn outcome_unknown(pane: &ActionPane<'_>, pid: u32, why: &str) -> ApiError {
    let target = &pane.located.key.server.target;
    let message = format!("the outcome is unknown: process {pid} on {target} may have been signalled ({why})");
    let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
    let hint = format!("check the pane before you repeat the command: agtmux view-output {}", pane.located.reference());
    ApiError { done_something: true, ..error.with_hint(hint) }
}

/// The agent and the live processes of its process group in the pane. `None` if the agent is gone.
fn agent_process_group(tree: &[ProcessInfo], agent: ProcessRef) -> Option<Vec<&ProcessInfo>> {
    let leader = tree.iter().find(|process| (process.pid, process.start) == (agent.pid, agent.start))?;
    Some(tree.iter().filter(|process| process.pgrp == leader.pgrp && !process.zombie).collect())
}

/// All live processes of a task except its supervisor, which must keep running to record the exit. `None` if the
/// supervisor is gone.
fn task_processes(tree: &[ProcessInfo], supervisor: ProcessRef) -> Option<Vec<&ProcessInfo>> {
    let is_supervisor = |process: &&ProcessInfo| (process.pid, process.start) == (supervisor.pid, supervisor.start);
    tree.iter().find(is_supervisor)?;
    Some(tree.iter().filter(|process| !is_supervisor(process) && !process.zombie).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, pgrp: u32, start: u64, zombie: bool) -> ProcessInfo {
        let (name, argv) = (b"claude".to_vec(), Vec::new());
        ProcessInfo { pid, ppid: 1, pgrp, tpgid: None, start, stopped: false, zombie, name, argv, exe: None }
    }

    #[test]
    fn only_the_agent_and_its_process_group_are_signalled() {
        let tree = [process(10, 10, 1, false), process(20, 20, 2, false), process(21, 20, 3, false)];
        let others = [process(22, 22, 4, false), process(23, 20, 5, true)];
        let tree: Vec<ProcessInfo> = tree.into_iter().chain(others).collect();
        let group = agent_process_group(&tree, ProcessRef { pid: 20, start: 2 }).expect("the process is in the tree");
        assert_eq!(group.iter().map(|process| process.pid).collect::<Vec<_>>(), [20, 21]);
    }

    #[test]
    fn all_processes_of_a_task_except_its_supervisor_are_signalled() {
        let tree = [process(10, 10, 1, false), process(20, 10, 2, false), process(21, 21, 3, false)];
        let signalled = task_processes(&tree, ProcessRef { pid: 10, start: 1 }).expect("the process is in the tree");
        assert_eq!(signalled.iter().map(|process| process.pid).collect::<Vec<_>>(), [20, 21]);
        assert_eq!(task_processes(&tree, ProcessRef { pid: 10, start: 2 }), None);
    }

    #[test]
    fn a_process_with_a_reused_pid_is_not_the_agent() {
        let tree = [process(10, 10, 1, false), process(20, 20, 7, false)];
        assert_eq!(agent_process_group(&tree, ProcessRef { pid: 20, start: 2 }), None);
        assert_eq!(agent_process_group(&[], ProcessRef { pid: 20, start: 2 }), None);
    }
}
