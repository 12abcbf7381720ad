//! Checks whether each agent is available, and publishes changes. New and moved agents are checked at once. While a
//! reader follows the bridge, all agents are checked at an interval.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agtmux_api::wire::ActionGuards;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{Bridge, BridgeEventKind, TrackedAgent};

/// The most checks that run in parallel. Because checks run in parallel, one tmux server that hangs does not delay the
/// checks on other servers.
const MAX_PARALLEL_CHECKS: usize = 8;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut interval = tokio::time::interval(bridge.0.actions.health_check_interval());
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let look = async {
            tokio::select! {
                // Without readers nothing is published, so tmux is not asked.
                _ = interval.tick() => if bridge.0.ring.has_readers() { check_all(&bridge).await },
                () = bridge.0.check_requested.notified() => check_matching(&bridge, |agent| agent.needs_check).await,
            }
        };
        tokio::select! {
            () = look => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

async fn check_all(bridge: &Bridge) {
    bridge.mark_check_started();
    check_matching(bridge, |_| true).await;
}

async fn check_matching(bridge: &Bridge, which: fn(&TrackedAgent) -> bool) {
    let agents: Vec<(String, String)> = {
        let mut tracked = bridge.tracked();
        let wanted = tracked.agents.iter_mut().filter(|(_, agent)| which(agent));
        let checked = wanted.map(|(agent_id, agent)| {
            agent.needs_check = false;
            (agent_id.clone(), agent.runtime_id.clone())
        });
        checked.collect()
    };
    let mut checks = JoinSet::new();
    for (agent_id, runtime_id) in agents {
        if checks.len() >= MAX_PARALLEL_CHECKS {
            checks.join_next().await;
        }
        checks.spawn(check_one(bridge.clone(), agent_id, runtime_id));
    }
    while checks.join_next().await.is_some() {}
}

async fn check_one(bridge: Bridge, agent_id: String, runtime_id: String) {
    let available = bridge.is_available(&runtime_id).await;
    let mut tracked = bridge.tracked();
    let known = tracked.agents.get_mut(&agent_id).filter(|agent| agent.runtime_id == runtime_id);
    let Some(agent) = known else { return };
    let before = agent.available.replace(available);
    let is_news = before != Some(available) && !(before.is_none() && agent.existed_at_start);
    if is_news {
        bridge.publish(BridgeEventKind::CommanderAvailability, &agent_id, json!({ "available": available }));
    }
}

impl Bridge {
    /// The time since the last check of all agents. If that check is too old, this call also starts a new check in the
    /// background, and does not wait for the result.
    pub(crate) fn since_last_check(&self) -> Option<Duration> {
        let ago = self.last_full_check().map(|at| at.elapsed());
        if ago.is_none_or(|ago| ago >= self.0.actions.health_check_interval()) {
            self.mark_check_started();
            let bridge = self.clone();
            tokio::spawn(async move { check_all(&bridge).await });
        }
        ago
    }

    fn mark_check_started(&self) {
        *self.last_full_check() = Some(Instant::now());
    }

    fn last_full_check(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.last_full_check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before a reader subscribes. The daemon checks agents at an interval only while there are readers, so the
    /// first reader could get old results. For the first reader, this call requests a check of every agent.
    pub(crate) fn on_reader_joining(&self) {
        if self.0.ring.has_readers() {
            return;
        }
        self.tracked().agents.values_mut().for_each(|agent| agent.needs_check = true);
        self.0.check_requested.notify_one();
    }

    /// Whether the pane of this runtime exists and the agent's process runs in it.
    pub(crate) async fn is_available(&self, runtime_id: &str) -> bool {
        let guards = ActionGuards { r#ref: format!("runtime:{runtime_id}"), ..ActionGuards::default() };
        self.0.actions.check_health(&guards).await.is_ok_and(|health| health.available && health.running)
    }
}
