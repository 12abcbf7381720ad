//! Records which completed agents a person has seen.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::ApiError;
use agtmux_api::wire::SeenReport;
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_core::refs::PaneRef;
use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;

use super::ingest::stopping_error;
use super::step::EngineStep;
use super::{Engine, EngineHandle, EngineInput, ref_error};

/// The panes that attached clients of a server show. Each pane comes with the time of the last key press in the client
/// that shows it.
#[derive(Debug)]
pub(crate) struct PaneVisits {
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) visits: Vec<(PaneId, Timestamp)>,
}

impl EngineHandle {
    pub(crate) async fn apply_visits(&self, visits: PaneVisits) {
        let _ = self.inputs.send(EngineInput::Visits(visits)).await;
    }

    pub(crate) async fn mark_seen(&self, reference: PaneRef) -> Result<SeenReport, ApiError> {
        self.request(|reply| EngineInput::MarkSeen(reference, reply)).await.unwrap_or_else(|| Err(stopping_error()))
    }
}

impl Engine {
    /// Marks an agent as seen if a person visited its pane after the agent's last turn ended. tmux reports times in
    /// whole seconds, so a key press in the second in which the turn ended does not count.
    pub(super) fn apply_visits(&mut self, seen: &PaneVisits, step: &mut EngineStep) {
        if self.fleet.server(&seen.server).is_none_or(|server| server.generation != seen.generation) {
            return;
        }
        for (pane, at) in &seen.visits {
            let key = PaneKey { server: seen.server.clone(), pane: *pane };
            let Some(runtime) = self.fleet.pane(&key).and_then(|pane| pane.runtime.as_ref()) else { continue };
            let ended = self.states.unseen_since(&runtime.id);
            // A visit with a time in the future was recorded before the clock was set back.
            if *at <= step.now && ended.is_some_and(|ended| at.as_second() > ended.as_second()) {
                self.see(runtime.id.clone(), step);
            }
        }
    }

    pub(super) fn mark_seen(&mut self, reference: &PaneRef, step: &mut EngineStep) -> Result<SeenReport, ApiError> {
        let (pane, runtime) = reference.resolve(&self.fleet).map_err(|error| ref_error(&error))?;
        let was_unseen = self.states.unseen_since(&runtime.id).is_some();
        if was_unseen {
            self.see(runtime.id.clone(), step);
        }
        Ok(SeenReport {
            schema_version: SCHEMA_VERSION,
            target: pane.server.target.to_string(),
            server: pane.server.server.to_string(),
            pane_id: pane.pane.to_string(),
            runtime_id: runtime.id.to_string(),
            was_unseen,
        })
    }

    pub(super) fn see(&mut self, runtime: RuntimeId, step: &mut EngineStep) {
        if let Some(pane) = self.runtime_panes.get(&runtime) {
            step.mark_pane_changed(&self.fleet, pane);
        }
        self.resolve(ResolverInput::Seen { runtime }, None, step);
    }

    /// Records whether the runtime has completed a turn that no person has seen. The observers look for visits only on
    /// servers that have such a runtime.
    pub(super) fn note_unseen(&self, runtime: &RuntimeId) {
        let pane = self.states.unseen_since(runtime).and_then(|_| self.runtime_panes.get(runtime));
        self.recheck_hints.set_unseen(runtime, pane.map(|pane| &pane.server));
    }
}
