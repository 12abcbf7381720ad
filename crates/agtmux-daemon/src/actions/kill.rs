//! Interrupting and ending what runs, and nothing else.

use std::time::Duration;

use agtmux_api::collect::HubRequest;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, KillAction, KillReport, KillSignal};
use agtmux_core::ids::ProcessRef;
use agtmux_tmux::platform::ProcessInfo;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::idempotency::request_content;
use super::perform::{ActionRequest, PaneLocking};
use super::{ActionFailure, ActionPane, Actions, RequestCaller, guards};
use crate::observe::SignalError;

/// How long it is watched for its end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Actions {
    pub(crate) async fn kill(
        &self,
        action: KillAction,
        asker: RequestCaller,
    ) -> Result<ActionOutcome<KillReport>, ApiError> {
        let content = request_content(ActionKind::Kill, &action);
        let ask = |guards| HubRequest::Kill(KillAction { guards, signal: action.signal });
        let request = ActionRequest {
            kind: ActionKind::Kill,
            guards: &action.guards,
            caller: asker,
            summary: Some(format!("signal {}", action.signal.as_str())),
            text: None,
            content,
            remote_request: &ask,
        };
        // A signal is not typed: who sends it need not wait until those have finished who talk to a program that hangs.
        let order = if action.signal == KillSignal::Int { PaneLocking::Exclusive } else { PaneLocking::Unlocked };
        self.perform_with_locking(order, request, async |scene| kill(scene, action.signal).await).await
    }
}

async fn kill(scene: &ActionPane<'_>, signal: KillSignal) -> Result<KillReport, ActionFailure> {
    let process = scene.agent()?.runtime.process;
    let pids = match signal {
        KillSignal::Int => {
            scene.type_checked(PaneInput::Keys(&[TmuxKey::Named("C-c".into())])).await?;
            Vec::new()
        }
        KillSignal::Term | KillSignal::Kill => signal_processes(scene, signal).await?,
    };
    let deadline = Instant::now() + if signal == KillSignal::Int { Duration::ZERO } else { EXIT_TIMEOUT };
    loop {
        // Nobody saw it end where nobody looks.
        let Ok(found) = scene.processes.try_process(process.pid).await else {
            return Ok(KillReport { signal, pids, ended: false });
        };
        let alive = found.is_some_and(|found| found.start == process.start && !found.zombie);
        if !alive || Instant::now() >= deadline {
            return Ok(KillReport { signal, pids, ended: !alive });
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The agent and those of its group that live in the pane. Each is held before it is looked at, so that none of them can be
/// another process of the same number when it is struck.
async fn signal_processes(scene: &ActionPane<'_>, signal: KillSignal) -> Result<Vec<u32>, ActionFailure> {
    let living = scene.agent()?;
    let (agent, is_task) = (living.runtime.process, living.runtime.agent_type.is_task());
    let tree = scene
        .processes
        .try_tree(scene.located.pane.pid)
        .await
        .map_err(|untold| scene.processes_unavailable(&untold))?;
    let tree = tree.map(|tree| tree.processes).unwrap_or_default();
    let Some(company) = (if is_task { task_processes(&tree, agent) } else { agent_process_group(&tree, agent) }) else {
        return Err(ActionFailure::refused(guards::runtime_stale(
            "the agent's process is not in its pane any more".into(),
        )));
    };
    let mut struck = Vec::new();
    for process in company {
        match scene.processes.signal_process(process, signal == KillSignal::Kill).await {
            Ok(true) => struck.push(process.pid),
            // It has ended by itself.
            Ok(false) => {}
            Err(SignalError::Unknown(why)) => return Err(outcome_unknown(scene, process.pid, &why)),
            Err(error) if struck.is_empty() => {
                let message = format!("process {} could not be signalled: {error}", process.pid);
                let error = ApiError::new(ErrorCode::SubprocessFailed, message);
                return Err(ActionFailure::refused(error.with_hint("agtmux daemon logs")));
            }
            Err(error) => tracing::warn!(pid = process.pid, %error, "could not be signalled"),
        }
    }
    Ok(struck)
}

/// It may have been struck or not. Whoever reads that it was refused would do it again.
fn outcome_unknown(scene: &ActionPane<'_>, pid: u32, why: &str) -> ActionFailure {
    let target = &scene.located.key.server.target;
    let message = format!("whether process {pid} on {target} was signalled is not known: {why}");
    let error = ApiError::new(ErrorCode::OutcomeUnknown, message);
    let hint = format!("look before you do it again: agtmux view-output {}", scene.located.reference());
    ActionFailure { error: error.with_hint(hint), done_something: true }
}

/// The agent and those of its group, among the processes of its pane. Whoever has left the pane or the group does not
/// belong to it any more. None if the agent itself is not there.
fn agent_process_group(tree: &[ProcessInfo], agent: ProcessRef) -> Option<Vec<&ProcessInfo>> {
    let leader = tree.iter().find(|process| (process.pid, process.start) == (agent.pid, agent.start))?;
    Some(tree.iter().filter(|process| process.pgrp == leader.pgrp && !process.zombie).collect())
}

/// All that runs below the one who watches over a task, and not that one: it stays to write down how they ended.
fn task_processes(tree: &[ProcessInfo], keeper: ProcessRef) -> Option<Vec<&ProcessInfo>> {
    let is_keeper = |process: &&ProcessInfo| (process.pid, process.start) == (keeper.pid, keeper.start);
    tree.iter().find(is_keeper)?;
    Some(tree.iter().filter(|process| !is_keeper(process) && !process.zombie).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, pgrp: u32, start: u64, zombie: bool) -> ProcessInfo {
        let (name, argv) = (b"claude".to_vec(), Vec::new());
        ProcessInfo { pid, ppid: 1, pgrp, tpgid: None, start, stopped: false, zombie, name, argv, exe: None }
    }

    #[test]
    fn only_the_agent_and_its_group_are_struck() {
        let tree = [process(10, 10, 1, false), process(20, 20, 2, false), process(21, 20, 3, false)];
        let others = [process(22, 22, 4, false), process(23, 20, 5, true)];
        let tree: Vec<ProcessInfo> = tree.into_iter().chain(others).collect();
        let company = agent_process_group(&tree, ProcessRef { pid: 20, start: 2 }).expect("it is there");
        assert_eq!(company.iter().map(|process| process.pid).collect::<Vec<_>>(), [20, 21]);
    }

    #[test]
    fn of_a_task_all_are_struck_but_the_one_who_watches_over_it() {
        let tree = [process(10, 10, 1, false), process(20, 10, 2, false), process(21, 21, 3, false)];
        let struck = task_processes(&tree, ProcessRef { pid: 10, start: 1 }).expect("it is there");
        assert_eq!(struck.iter().map(|process| process.pid).collect::<Vec<_>>(), [20, 21]);
        assert_eq!(task_processes(&tree, ProcessRef { pid: 10, start: 2 }), None);
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_agent() {
        let tree = [process(10, 10, 1, false), process(20, 20, 7, false)];
        assert_eq!(agent_process_group(&tree, ProcessRef { pid: 20, start: 2 }), None);
        assert_eq!(agent_process_group(&[], ProcessRef { pid: 20, start: 2 }), None);
    }
}
