//! From what everyone sees to what bridges follow.

use std::collections::hash_map::Entry;

use agtmux_api::wire::{EventKind, Item, PaneItem, Scope, WatchEvent};
use agtmux_core::state::State;
use serde_json::json;
use tokio::sync::{broadcast, watch};

use super::places::{Places, Shift};
use super::words::{COMMANDED, word};
use super::{Actor, Bridge, Followed, Intent, Kind, Tracked, Turn};
use crate::engine::Submitted;
use crate::shared::Since;

pub(super) async fn run(bridge: Bridge, mut stopping: watch::Receiver<bool>) {
    let mut latest = bridge.0.shared.follow();
    let mut submitted = bridge.0.engine.submitted();
    let mut places = Places::default();
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
            None => {
                let (now, shifts) = since(&bridge, seq, &places);
                seq = now;
                take(&bridge, &mut places, shifts).await;
            }
            Some(Ok(heard)) => commanded(&bridge, &heard).await,
            // Turns that nobody could follow are in the history of events; whoever reads must not think that it has them.
            Some(Err(broadcast::error::RecvError::Lagged(_))) => bridge.0.ring.lose(),
            Some(Err(broadcast::error::RecvError::Closed)) => return,
        }
    }
}

fn begin(bridge: &Bridge, places: &mut Places) -> u64 {
    let inner = bridge.0.shared.read();
    for item in inner.view.items(Scope::Panes) {
        if let Item::Pane(pane) = item
            && let (Some(agent_id), Some(tracked)) = (pane.agent_id.clone(), tracked(&pane))
        {
            places.put(pane.identity.clone(), Some(&pane));
            bridge.followed().agents.entry(agent_id).or_insert(Tracked { was_there: true, ..tracked });
        }
    }
    bridge.0.look.notify_one();
    inner.seq()
}

fn tracked(pane: &PaneItem) -> Option<Tracked> {
    let runtime_id = pane.runtime_id.clone()?;
    Some(Tracked {
        runtime_id,
        state: pane.state,
        told: pane.state.and_then(word),
        available: None,
        look: true,
        was_there: false,
        turn_id: None,
        answering: Default::default(),
    })
}

/// What happened to panes after this number. Whoever is too far behind looks at everything.
fn since(bridge: &Bridge, seq: u64, places: &Places) -> (u64, Vec<Shift>) {
    let inner = bridge.0.shared.read();
    let shifts = match inner.since(seq) {
        Since::Events(events) => {
            let shift = |event: &WatchEvent| match event.item.as_ref()? {
                Item::Pane(pane) => {
                    let now = Some(PaneItem::clone(pane)).filter(|_| event.kind != EventKind::Remove);
                    Some((pane.identity.clone(), now))
                }
                _ => None,
            };
            events.iter().filter_map(|published| shift(&published.event)).collect()
        }
        Since::TooOld => {
            let panes = inner.view.items(Scope::Panes).filter_map(|item| match item {
                Item::Pane(pane) => Some(*pane),
                _ => None,
            });
            places.compared_with(panes.collect())
        }
    };
    (inner.seq(), shifts)
}

/// Who moves leaves the old place before it is in the new one: only when all is taken it is known who has gone.
async fn take(bridge: &Bridge, places: &mut Places, shifts: Vec<Shift>) {
    let mut left = Vec::new();
    for (place, pane) in shifts {
        left.extend(places.put(place, pane.as_ref()));
        if let Some(pane) = pane {
            seen(bridge, places, &pane).await;
        }
    }
    for agent_id in left {
        match places.of(&agent_id) {
            // It may have been followed where it is no longer.
            Some(pane) => seen(bridge, places, pane).await,
            None => {
                let mut followed = bridge.followed();
                followed.left.remove(&agent_id);
                ended(bridge, &mut followed, &agent_id);
            }
        }
    }
}

async fn seen(bridge: &Bridge, places: &Places, pane: &PaneItem) {
    let (Some(agent_id), Some(now)) = (pane.agent_id.as_deref(), tracked(pane)) else { return };
    let before = {
        let mut followed = bridge.followed();
        if followed.left.get(agent_id) == Some(&now.runtime_id) {
            return;
        }
        followed.left.remove(agent_id);
        match followed.agents.get(agent_id) {
            Some(before) => before.clone(),
            None => return begun(bridge, &mut followed, agent_id, pane),
        }
    };
    let moves = before.runtime_id != now.runtime_id;
    // A session that is open twice is followed where it was first.
    if (!moves && before.state == now.state) || (moves && places.has(agent_id, &before.runtime_id)) {
        return;
    }
    if now.state == Some(State::Completed) && before.state != now.state {
        went_on(bridge, agent_id);
        bridge.note_turn(Turn { agent_id, actor: Actor::Agent, intent: Intent::Completion, text: "" }).await;
    }
    changed(bridge, agent_id, pane, now);
}

fn changed(bridge: &Bridge, agent_id: &str, pane: &PaneItem, now: Tracked) {
    let mut followed = bridge.followed();
    let Some(agent) = followed.agents.get_mut(agent_id) else { return };
    // It may be out of reach now, or back.
    let unsure = |state: Option<State>| state == Some(State::Unknown);
    let look = agent.look || agent.runtime_id != now.runtime_id || unsure(agent.state) != unsure(now.state);
    let (told, tells) = (agent.told, now.told);
    let turn_id = agent.turn_id.take_if(|_| told != tells);
    *agent = Tracked { runtime_id: now.runtime_id, state: now.state, told: tells, look, ..agent.clone() };
    if look {
        bridge.0.look.notify_one();
    }
    if told != tells {
        let data = json!({
            "old_state": told, "new_state": tells, "state": now.state, "reason_code": pane.reason_code, "turn_id": turn_id,
        });
        bridge.tell(Kind::StateChanged, agent_id, data);
    }
}

/// Nobody who is followed begins anew.
pub(super) fn begun(bridge: &Bridge, followed: &mut Followed, agent_id: &str, pane: &PaneItem) {
    let (Some(now), Entry::Vacant(place)) = (tracked(pane), followed.agents.entry(agent_id.to_owned())) else { return };
    place.insert(now);
    let data = json!({
        "agent_type": pane.agent_type, "tmux_pane_id": pane.identity.pane_id, "server": pane.identity.server,
        "session_name": pane.identity.session_name, "working_directory": pane.cwd, "state": pane.state.and_then(word),
    });
    bridge.tell(Kind::SessionCreated, agent_id, data);
    bridge.0.look.notify_one();
}

/// What an answer led to may be over before anybody could see it: it is told all the same.
fn went_on(bridge: &Bridge, agent_id: &str) {
    let (Some(asked), processing) = (word(State::WaitingInput), word(State::Running)) else { return };
    let mut followed = bridge.followed();
    let Some(agent) = followed.agents.get_mut(agent_id).filter(|agent| agent.told == Some(asked)) else { return };
    let Some(turn_id) = agent.turn_id.take() else { return };
    agent.told = processing;
    let data = json!({"old_state": asked, "new_state": processing, "state": State::Running, "turn_id": turn_id});
    bridge.tell(Kind::StateChanged, agent_id, data);
}

pub(super) fn ended(bridge: &Bridge, followed: &mut Followed, agent_id: &str) {
    let Some(gone) = followed.agents.remove(agent_id) else { return };
    if gone.available == Some(true) {
        bridge.tell(Kind::CommanderAvailability, agent_id, json!({ "available": false }));
    }
    bridge.tell(Kind::SessionEnded, agent_id, json!({ "last_state": gone.told }));
}

/// A prompt went in.
async fn commanded(bridge: &Bridge, heard: &Submitted) {
    let is_meant = |agent: &Tracked| agent.runtime_id == heard.runtime.as_str();
    let found = bridge.followed().agents.iter().find(|(_, agent)| is_meant(agent)).map(|(id, _)| id.clone());
    let Some(agent_id) = found else { return };
    let turn = Turn { agent_id: &agent_id, actor: Actor::User, intent: Intent::Command, text: &heard.text };
    let turn_id = bridge.note_turn(turn).await;
    let mut followed = bridge.followed();
    let Some(agent) = followed.agents.get_mut(&agent_id) else { return };
    if matches!(agent.told, Some("IDLE" | "COMPLETE")) {
        let told = agent.told.replace(COMMANDED);
        let data = json!({"old_state": told, "new_state": COMMANDED, "turn_id": turn_id});
        bridge.tell(Kind::StateChanged, &agent_id, data);
    }
}
