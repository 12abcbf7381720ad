//! What dashboards of the tmux-bridge kind follow: sessions, their states in that document's words, turns, and whether an
//! agent can be reached. All of it is a rendering of what everyone else sees; nothing is decided here.

mod availability;
mod places;
mod ring;
mod tracker;
mod turns;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use agtmux_api::wire::{Item, PaneItem, Scope};
use agtmux_core::state::State;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedMutexGuard, watch};

use crate::actions::Actions;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::shared::Shared;
use crate::store::Store;

pub(crate) use ring::{Kind, Passed, Ring};
pub(crate) use turns::{Actor, Intent, Turn};
pub(crate) use words::word;

#[derive(Clone)]
pub(crate) struct Bridge(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    engine: EngineHandle,
    actions: Actions,
    store: Arc<Store>,
    clock: Clock,
    ring: Ring,
    followed: Mutex<Followed>,
    /// Some are to be looked at before it is time.
    look: Notify,
    /// When all were looked at last.
    looked: Mutex<Option<Instant>>,
}

/// Who is followed and who is not any more. What is told of them is told while this is held: in the order in which it happened.
#[derive(Debug, Default)]
struct Followed {
    agents: HashMap<String, Tracked>,
    /// Those who said that their session has ended, and the runtime in which it did.
    left: HashMap<String, String>,
}

/// One agent that lives in a pane.
#[derive(Debug, Clone)]
struct Tracked {
    runtime_id: String,
    state: Option<State>,
    /// The word that was told last; it differs from the state's for a moment after a prompt.
    told: Option<&'static str>,
    available: Option<bool>,
    /// Whether it is to be looked at as soon as may be.
    look: bool,
    /// It was there before anybody could follow it: what the first look finds is no change.
    was_there: bool,
    /// The turn that the next change of state belongs to.
    turn_id: Option<String>,
    /// Held by whoever answers it.
    answering: Arc<tokio::sync::Mutex<()>>,
}

impl Bridge {
    /// Begins with those that are there: what existed before is no news.
    pub(crate) fn start(
        shared: Arc<Shared>,
        engine: EngineHandle,
        actions: Actions,
        store: Arc<Store>,
        clock: Clock,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let ring = Ring::new(clock.now());
        let bridge = Self(Arc::new(Inner {
            shared,
            engine,
            actions,
            store,
            clock,
            ring,
            followed: Mutex::default(),
            look: Notify::new(),
            looked: Mutex::default(),
        }));
        tokio::spawn(tracker::run(bridge.clone(), stopping.clone()));
        tokio::spawn(availability::run(bridge.clone(), stopping));
        bridge
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.0.ring
    }

    /// The runtime in which this agent lives now.
    pub(crate) fn runtime_of(&self, agent_id: &str) -> Option<String> {
        self.followed().agents.get(agent_id).map(|agent| agent.runtime_id.clone())
    }

    /// Every runtime in which it lives: a session may have been opened twice.
    pub(crate) fn runtimes_of(&self, agent_id: &str) -> BTreeSet<String> {
        self.panes_of(agent_id).into_iter().filter_map(|pane| pane.runtime_id).collect()
    }

    fn panes_of(&self, agent_id: &str) -> Vec<PaneItem> {
        let inner = self.0.shared.read();
        let panes = inner.view.items(Scope::Panes).filter_map(|item| match item {
            Item::Pane(pane) if pane.agent_id.as_deref() == Some(agent_id) => Some(*pane),
            _ => None,
        });
        panes.collect()
    }

    /// One at a time answers an agent: what comes of it belongs to that answer.
    pub(crate) async fn answering(&self, agent_id: &str) -> Option<OwnedMutexGuard<()>> {
        let one_at_a_time = self.followed().agents.get(agent_id)?.answering.clone();
        Some(one_at_a_time.lock_owned().await)
    }

    /// It says that its session has ended: it is not followed any more, whatever still runs in its pane. Of one that is open twice
    /// only the place that is followed can say so.
    pub(crate) fn leave(&self, agent_id: &str, speaker: Option<&str>) {
        let is_open_twice = self.runtimes_of(agent_id).len() > 1;
        let mut followed = self.followed();
        let Some(runtime_id) = followed.agents.get(agent_id).map(|agent| agent.runtime_id.clone()) else { return };
        let speaks = match speaker {
            Some(speaker) => speaker == runtime_id,
            None => !is_open_twice,
        };
        if speaks {
            followed.left.insert(agent_id.to_owned(), runtime_id);
            tracker::ended(self, &mut followed, agent_id);
        }
    }

    /// It says that its session goes on after all.
    pub(crate) fn come_back(&self, agent_id: &str) {
        let panes = self.panes_of(agent_id);
        let mut followed = self.followed();
        if followed.left.remove(agent_id).is_some()
            && let Some(pane) = panes.first()
        {
            tracker::begun(self, &mut followed, agent_id, pane);
        }
    }

    pub(crate) fn state_of(&self, agent_id: &str) -> Option<State> {
        self.followed().agents.get(agent_id).and_then(|agent| agent.state)
    }

    /// How many agents are tracked, and how many of them can be reached.
    pub(crate) fn tally(&self) -> (u32, u32) {
        let agents = &self.followed().agents;
        let available = agents.values().filter(|agent| agent.available == Some(true)).count();
        (count(agents.len()), count(available))
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: Kind, agent_id: &str, mut data: Value) {
        let now: Timestamp = self.0.clock.now();
        if let Some(fields) = data.as_object_mut() {
            fields.insert("agent_id".into(), json!(agent_id));
            fields.insert("timestamp".into(), json!(now));
        }
        self.0.ring.publish(kind, agent_id, &data);
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
