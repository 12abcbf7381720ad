//! What dashboards of the tmux-bridge kind follow: sessions, their states in that document's words, turns, and whether an
//! agent can be reached. All of it is a rendering of what everyone else sees; nothing is decided here.

mod agent_panes;
mod availability;
mod ring;
mod state_names;
mod tracker;
mod turns;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use agtmux_api::wire::{ListScope, PaneItem, WatchItem};
use agtmux_core::state::State;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedMutexGuard, watch};

use crate::actions::Actions;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::event_log::EventLog;
use crate::store::Store;

pub(crate) use ring::{BridgeEvent, BridgeEventKind, EventRing};
pub(crate) use state_names::bridge_state;
pub(crate) use turns::{BridgeTurn, TurnActor, TurnIntent};

#[derive(Clone)]
pub(crate) struct Bridge(Arc<Inner>);

struct Inner {
    shared: Arc<EventLog>,
    engine: EngineHandle,
    actions: Actions,
    store: Arc<Store>,
    clock: Clock,
    ring: EventRing,
    tracked: Mutex<TrackedAgents>,
    /// Some are to be looked at before it is time.
    check_requested: Notify,
    /// When all were looked at last.
    last_full_check: Mutex<Option<Instant>>,
}

/// Who is followed and who is not any more. What is told of them is told while this is held: in the order in which it happened.
#[derive(Debug, Default)]
struct TrackedAgents {
    agents: HashMap<String, TrackedAgent>,
    /// Those who said that their session has ended, and the runtime in which it did.
    ended: HashMap<String, String>,
}

/// One agent that lives in a pane.
#[derive(Debug, Clone)]
struct TrackedAgent {
    runtime_id: String,
    state: Option<State>,
    /// The word that was told last; it differs from the state's for a moment after a prompt.
    published_state: Option<&'static str>,
    available: Option<bool>,
    /// Whether it is to be looked at as soon as may be.
    needs_check: bool,
    /// It was there before anybody could follow it: what the first look finds is no change.
    existed_at_start: bool,
    /// The turn that the next change of state belongs to.
    turn_id: Option<String>,
    /// Held by whoever answers it.
    answer_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Bridge {
    /// Begins with those that are there: what existed before is no news.
    pub(crate) fn start(
        shared: Arc<EventLog>,
        engine: EngineHandle,
        actions: Actions,
        store: Arc<Store>,
        clock: Clock,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let ring = EventRing::new(clock.now());
        let bridge = Self(Arc::new(Inner {
            shared,
            engine,
            actions,
            store,
            clock,
            ring,
            tracked: Mutex::default(),
            check_requested: Notify::new(),
            last_full_check: Mutex::default(),
        }));
        tokio::spawn(tracker::run(bridge.clone(), stopping.clone()));
        tokio::spawn(availability::run(bridge.clone(), stopping));
        bridge
    }

    pub(crate) fn ring(&self) -> &EventRing {
        &self.0.ring
    }

    /// The runtime in which this agent lives now.
    pub(crate) fn runtime_of(&self, agent_id: &str) -> Option<String> {
        self.tracked().agents.get(agent_id).map(|agent| agent.runtime_id.clone())
    }

    /// Every runtime in which it lives: a session may have been opened twice.
    pub(crate) fn runtimes_of(&self, agent_id: &str) -> BTreeSet<String> {
        self.panes_of(agent_id).into_iter().filter_map(|pane| pane.runtime_id).collect()
    }

    fn panes_of(&self, agent_id: &str) -> Vec<PaneItem> {
        let inner = self.0.shared.read();
        let panes = inner.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) if pane.agent_id.as_deref() == Some(agent_id) => Some(*pane),
            _ => None,
        });
        panes.collect()
    }

    /// One at a time answers an agent: what comes of it belongs to that answer.
    pub(crate) async fn lock_answers(&self, agent_id: &str) -> Option<OwnedMutexGuard<()>> {
        let one_at_a_time = self.tracked().agents.get(agent_id)?.answer_lock.clone();
        Some(one_at_a_time.lock_owned().await)
    }

    /// It says that its session has ended: it is not followed any more, whatever still runs in its pane. Of one that is open twice
    /// only the place that is followed can say so.
    pub(crate) fn session_ended(&self, agent_id: &str, speaker: Option<&str>) {
        let is_open_twice = self.runtimes_of(agent_id).len() > 1;
        let mut followed = self.tracked();
        let Some(runtime_id) = followed.agents.get(agent_id).map(|agent| agent.runtime_id.clone()) else { return };
        let speaks = match speaker {
            Some(speaker) => speaker == runtime_id,
            None => !is_open_twice,
        };
        if speaks {
            followed.ended.insert(agent_id.to_owned(), runtime_id);
            tracker::stop_tracking(self, &mut followed, agent_id);
        }
    }

    /// It says that its session goes on after all.
    pub(crate) fn session_resumed(&self, agent_id: &str) {
        let panes = self.panes_of(agent_id);
        let mut followed = self.tracked();
        if followed.ended.remove(agent_id).is_some()
            && let Some(pane) = panes.first()
        {
            tracker::start_tracking(self, &mut followed, agent_id, pane);
        }
    }

    pub(crate) fn state_of(&self, agent_id: &str) -> Option<State> {
        self.tracked().agents.get(agent_id).and_then(|agent| agent.state)
    }

    /// How many agents are tracked, and how many of them can be reached.
    pub(crate) fn agent_counts(&self) -> (u32, u32) {
        let agents = &self.tracked().agents;
        let available = agents.values().filter(|agent| agent.available == Some(true)).count();
        (to_u32(agents.len()), to_u32(available))
    }

    fn tracked(&self) -> MutexGuard<'_, TrackedAgents> {
        self.0.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, kind: BridgeEventKind, agent_id: &str, mut data: Value) {
        let now: Timestamp = self.0.clock.now();
        if let Some(fields) = data.as_object_mut() {
            fields.insert("agent_id".into(), json!(agent_id));
            fields.insert("timestamp".into(), json!(now));
        }
        self.0.ring.publish(kind, agent_id, &data);
    }
}

fn to_u32(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
