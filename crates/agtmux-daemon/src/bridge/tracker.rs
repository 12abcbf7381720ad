//! Converts changes of the published view to bridge events.

use std::collections::hash_map::Entry;

use agtmux_api::wire::{PaneItem, WatchEvent, WatchEventKind, WatchItem};
use agtmux_core::state::State;
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::agent_panes::{AgentPanes, PaneChange};
use super::state_names::{COMMANDED, bridge_state};
use super::{Bridge, BridgeEventKind, BridgeTurn, TrackedAgent, TrackedAgents, TurnIntent, panes};
use crate::engine::SubmittedPrompt;
use crate::event_log::EventsSince;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut latest = bridge.0.event_log.subscribe();
    let mut submitted = bridge.0.engine.subscribe_submitted();
    let mut agent_panes = AgentPanes::default();
    let mut seq = track_existing(&bridge, &mut agent_panes);
    loop {
        let prompt = tokio::select! {
            // A prompt is handled before the state change that it causes.
            biased;
            prompt = submitted.recv() => Some(prompt),
            changed = latest.changed() => match changed {
                Ok(()) => None,
                Err(_) => return,
            },
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match prompt {
            None => {
                let (now, changes) = changes_since(&bridge, seq, &agent_panes);
                seq = now;
                apply_changes(&bridge, &mut agent_panes, changes).await;
            }
            Some(Ok(prompt)) => on_prompt(&bridge, &prompt).await,
            // Prompts were missed, so the stream is incomplete. Readers must start over.
            Some(Err(broadcast::error::RecvError::Lagged(_))) => bridge.0.ring.discard_all(),
            Some(Err(broadcast::error::RecvError::Closed)) => return,
        }
    }
}

fn track_existing(bridge: &Bridge, agent_panes: &mut AgentPanes) -> u64 {
    let log = bridge.0.event_log.read();
    for pane in panes(&log) {
        if let (Some(agent_id), Some(tracked)) = (pane.agent_id.clone(), tracked_agent(&pane)) {
            agent_panes.update(pane.identity.clone(), Some(&pane));
            bridge.tracked().agents.entry(agent_id).or_insert(TrackedAgent { existed_at_start: true, ..tracked });
        }
    }
    bridge.0.check_requested.notify_one();
    log.seq()
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

/// Returns the current sequence number and the pane changes since `seq`. If the event log no longer has all events
/// since `seq`, compares all panes with `agent_panes` instead.
fn changes_since(bridge: &Bridge, seq: u64, agent_panes: &AgentPanes) -> (u64, Vec<PaneChange>) {
    let log = bridge.0.event_log.read();
    let changes = match log.since(seq) {
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
        EventsSince::TooOld => agent_panes.changes_to(panes(&log).collect()),
    };
    (log.seq(), changes)
}

/// Applies all changes before it decides which agents are gone. An agent that moves to another pane leaves the old pane
/// before it appears in the new one.
async fn apply_changes(bridge: &Bridge, agent_panes: &mut AgentPanes, changes: Vec<PaneChange>) {
    let mut left = Vec::new();
    for (identity, pane) in changes {
        left.extend(agent_panes.update(identity, pane.as_ref()));
        if let Some(pane) = pane {
            on_pane(bridge, agent_panes, &pane).await;
        }
    }
    for agent_id in left {
        match agent_panes.pane_of(&agent_id) {
            // The agent still runs in another pane. Follow it there.
            Some(pane) => on_pane(bridge, agent_panes, pane).await,
            None => {
                let mut tracked = bridge.tracked();
                tracked.ended.remove(&agent_id);
                stop_tracking(bridge, &mut tracked, &agent_id);
            }
        }
    }
}

async fn on_pane(bridge: &Bridge, agent_panes: &AgentPanes, pane: &PaneItem) {
    let (Some(agent_id), Some(now)) = (pane.agent_id.as_deref(), tracked_agent(pane)) else { return };
    let before = {
        let mut tracked = bridge.tracked();
        if tracked.ended.get(agent_id) == Some(&now.runtime_id) {
            return;
        }
        tracked.ended.remove(agent_id);
        match tracked.agents.get(agent_id) {
            Some(before) => before.clone(),
            None => return start_tracking(bridge, &mut tracked, agent_id, pane),
        }
    };
    let moves = before.runtime_id != now.runtime_id;
    // A session that is open in several panes is followed in one of them until the agent leaves that pane.
    if (!moves && before.state == now.state) || (moves && agent_panes.is_in_runtime(agent_id, &before.runtime_id)) {
        return;
    }
    if now.state == Some(State::Completed) && before.state != now.state {
        publish_skipped_running(bridge, agent_id);
        bridge.record_turn(BridgeTurn { agent_id, intent: TurnIntent::Completion, text: "" }).await;
    }
    on_state_change(bridge, agent_id, pane, now);
}

fn on_state_change(bridge: &Bridge, agent_id: &str, pane: &PaneItem, now: TrackedAgent) {
    let mut tracked = bridge.tracked();
    let Some(agent) = tracked.agents.get_mut(agent_id) else { return };
    // Check the agent again if it may have become unreachable, or reachable again.
    let unsure = |state: Option<State>| state == Some(State::Unknown);
    let look = agent.needs_check || agent.runtime_id != now.runtime_id || unsure(agent.state) != unsure(now.state);
    let (old_state, new_state) = (agent.published_state, now.published_state);
    let turn_id = agent.turn_id.take_if(|_| old_state != new_state);
    *agent = TrackedAgent {
        runtime_id: now.runtime_id,
        state: now.state,
        published_state: new_state,
        needs_check: look,
        ..agent.clone()
    };
    if look {
        bridge.0.check_requested.notify_one();
    }
    if old_state != new_state {
        let data = json!({
            "old_state": old_state, "new_state": new_state, "state": now.state, "reason_code": pane.reason_code,
            "turn_id": turn_id,
        });
        bridge.publish(BridgeEventKind::StateChanged, agent_id, data);
    }
}

/// Starts to track an agent, unless the bridge already tracks it.
pub(super) fn start_tracking(bridge: &Bridge, tracked: &mut TrackedAgents, agent_id: &str, pane: &PaneItem) {
    let (Some(now), Entry::Vacant(entry)) = (tracked_agent(pane), tracked.agents.entry(agent_id.to_owned())) else {
        return;
    };
    entry.insert(now);
    let data = json!({
        "agent_type": pane.agent_type, "tmux_pane_id": pane.identity.pane_id, "server": pane.identity.server,
        "session_name": pane.identity.session_name, "working_directory": pane.cwd,
        "state": pane.state.and_then(bridge_state),
    });
    bridge.publish(BridgeEventKind::SessionCreated, agent_id, data);
    bridge.0.check_requested.notify_one();
}

/// Publishes a running state that the daemon did not see: after an answer, an agent may complete so quickly that it
/// never appears as running.
fn publish_skipped_running(bridge: &Bridge, agent_id: &str) {
    let (Some(waiting), processing) = (bridge_state(State::WaitingInput), bridge_state(State::Running)) else { return };
    let mut tracked = bridge.tracked();
    let Some(agent) = tracked.agents.get_mut(agent_id).filter(|agent| agent.published_state == Some(waiting)) else {
        return;
    };
    let Some(turn_id) = agent.turn_id.take() else { return };
    agent.published_state = processing;
    let data = json!({"old_state": waiting, "new_state": processing, "state": State::Running, "turn_id": turn_id});
    bridge.publish(BridgeEventKind::StateChanged, agent_id, data);
}

pub(super) fn stop_tracking(bridge: &Bridge, tracked: &mut TrackedAgents, agent_id: &str) {
    let Some(agent) = tracked.agents.remove(agent_id) else { return };
    if agent.available == Some(true) {
        bridge.publish(BridgeEventKind::CommanderAvailability, agent_id, json!({ "available": false }));
    }
    bridge.publish(BridgeEventKind::SessionEnded, agent_id, json!({ "last_state": agent.published_state }));
}

/// Records a submitted prompt as a turn. Publishes `COMMANDED` if the agent was idle or complete.
async fn on_prompt(bridge: &Bridge, prompt: &SubmittedPrompt) {
    let matches = |agent: &TrackedAgent| agent.runtime_id == prompt.runtime.as_str();
    let found = bridge.tracked().agents.iter().find(|(_, agent)| matches(agent)).map(|(id, _)| id.clone());
    let Some(agent_id) = found else { return };
    let turn = BridgeTurn { agent_id: &agent_id, intent: TurnIntent::Command, text: &prompt.text };
    let turn_id = bridge.record_turn(turn).await;
    let mut tracked = bridge.tracked();
    let Some(agent) = tracked.agents.get_mut(&agent_id) else { return };
    if matches!(agent.published_state, Some("IDLE" | "COMPLETE")) {
        let old_state = agent.published_state.replace(COMMANDED);
        let data = json!({"old_state": old_state, "new_state": COMMANDED, "turn_id": turn_id});
        bridge.publish(BridgeEventKind::StateChanged, &agent_id, data);
    }
}
