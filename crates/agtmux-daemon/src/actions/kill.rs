//! Interrupting and ending what runs, and nothing else.

use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, KillAction, KillReport, KillSignal};
use agtmux_tmux::platform::{self, Process};
use agtmux_tmux::{Key, Typing};
use tokio::time::{Instant, sleep};

use super::perform::Request;
use super::{Actions, Asker, Failure, Scene, guards};

/// How long it is watched for its end.
const GONE_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Actions {
    pub(crate) async fn kill(&self, action: KillAction, asker: Asker) -> Result<ActionOutcome<KillReport>, ApiError> {
        let content = serde_json::to_string(&(ActionKind::Kill, &action)).unwrap_or_default();
        let request = Request {
            kind: ActionKind::Kill,
            guards: &action.guards,
            asker,
            what: Some(format!("signal {}", action.signal.as_str())),
            text: None,
            content,
        };
        self.perform(request, async |scene| kill(scene, action.signal).await).await
    }
}

async fn kill(scene: &Scene<'_>, signal: KillSignal) -> Result<KillReport, Failure> {
    let process = scene.agent()?.runtime.process;
    let pids = match signal {
        KillSignal::Int => {
            let interrupt = Key::Named("C-c".into());
            scene.tmux.type_into(scene.guard, Typing::LeaveMode).await?;
            scene.tmux.type_into(scene.guard, Typing::Keys(&[interrupt])).await?;
            Vec::new()
        }
        KillSignal::Term | KillSignal::Kill => strike(scene, signal)?,
    };
    let table = scene.actions.0.discovery.processes();
    let deadline = Instant::now() + if signal == KillSignal::Int { Duration::ZERO } else { GONE_WITHIN };
    loop {
        let alive = table.process(process.pid).is_some_and(|found| found.start == process.start && !found.zombie);
        if !alive || Instant::now() >= deadline {
            return Ok(KillReport { signal, pids, ended: !alive });
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The agent and those of its group that live in the pane. Each is held before it is looked at, so that none of them can be
/// another process of the same number when it is struck.
fn strike(scene: &Scene<'_>, signal: KillSignal) -> Result<Vec<u32>, Failure> {
    let agent = scene.agent()?.runtime.process;
    let table = scene.actions.0.discovery.processes();
    let tree = table.trees(&[scene.located.pane.pid]).pop().flatten().map(|tree| tree.processes).unwrap_or_default();
    let Some(leader) = tree.iter().find(|process| (process.pid, process.start) == (agent.pid, agent.start)) else {
        return Err(Failure::refused(guards::stale("the agent's process is not in its pane any more".into())));
    };
    let group = leader.pgrp;
    let same_group = |process: &&Process| process.pgrp == group && !process.zombie;
    let mut struck = Vec::new();
    for process in tree.iter().filter(same_group) {
        match platform::strike(&*table, process.pid, process.start, signal == KillSignal::Kill) {
            Ok(true) => struck.push(process.pid),
            // It has ended by itself.
            Ok(false) => {}
            Err(error) if struck.is_empty() => {
                let message = format!("process {} could not be signalled: {error}", process.pid);
                let error = ApiError::new(ErrorCode::SubprocessFailed, message);
                return Err(Failure::refused(error.with_hint("agtmux daemon logs")));
            }
            Err(error) => tracing::warn!(pid = process.pid, %error, "could not be signalled"),
        }
    }
    Ok(struck)
}
