//! The way back from the engine to the observers: not an order, a hint where to look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::ServerKey;

use super::switchboard::{Notice, Notices};

#[derive(Debug, Default)]
pub(crate) struct Lookout(Mutex<HashMap<ServerKey, Notices>>);

/// A post that is left when it is dropped.
pub(super) struct Post {
    lookout: Arc<Lookout>,
    server: ServerKey,
}

impl Lookout {
    /// The agent in this pane said something.
    pub(crate) fn look(&self, pane: &PaneKey) {
        if let Some(observer) = self.posts().get(&pane.server) {
            // An observer that has ended needs no notices.
            let _ = observer.send(Notice::AgentSpoke(pane.pane.0));
        }
    }

    pub(super) fn man(self: &Arc<Self>, server: ServerKey, observer: Notices) -> Post {
        self.posts().insert(server.clone(), observer);
        Post { lookout: self.clone(), server }
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<ServerKey, Notices>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.lookout.posts().remove(&self.server);
    }
}
