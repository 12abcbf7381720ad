//! From what everyone sees to what bridges follow.

use std::collections::hash_map::Entry;

use agtmux_api::wire::{ListScope, PaneItem, WatchEvent, WatchEventKind, WatchItem};
use agtmux_core::state::State;
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::agent_panes::{AgentPanes, PaneChange};
use super::state_names::{COMMANDED, bridge_state};
use super::{Bridge, BridgeEventKind, BridgeTurn, TrackedAgent, TrackedAgents, TurnActor, TurnIntent};
use crate::engine::SubmittedPrompt;
use crate::event_log::EventsSince;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut latest = bridge.0.shared.subscribe();
    let mut submitted = bridge.0.engine.subscribe_submitted();
    let mut places = AgentPanes::default();
    let mut seq = track_existing(&bridge, &mut places);
    loop {
        let heard = tokio::select! {
            // A prompt comes before what it leads to.
            biased;
            heard = submitted.recv() => Some(heard),
            changed = latest.changed() => match changed {
                Ok(()) => None,
                Err(_) => return,
            },
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match heard {
            None => {
                let (now, shifts) = changes_since(&bridge, seq, &places);
                seq = now;
                apply_changes(&bridge, &mut places, shifts).await;
            }
            Some(Ok(heard)) => on_prompt(&bridge, &heard).await,
            // Turns that nobody could follow are in the history of events; whoever reads must not think that it has them.
            Some(Err(broadcast::error::RecvError::Lagged(_))) => bridge.0.ring.discard_all(),
            Some(Err(broadcast::error::RecvError::Closed)) => return,
        }
    }
}

fn track_existing(bridge: &Bridge, places: &mut AgentPanes) -> u64 {
    let inner = bridge.0.shared.read();
    for item in inner.view.items(ListScope::Panes) {
        if let WatchItem::Pane(pane) = item
            && let (Some(agent_id), Some(tracked)) = (pane.agent_id.clone(), tracked_agent(&pane))
        {
            places.update(pane.identity.clone(), Some(&pane));
            bridge.tracked().agents.entry(agent_id).or_insert(TrackedAgent { existed_at_start: true, ..tracked });
        }
    }
    bridge.0.check_requested.notify_one();
    inner.seq()
}

fn tracked_agent(pane: &PaneItem) -> Option<TrackedAgent> {
    let runtime_id = pane.runtime_id.clone()?;
    Some(TrackedAgent {
        runtime_id,
        state: pane.state,
        published_state: pane.state.and_then(bridge_state),
        available: None,
        needs_check: true,
        existed_at_start: false,
        turn_id: None,
        answer_lock: Default::default(),
    })
}

/// What happened to panes after this number. Whoever is too far behind looks at everything.
fn changes_since(bridge: &Bridge, seq: u64, places: &AgentPanes) -> (u64, Vec<PaneChange>) {
    let inner = bridge.0.shared.read();
    let shifts = match inner.since(seq) {
        EventsSince::Events(events) => {
            let shift = |event: &WatchEvent| match event.item.as_ref()? {
                WatchItem::Pane(pane) => {
                    let now = Some(PaneItem::clone(pane)).filter(|_| event.kind != WatchEventKind::Remove);
                    Some((pane.identity.clone(), now))
                }
                _ => None,
            };
            events.iter().filter_map(|published| shift(&published.event)).collect()
        }
        EventsSince::TooOld => {
            let panes = inner.view.items(ListScope::Panes).filter_map(|item| match item {
                WatchItem::Pane(pane) => Some(*pane),
                _ => None,
            });
            places.changes_to(panes.collect())
        }
    };
    (inner.seq(), shifts)
}

/// Who moves leaves the old place before it is in the new one: only when all is taken it is known who has gone.
async fn apply_changes(bridge: &Bridge, places: &mut AgentPanes, shifts: Vec<PaneChange>) {
    let mut left = Vec::new();
    for (place, pane) in shifts {
        left.extend(places.update(place, pane.as_ref()));
        if let Some(pane) = pane {
            on_pane(bridge, places, &pane).await;
        }
    }
    for agent_id in left {
        match places.pane_of(&agent_id) {
            // It may have been followed where it is no longer.
            Some(pane) => on_pane(bridge, places, pane).await,
            None => {
                let mut followed = bridge.tracked();
                followed.ended.remove(&agent_id);
                stop_tracking(bridge, &mut followed, &agent_id);
            }
        }
    }
}

async fn on_pane(bridge: &Bridge, places: &AgentPanes, pane: &PaneItem) {
    let (Some(agent_id), Some(now)) = (pane.agent_id.as_deref(), tracked_agent(pane)) else { return };
    let before = {
        let mut followed = bridge.tracked();
        if followed.ended.get(agent_id) == Some(&now.runtime_id) {
            return;
        }
        followed.ended.remove(agent_id);
        match followed.agents.get(agent_id) {
            Some(before) => before.clone(),
            None => return start_tracking(bridge, &mut followed, agent_id, pane),
        }
    };
    let moves = before.runtime_id != now.runtime_id;
    // A session that is open twice is followed where it was first.
    if (!moves && before.state == now.state) || (moves && places.is_in_runtime(agent_id, &before.runtime_id)) {
        return;
    }
    if now.state == Some(State::Completed) && before.state != now.state {
        publish_skipped_running(bridge, agent_id);
        bridge
            .record_turn(BridgeTurn { agent_id, actor: TurnActor::Agent, intent: TurnIntent::Completion, text: "" })
            .await;
    }
    on_state_change(bridge, agent_id, pane, now);
}

fn on_state_change(bridge: &Bridge, agent_id: &str, pane: &PaneItem, now: TrackedAgent) {
    let mut followed = bridge.tracked();
    let Some(agent) = followed.agents.get_mut(agent_id) else { return };
    // It may be out of reach now, or back.
    let unsure = |state: Option<State>| state == Some(State::Unknown);
    let look = agent.needs_check || agent.runtime_id != now.runtime_id || unsure(agent.state) != unsure(now.state);
    let (told, tells) = (agent.published_state, now.published_state);
    let turn_id = agent.turn_id.take_if(|_| told != tells);
    *agent = TrackedAgent {
        runtime_id: now.runtime_id,
        state: now.state,
        published_state: tells,
        needs_check: look,
        ..agent.clone()
    };
    if look {
        bridge.0.check_requested.notify_one();
    }
    if told != tells {
        let data = json!({
            "old_state": told, "new_state": tells, "state": now.state, "reason_code": pane.reason_code, "turn_id": turn_id,
        });
        bridge.publish(BridgeEventKind::StateChanged, agent_id, data);
    }
}

/// Nobody who is followed begins anew.
pub(super) fn start_tracking(bridge: &Bridge, followed: &mut TrackedAgents, agent_id: &str, pane: &PaneItem) {
    let (Some(now), Entry::Vacant(place)) = (tracked_agent(pane), followed.agents.entry(agent_id.to_owned())) else {
        return;
    };
    place.insert(now);
    let data = json!({
        "agent_type": pane.agent_type, "tmux_pane_id": pane.identity.pane_id, "server": pane.identity.server,
        "session_name": pane.identity.session_name, "working_directory": pane.cwd, "state": pane.state.and_then(bridge_state),
    });
    bridge.publish(BridgeEventKind::SessionCreated, agent_id, data);
    bridge.0.check_requested.notify_one();
}

/// What an answer led to may be over before anybody could see it: it is told all the same.
fn publish_skipped_running(bridge: &Bridge, agent_id: &str) {
    let (Some(asked), processing) = (bridge_state(State::WaitingInput), bridge_state(State::Running)) else { return };
    let mut followed = bridge.tracked();
    let Some(agent) = followed.agents.get_mut(agent_id).filter(|agent| agent.published_state == Some(asked)) else {
        return;
    };
    let Some(turn_id) = agent.turn_id.take() else { return };
    agent.published_state = processing;
    let data = json!({"old_state": asked, "new_state": processing, "state": State::Running, "turn_id": turn_id});
    bridge.publish(BridgeEventKind::StateChanged, agent_id, data);
}

pub(super) fn stop_tracking(bridge: &Bridge, followed: &mut TrackedAgents, agent_id: &str) {
    let Some(gone) = followed.agents.remove(agent_id) else { return };
    if gone.available == Some(true) {
        bridge.publish(BridgeEventKind::CommanderAvailability, agent_id, json!({ "available": false }));
    }
    bridge.publish(BridgeEventKind::SessionEnded, agent_id, json!({ "last_state": gone.published_state }));
}

/// A prompt went in.
async fn on_prompt(bridge: &Bridge, heard: &SubmittedPrompt) {
    let is_meant = |agent: &TrackedAgent| agent.runtime_id == heard.runtime.as_str();
    let found = bridge.tracked().agents.iter().find(|(_, agent)| is_meant(agent)).map(|(id, _)| id.clone());
    let Some(agent_id) = found else { return };
    let turn =
        BridgeTurn { agent_id: &agent_id, actor: TurnActor::User, intent: TurnIntent::Command, text: &heard.text };
    let turn_id = bridge.record_turn(turn).await;
    let mut followed = bridge.tracked();
    let Some(agent) = followed.agents.get_mut(&agent_id) else { return };
    if matches!(agent.published_state, Some("IDLE" | "COMPLETE")) {
        let told = agent.published_state.replace(COMMANDED);
        let data = json!({"old_state": told, "new_state": COMMANDED, "turn_id": turn_id});
        bridge.publish(BridgeEventKind::StateChanged, &agent_id, data);
    }
}
