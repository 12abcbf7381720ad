//! The names of agents.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::runtime::RuntimeId;

use super::ingest::stopping_error;
use super::step::EngineStep;
use super::{Engine, EngineHandle, EngineInput};

impl EngineHandle {
    /// Gives an agent a name. Fails if another agent of its host has this name.
    pub(crate) async fn name_agent(&self, runtime: RuntimeId, name: String) -> Result<(), ApiError> {
        let named = self.request(|reply| EngineInput::NameAgent(runtime, name, reply)).await;
        named.unwrap_or_else(|| Err(stopping_error()))
    }
}

impl Engine {
    pub(super) fn name_agent(
        &mut self,
        runtime: &RuntimeId,
        name: &str,
        step: &mut EngineStep,
    ) -> Result<(), ApiError> {
        let Some(key) = self.runtime_panes.get(runtime).cloned() else {
            let error = ApiError::new(ErrorCode::RuntimeStale, "the agent has ended");
            return Err(error.with_hint("agtmux list panes"));
        };
        let target = &key.server.target;
        let others = self.runtime_panes.iter().filter(|(id, pane)| *id != runtime && pane.server.target == *target);
        let mut others = others.filter_map(|(_, pane)| self.fleet.pane(pane)?.runtime.as_ref());
        if others.any(|other| other.name.as_deref() == Some(name)) {
            let error = ApiError::new(ErrorCode::Precondition, format!("another agent is already named '{name}'"));
            return Err(error.with_hint("choose another name, or see the names with: agtmux list panes"));
        }
        if self.fleet.name_runtime(&key, runtime, name) {
            step.changed_evidence.insert(runtime.clone());
            step.mark_pane_changed(&self.fleet, &key);
        }
        Ok(())
    }
}
