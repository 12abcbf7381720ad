//! Hints from the engine to the observers. They say which panes to check again, and on which servers to look for a
//! person who visits a completed agent.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::ServerKey;
use agtmux_core::runtime::RuntimeId;

use super::reported_agents::AgentReport;
use super::signal_router::{HintSender, ObserverHint};

#[derive(Debug, Default)]
pub(crate) struct RecheckHints {
    observers: Mutex<HashMap<ServerKey, HintSender>>,
    /// The agents with a completed turn that no person has seen, and the server of each.
    unseen: Mutex<BTreeMap<RuntimeId, ServerKey>>,
}

impl RecheckHints {
    /// Asks the observer of this pane to check it again, because the agent in the pane sent an event.
    pub(crate) fn request_recheck(&self, pane: &PaneKey) {
        if let Some(observer) = self.observers().get(&pane.server) {
            // The observer may have ended.
            let _ = observer.send(ObserverHint::AgentSentEvent(pane.pane.0));
        }
    }

    /// Asks the observer of this pane to look for a dialog at once. Returns false if the pane has no observer.
    pub(crate) fn look_for_dialog(&self, pane: &PaneKey) -> bool {
        let observers = self.observers();
        let observer = observers.get(&pane.server);
        observer.is_some_and(|observer| observer.send(ObserverHint::AgentAsked(pane.pane.0)).is_ok())
    }

    /// Tells the observer of this pane that an agent inside the pane has sent an event about itself.
    pub(crate) fn report_agent(&self, pane: &PaneKey, report: AgentReport) {
        if let Some(observer) = self.observers().get(&pane.server) {
            let _ = observer.send(ObserverHint::AgentReported(pane.pane.0, report));
        }
    }

    /// Records whether the agent has completed a turn that no person has seen. `server` is the server of such an agent,
    /// and `None` if there is no such turn.
    pub(crate) fn set_unseen(&self, runtime: &RuntimeId, server: Option<&ServerKey>) {
        let mut unseen = self.unseen();
        match server {
            Some(server) => unseen.insert(runtime.clone(), server.clone()),
            None => unseen.remove(runtime),
        };
    }

    /// Whether an agent on this server has completed a turn that no person has seen.
    pub(super) fn has_unseen(&self, server: &ServerKey) -> bool {
        self.unseen().values().any(|other| other == server)
    }

    /// Registers an observer for the hints about this server. Also removes observers that have ended.
    pub(super) fn subscribe(&self, server: ServerKey, observer: HintSender) {
        let mut observers = self.observers();
        observers.retain(|_, observer| !observer.is_closed());
        observers.insert(server, observer);
    }

    /// For tests: returns hints whose only observer is the returned receiver.
    #[cfg(test)]
    pub(crate) fn with_observer(server: ServerKey) -> (Self, tokio::sync::mpsc::UnboundedReceiver<ObserverHint>) {
        let (observer, hints) = tokio::sync::mpsc::unbounded_channel();
        let recheck_hints = Self::default();
        recheck_hints.subscribe(server, observer);
        (recheck_hints, hints)
    }

    fn observers(&self) -> MutexGuard<'_, HashMap<ServerKey, HintSender>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unseen(&self) -> MutexGuard<'_, BTreeMap<RuntimeId, ServerKey>> {
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
