//! The agents that are known now. Users add and change them while the daemon runs.

use std::sync::{Arc, PoisonError, RwLock};

use agtmux_agents::AgentRegistry;

#[derive(Debug)]
pub(crate) struct CurrentRegistry(RwLock<Arc<AgentRegistry>>);

impl CurrentRegistry {
    pub(crate) fn new(registry: Arc<AgentRegistry>) -> Self {
        Self(RwLock::new(registry))
    }

    /// What is in force at this moment, whatever comes later.
    pub(crate) fn get(&self) -> Arc<AgentRegistry> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, registry: Arc<AgentRegistry>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }
}
