//! Whether each agent can be typed into: looked at from time to time while anybody follows it, and told when it changes.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agtmux_api::wire::ActionGuards;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{Bridge, BridgeEventKind, TrackedAgent};

/// A tmux server that hangs keeps nobody else waiting until all of its agents were looked at.
const MAX_PARALLEL_CHECKS: usize = 8;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut every = tokio::time::interval(bridge.0.actions.health_check_interval());
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let look = async {
            tokio::select! {
                // Nobody would learn of it: tmux is left in peace.
                _ = every.tick() => if bridge.0.ring.has_readers() { check_all(&bridge).await },
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
        let mut followed = bridge.tracked();
        let wanted = followed.agents.iter_mut().filter(|(_, agent)| which(agent));
        let looked_at = wanted.map(|(agent_id, agent)| {
            agent.needs_check = false;
            (agent_id.clone(), agent.runtime_id.clone())
        });
        looked_at.collect()
    };
    let mut looks = JoinSet::new();
    for (agent_id, runtime_id) in agents {
        if looks.len() >= MAX_PARALLEL_CHECKS {
            looks.join_next().await;
        }
        looks.spawn(check_one(bridge.clone(), agent_id, runtime_id));
    }
    while looks.join_next().await.is_some() {}
}

async fn check_one(bridge: Bridge, agent_id: String, runtime_id: String) {
    let available = bridge.is_available(&runtime_id).await;
    let mut followed = bridge.tracked();
    let known = followed.agents.get_mut(&agent_id).filter(|agent| agent.runtime_id == runtime_id);
    let Some(agent) = known else { return };
    let before = agent.available.replace(available);
    let is_news = before != Some(available) && !(before.is_none() && agent.existed_at_start);
    if is_news {
        bridge.publish(BridgeEventKind::CommanderAvailability, &agent_id, json!({ "available": available }));
    }
}

impl Bridge {
    /// How long ago all were looked at, for whoever asks how many can be reached. Where nobody follows they are looked at when that
    /// is asked for: who asks does not wait for it, and who asks next is told.
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

    /// Somebody begins to follow: what changed while nobody did is looked for now.
    pub(crate) fn on_reader_joining(&self) {
        if self.0.ring.has_readers() {
            return;
        }
        self.tracked().agents.values_mut().for_each(|agent| agent.needs_check = true);
        self.0.check_requested.notify_one();
    }

    /// Whether its pane is there and its process runs in it.
    pub(crate) async fn is_available(&self, runtime_id: &str) -> bool {
        let guards = ActionGuards { r#ref: format!("runtime:{runtime_id}"), ..ActionGuards::default() };
        self.0.actions.check_health(&guards).await.is_ok_and(|health| health.available && health.running)
    }
}
