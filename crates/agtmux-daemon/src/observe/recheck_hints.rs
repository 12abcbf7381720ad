//! The way back from the engine to the observers: not an order, a hint where to look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::ServerKey;

use super::signal_router::{HintSender, ObserverHint};

#[derive(Debug, Default)]
pub(crate) struct RecheckHints(Mutex<HashMap<ServerKey, HintSender>>);

/// A post that is left when it is dropped.
pub(super) struct RecheckSubscription {
    hints: Arc<RecheckHints>,
    server: ServerKey,
}

impl RecheckHints {
    /// The agent in this pane said something.
    pub(crate) fn request_recheck(&self, pane: &PaneKey) {
        if let Some(observer) = self.observers().get(&pane.server) {
            // An observer that has ended needs no notices.
            let _ = observer.send(ObserverHint::AgentSpoke(pane.pane.0));
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
