//! Whether each agent can be typed into: looked at from time to time, and told when it changes.

use agtmux_api::wire::Guards;
use serde_json::json;
use tokio::sync::watch;

use super::{Bridge, Kind};

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let every = bridge.0.actions.health_check_interval();
    // A new agent is looked at as soon as it is told of.
    let mut told = bridge.0.ring.follow();
    loop {
        check_all(&bridge).await;
        let next = tokio::time::sleep(every);
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => break,
                changed = told.changed() => match changed {
                    Ok(()) if bridge.agents().values().any(|agent| agent.available.is_none()) => break,
                    Ok(()) => {}
                    Err(_) => return,
                },
                _ = stopping.wait_for(|stop| *stop) => return,
            }
        }
    }
}

async fn check_all(bridge: &Bridge) {
    let agents: Vec<(String, String)> =
        bridge.agents().iter().map(|(agent_id, agent)| (agent_id.clone(), agent.runtime_id.clone())).collect();
    for (agent_id, runtime_id) in agents {
        let available = bridge.is_available(&runtime_id).await;
        let mut agents = bridge.agents();
        let Some(agent) = agents.get_mut(&agent_id).filter(|agent| agent.runtime_id == runtime_id) else { continue };
        let before = agent.available.replace(available);
        drop(agents);
        if before != Some(available) {
            bridge.tell(Kind::CommanderAvailability, &agent_id, json!({ "available": available }));
        }
    }
}

impl Bridge {
    /// Whether its pane is there and its process runs in it.
    pub(crate) async fn is_available(&self, runtime_id: &str) -> bool {
        let guards = Guards { r#ref: format!("runtime:{runtime_id}"), ..Guards::default() };
        self.0.actions.check_health(&guards).await.is_ok_and(|health| health.available && health.running)
    }
}
