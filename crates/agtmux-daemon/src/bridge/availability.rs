//! Whether each agent can be typed into: looked at from time to time while anybody follows it, and told when it changes.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agtmux_api::wire::Guards;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{Bridge, Kind, Tracked};

/// A tmux server that hangs keeps nobody else waiting until all of its agents were looked at.
const AT_ONCE: usize = 8;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut every = tokio::time::interval(bridge.0.actions.health_check_interval());
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let look = async {
            tokio::select! {
                // Nobody would learn of it: tmux is left in peace.
                _ = every.tick() => if bridge.0.ring.has_readers() { look_at_all(&bridge).await },
                () = bridge.0.look.notified() => look_at(&bridge, |agent| agent.look).await,
            }
        };
        tokio::select! {
            () = look => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

async fn look_at_all(bridge: &Bridge) {
    bridge.begins_to_look();
    look_at(bridge, |_| true).await;
}

async fn look_at(bridge: &Bridge, which: fn(&Tracked) -> bool) {
    let agents: Vec<(String, String)> = {
        let mut followed = bridge.followed();
        let wanted = followed.agents.iter_mut().filter(|(_, agent)| which(agent));
        let looked_at = wanted.map(|(agent_id, agent)| {
            agent.look = false;
            (agent_id.clone(), agent.runtime_id.clone())
        });
        looked_at.collect()
    };
    let mut looks = JoinSet::new();
    for (agent_id, runtime_id) in agents {
        if looks.len() >= AT_ONCE {
            looks.join_next().await;
        }
        looks.spawn(look_at_one(bridge.clone(), agent_id, runtime_id));
    }
    while looks.join_next().await.is_some() {}
}

async fn look_at_one(bridge: Bridge, agent_id: String, runtime_id: String) {
    let available = bridge.is_available(&runtime_id).await;
    let mut followed = bridge.followed();
    let known = followed.agents.get_mut(&agent_id).filter(|agent| agent.runtime_id == runtime_id);
    let Some(agent) = known else { return };
    let before = agent.available.replace(available);
    let is_news = before != Some(available) && !(before.is_none() && agent.was_there);
    if is_news {
        bridge.tell(Kind::CommanderAvailability, &agent_id, json!({ "available": available }));
    }
}

impl Bridge {
    /// How long ago all were looked at, for whoever asks how many can be reached. Where nobody follows they are looked at when that
    /// is asked for: who asks does not wait for it, and who asks next is told.
    pub(crate) fn looked_ago(&self) -> Option<Duration> {
        let ago = self.looked().map(|at| at.elapsed());
        if ago.is_none_or(|ago| ago >= self.0.actions.health_check_interval()) {
            self.begins_to_look();
            let bridge = self.clone();
            tokio::spawn(async move { look_at_all(&bridge).await });
        }
        ago
    }

    fn begins_to_look(&self) {
        *self.looked() = Some(Instant::now());
    }

    fn looked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody begins to follow: what changed while nobody did is looked for now.
    pub(crate) fn is_followed(&self) {
        if self.0.ring.has_readers() {
            return;
        }
        self.followed().agents.values_mut().for_each(|agent| agent.look = true);
        self.0.look.notify_one();
    }

    /// Whether its pane is there and its process runs in it.
    pub(crate) async fn is_available(&self, runtime_id: &str) -> bool {
        let guards = Guards { r#ref: format!("runtime:{runtime_id}"), ..Guards::default() };
        self.0.actions.check_health(&guards).await.is_ok_and(|health| health.available && health.running)
    }
}
