//! Hints from the engine to the observers: which panes to check again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::ServerKey;

use super::signal_router::{HintSender, ObserverHint};

#[derive(Debug, Default)]
pub(crate) struct RecheckHints(Mutex<HashMap<ServerKey, HintSender>>);

/// The subscription of one observer. Ends when dropped.
pub(super) struct RecheckSubscription {
    hints: Arc<RecheckHints>,
    server: ServerKey,
}

impl RecheckHints {
    /// Tells the observer of this pane that its agent sent an event.
    pub(crate) fn request_recheck(&self, pane: &PaneKey) {
        if let Some(observer) = self.observers().get(&pane.server) {
            // The observer may have ended.
            let _ = observer.send(ObserverHint::AgentSentEvent(pane.pane.0));
        }
    }

    pub(super) fn subscribe(self: &Arc<Self>, server: ServerKey, observer: HintSender) -> RecheckSubscription {
        self.observers().insert(server.clone(), observer);
        RecheckSubscription { hints: self.clone(), server }
    }

    fn observers(&self) -> MutexGuard<'_, HashMap<ServerKey, HintSender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RecheckSubscription {
    fn drop(&mut self) {
        self.hints.observers().remove(&self.server);
    }
}
