//! The agents that are known now. Users add and change them while the daemon runs.

use std::sync::{Arc, PoisonError, RwLock};

use agtmux_agents::Registry;

#[derive(Debug)]
pub(crate) struct Roster(RwLock<Arc<Registry>>);

impl Roster {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self(RwLock::new(registry))
    }

    /// What is in force at this moment, whatever comes later.
    pub(crate) fn now(&self) -> Arc<Registry> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace(&self, registry: Arc<Registry>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }
}
