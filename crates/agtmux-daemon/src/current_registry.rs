//! The agent registry that the daemon uses now. The daemon replaces it when users add or change manifests.

use std::sync::{Arc, PoisonError, RwLock};

use agtmux_agents::AgentRegistry;

#[derive(Debug)]
pub(crate) struct CurrentRegistry(RwLock<Arc<AgentRegistry>>);

impl CurrentRegistry {
    pub(crate) fn new(registry: Arc<AgentRegistry>) -> Self {
        Self(RwLock::new(registry))
    }

    /// Returns the current registry. If the registry is replaced later, the returned one does not change.
    pub(crate) fn get(&self) -> Arc<AgentRegistry> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, registry: Arc<AgentRegistry>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }
}
