//! The event stream for tmux-bridge dashboards. Its events report sessions, states, turns and availability, and use the
//! names from the tmux-bridge document. The bridge translates the states of the engine and decides no state itself.

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
use crate::background::BackgroundTasks;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::event_log::{EventLog, EventLogState};
use crate::store::Store;

pub(crate) use ring::{BridgeEvent, BridgeEventKind, EventRing};
pub(crate) use state_names::bridge_state;
pub(crate) use turns::{BridgeTurn, TurnIntent};

#[derive(Clone)]
pub(crate) struct Bridge(Arc<Inner>);

struct Inner {
    event_log: Arc<EventLog>,
    engine: EngineHandle,
    actions: Actions,
    store: Arc<Store>,
    clock: Clock,
    ring: EventRing,
    tracked: Mutex<TrackedAgents>,
    /// Wakes the availability check before its next interval. The check then looks at the agents with `needs_check`.
    check_requested: Notify,
    /// When the last check of all agents started.
    last_full_check: Mutex<Option<Instant>>,
}

/// The agents that the bridge follows. Events are published only while the lock around this struct is held, so that the
/// order of the events matches the order of the changes.
#[derive(Debug, Default)]
struct TrackedAgents {
    agents: HashMap<String, TrackedAgent>,
    /// The runtime in which each agent ended its session, for the agents that reported the end.
    ended: HashMap<String, String>,
}

/// One agent that runs in a pane.
#[derive(Debug, Clone)]
struct TrackedAgent {
    runtime_id: String,
    state: Option<State>,
    /// The last published state name. When an agent at rest gets a prompt, the name becomes `COMMANDED` until the
    /// agent's state changes.
    published_state: Option<&'static str>,
    available: Option<bool>,
    /// Whether the availability of the agent must be checked as soon as possible.
    needs_check: bool,
    /// Whether the agent existed before the bridge started. The first check result of such an agent is not published.
    existed_at_start: bool,
    /// The id of the turn that the next state change belongs to.
    turn_id: Option<String>,
    /// A caller holds this lock while it answers the agent's dialog.
    answer_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Bridge {
    /// Starts the bridge. The bridge tracks agents that already run, but does not publish them as new sessions.
    pub(crate) fn start(
        event_log: Arc<EventLog>,
        engine: EngineHandle,
        actions: Actions,
        store: Arc<Store>,
        clock: Clock,
        stopping: watch::Receiver<bool>,
        background: &BackgroundTasks,
    ) -> Self {
        let ring = EventRing::new(clock.now());
        let bridge = Self(Arc::new(Inner {
            event_log,
            engine,
            actions,
            store,
            clock,
            ring,
            tracked: Mutex::default(),
            check_requested: Notify::new(),
            last_full_check: Mutex::default(),
        }));
        let (tracked, is_stopping) = (bridge.clone(), stopping.clone());
        background.keep("bridge_tracker", move || tracker::run(tracked.clone(), is_stopping.clone()));
        let checked = bridge.clone();
        background.keep("bridge_availability", move || availability::run(checked.clone(), stopping.clone()));
        bridge
    }

    pub(crate) fn ring(&self) -> &EventRing {
        &self.0.ring
    }

    /// The runtime in which this agent runs now.
    pub(crate) fn runtime_of(&self, agent_id: &str) -> Option<String> {
        self.tracked().agents.get(agent_id).map(|agent| agent.runtime_id.clone())
    }

    /// All runtimes of the agent. There are several if its session is open in several panes.
    pub(crate) fn runtimes_of(&self, agent_id: &str) -> BTreeSet<String> {
        self.panes_of(agent_id).into_iter().filter_map(|pane| pane.runtime_id).collect()
    }

    fn panes_of(&self, agent_id: &str) -> Vec<PaneItem> {
        let log = self.0.event_log.read();
        panes(&log).filter(|pane| pane.agent_id.as_deref() == Some(agent_id)).collect()
    }

    /// Locks the answers to this agent: no other caller can answer it until the guard is dropped. The bridge can
    /// therefore attribute the next state change to this caller's answer.
    pub(crate) async fn lock_answers(&self, agent_id: &str) -> Option<OwnedMutexGuard<()>> {
        let answer_lock = self.tracked().agents.get(agent_id)?.answer_lock.clone();
        Some(answer_lock.lock_owned().await)
    }

    /// Handles a session-end event: the agent is no longer followed, even if its process still runs. If the session is
    /// open in several panes, the bridge follows the agent in one of them and ignores events from the others.
    pub(crate) fn session_ended(&self, agent_id: &str, source_runtime: Option<&str>) {
        let is_open_twice = self.runtimes_of(agent_id).len() > 1;
        let mut tracked = self.tracked();
        let Some(runtime_id) = tracked.agents.get(agent_id).map(|agent| agent.runtime_id.clone()) else { return };
        let is_followed_runtime = match source_runtime {
            Some(source_runtime) => source_runtime == runtime_id,
            None => !is_open_twice,
        };
        if is_followed_runtime {
            tracked.ended.insert(agent_id.to_owned(), runtime_id);
            tracker::stop_tracking(self, &mut tracked, agent_id);
        }
    }

    /// Handles a session-start event of an agent whose session had ended.
    pub(crate) fn session_resumed(&self, agent_id: &str) {
        let panes = self.panes_of(agent_id);
        let mut tracked = self.tracked();
        if tracked.ended.remove(agent_id).is_some()
            && let Some(pane) = panes.first()
        {
            tracker::start_tracking(self, &mut tracked, agent_id, pane);
        }
    }

    pub(crate) fn state_of(&self, agent_id: &str) -> Option<State> {
        self.tracked().agents.get(agent_id).and_then(|agent| agent.state)
    }

    /// The number of tracked agents and how many of them are available.
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

fn panes(log: &EventLogState) -> impl Iterator<Item = PaneItem> {
    log.view.items(ListScope::Panes).filter_map(|item| match item {
        WatchItem::Pane(pane) => Some(*pane),
        _ => None,
    })
}

fn to_u32(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
