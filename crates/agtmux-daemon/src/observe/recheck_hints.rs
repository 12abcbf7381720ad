//! Hints from the engine to the observers: which panes to check again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::ServerKey;

use super::signal_router::{HintSender, ObserverHint};

#[derive(Debug, Default)]
pub(crate) struct RecheckHints(Mutex<HashMap<ServerKey, HintSender>>);

impl RecheckHints {
    /// Tells the observer of this pane that the agent in the pane sent an event.
    pub(crate) fn request_recheck(&self, pane: &PaneKey) {
        if let Some(observer) = self.observers().get(&pane.server) {
            // The observer may have ended.
            let _ = observer.send(ObserverHint::AgentSentEvent(pane.pane.0));
        }
    }

    /// From now on, sends hints about this server to this observer. Also removes observers that have ended.
    pub(super) fn subscribe(&self, server: ServerKey, observer: HintSender) {
        let mut observers = self.observers();
        observers.retain(|_, observer| !observer.is_closed());
        observers.insert(server, observer);
    }

    fn observers(&self) -> MutexGuard<'_, HashMap<ServerKey, HintSender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
