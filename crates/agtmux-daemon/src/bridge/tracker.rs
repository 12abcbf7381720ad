//! From what everyone sees to what bridges follow.

use std::collections::HashMap;

use agtmux_api::wire::{EventKind, Item, PaneIdentity, PaneItem, Scope};
use agtmux_core::state::State;
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::words::{COMMANDED, word};
use super::{Actor, Bridge, Intent, Kind, Tracked, Turn};
use crate::engine::Submitted;
use crate::shared::Since;

/// Where each agent was last seen: who is no longer there may have gone, or moved.
type Places = HashMap<PaneIdentity, String>;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut latest = bridge.0.shared.follow();
    let mut submitted = bridge.0.engine.submitted();
    let mut places = Places::new();
    let mut seq = begin(&bridge, &mut places);
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
            None => {}
            Some(Ok(heard)) => {
                commanded(&bridge, &heard).await;
                continue;
            }
            // Turns that nobody could follow are in the history of events.
            Some(Err(broadcast::error::RecvError::Lagged(_))) => continue,
            Some(Err(broadcast::error::RecvError::Closed)) => return,
        }
        let (now, items) = since(&bridge, seq);
        seq = now;
        for (kind, item) in items {
            take(&bridge, &mut places, kind, item).await;
        }
    }
}

fn begin(bridge: &Bridge, places: &mut Places) -> u64 {
    let inner = bridge.0.shared.read();
    for item in inner.view.items(Scope::Panes) {
        if let Item::Pane(pane) = item
            && let (Some(agent_id), Some(tracked)) = (pane.agent_id.clone(), tracked(&pane))
        {
            places.insert(pane.identity.clone(), agent_id.clone());
            bridge.agents().insert(agent_id, tracked);
        }
    }
    inner.seq()
}

fn tracked(pane: &PaneItem) -> Option<Tracked> {
    let runtime_id = pane.runtime_id.clone()?;
    Some(Tracked { runtime_id, state: pane.state, told: pane.state.and_then(word), available: None, turn_id: None })
}

/// What happened to panes after this number. Whoever is too far behind looks at everything.
fn since(bridge: &Bridge, seq: u64) -> (u64, Vec<(EventKind, PaneItem)>) {
    let inner = bridge.0.shared.read();
    let pane = |kind, item: &Item| match item {
        Item::Pane(pane) => Some((kind, PaneItem::clone(pane))),
        _ => None,
    };
    let items = match inner.since(seq) {
        Since::Events(events) => {
            let items = events.iter().filter_map(|e| pane(e.event.kind, e.event.item.as_ref()?));
            items.collect()
        }
        Since::TooOld => inner.view.items(Scope::Panes).filter_map(|item| pane(EventKind::Upsert, &item)).collect(),
    };
    (inner.seq(), items)
}

async fn take(bridge: &Bridge, places: &mut Places, kind: EventKind, pane: PaneItem) {
    let here = pane.agent_id.clone().filter(|_| kind != EventKind::Remove);
    let before = match &here {
        Some(agent_id) => places.insert(pane.identity.clone(), agent_id.clone()),
        None => places.remove(&pane.identity),
    };
    if let Some(gone) = before.filter(|before| Some(before) != here.as_ref())
        && !places.values().any(|agent_id| *agent_id == gone)
    {
        ended(bridge, &gone);
    }
    if let Some(agent_id) = here {
        seen(bridge, &agent_id, &pane).await;
    }
}

async fn seen(bridge: &Bridge, agent_id: &str, pane: &PaneItem) {
    let Some(now) = tracked(pane) else { return };
    let known = bridge.agents().get(agent_id).cloned();
    let Some(before) = known else {
        bridge.agents().insert(agent_id.to_owned(), now);
        let data = json!({
            "agent_type": pane.agent_type, "tmux_pane_id": pane.identity.pane_id, "server": pane.identity.server,
            "session_name": pane.identity.session_name, "working_directory": pane.cwd, "state": pane.state.and_then(word),
        });
        bridge.tell(Kind::SessionCreated, agent_id, data);
        return;
    };
    if (before.state, &before.runtime_id) == (now.state, &now.runtime_id) {
        return;
    }
    if now.state == Some(State::Completed) && before.state != now.state {
        went_on(bridge, agent_id);
        bridge.note_turn(Turn { agent_id, actor: Actor::Agent, intent: Intent::Completion, text: "" }).await;
    }
    let mut agents = bridge.agents();
    let Some(agent) = agents.get_mut(agent_id) else { return };
    let told = agent.told;
    let turn_id = agent.turn_id.take_if(|_| told != now.told);
    *agent = Tracked { available: agent.available, turn_id: agent.turn_id.take(), ..now.clone() };
    drop(agents);
    if told != now.told {
        let data = json!({
            "old_state": told, "new_state": now.told, "state": now.state, "reason_code": pane.reason_code, "turn_id": turn_id,
        });
        bridge.tell(Kind::StateChanged, agent_id, data);
    }
}

/// What an answer led to may be over before anybody could see it: it is told all the same.
fn went_on(bridge: &Bridge, agent_id: &str) {
    let (Some(asked), processing) = (word(State::WaitingInput), word(State::Running)) else { return };
    let mut agents = bridge.agents();
    let Some(agent) = agents.get_mut(agent_id).filter(|agent| agent.told == Some(asked)) else { return };
    let Some(turn_id) = agent.turn_id.take() else { return };
    agent.told = processing;
    drop(agents);
    let data = json!({"old_state": asked, "new_state": processing, "state": State::Running, "turn_id": turn_id});
    bridge.tell(Kind::StateChanged, agent_id, data);
}

fn ended(bridge: &Bridge, agent_id: &str) {
    let Some(gone) = bridge.agents().remove(agent_id) else { return };
    if gone.available == Some(true) {
        bridge.tell(Kind::CommanderAvailability, agent_id, json!({ "available": false }));
    }
    bridge.tell(Kind::SessionEnded, agent_id, json!({ "last_state": gone.told }));
}

/// A prompt went in.
async fn commanded(bridge: &Bridge, heard: &Submitted) {
    let found =
        bridge.agents().iter().find(|(_, agent)| agent.runtime_id == heard.runtime.as_str()).map(|(id, _)| id.clone());
    let Some(agent_id) = found else { return };
    let turn = Turn { agent_id: &agent_id, actor: Actor::User, intent: Intent::Command, text: &heard.text };
    let turn_id = bridge.note_turn(turn).await;
    let mut agents = bridge.agents();
    let Some(agent) = agents.get_mut(&agent_id) else { return };
    if matches!(agent.told, Some("IDLE" | "COMPLETE")) {
        let told = agent.told.replace(COMMANDED);
        drop(agents);
        let data = json!({"old_state": told, "new_state": COMMANDED, "turn_id": turn_id});
        bridge.tell(Kind::StateChanged, &agent_id, data);
    }
}
