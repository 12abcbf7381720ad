//! What is known of one pane and whoever lives in it, for whoever is about to act on it.

use agtmux_agents::native::NativeEvent;
use agtmux_api::error::ApiError;
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::Source;
use agtmux_core::fleet::{Pane, PaneKey};
use agtmux_core::ids::Generation;
use agtmux_core::refs::PaneRef;
use agtmux_core::runtime::{Runtime, RuntimeId, StateRecord};

use super::{Engine, ref_error};

/// One pane at one moment.
#[derive(Debug, Clone)]
pub(crate) struct LocatedPane {
    pub(crate) key: PaneKey,
    pub(crate) generation: Generation,
    pub(crate) pane: Pane,
    /// Whether its server answers.
    pub(crate) reachable: bool,
    pub(crate) agent: Option<LocatedAgent>,
}

/// The agent in it.
#[derive(Debug, Clone)]
pub(crate) struct LocatedAgent {
    pub(crate) runtime: Runtime,
    pub(crate) record: StateRecord,
    pub(crate) dialog: Option<Dialog>,
    /// It has spoken by hooks, and those tell when it takes a prompt.
    pub(crate) reports_submissions: bool,
    /// What it is called on its host, where that is another one.
    pub(crate) remote_runtime_id: Option<String>,
}

/// An agent told that it took a prompt.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedPrompt {
    pub(crate) runtime: RuntimeId,
    pub(crate) event_id: String,
    /// Without its secrets; empty where the agent does not say.
    pub(crate) text: String,
}

impl LocatedPane {
    /// What a person writes to name it.
    pub(crate) fn reference(&self) -> PaneRef {
        PaneRef::shortest(&self.key, &self.pane)
    }
}

impl Engine {
    pub(super) fn locate(&self, reference: &PaneRef) -> Result<LocatedPane, ApiError> {
        let key = reference.locate(&self.fleet).map_err(|error| ref_error(&error))?;
        let gone = || ref_error(&agtmux_core::refs::RefError::NotFound(reference.to_string()));
        let server = self.fleet.server(&key.server).ok_or_else(gone)?;
        let pane = self.fleet.pane(&key).ok_or_else(gone)?.clone();
        let living = pane.runtime.clone().and_then(|runtime| {
            let record = self.states.state(&runtime.id)?.clone();
            let dialog = self.states.dialog(&runtime.id).cloned();
            let tells = self.reports_submissions(&runtime);
            let far = self.remote_agents.get(&runtime.id).and_then(|far| far.runtime_id.clone());
            Some(LocatedAgent { runtime, record, dialog, reports_submissions: tells, remote_runtime_id: far })
        });
        let reachable = server.outage.is_none();
        Ok(LocatedPane { generation: server.generation, key, pane, reachable, agent: living })
    }

    fn reports_submissions(&self, runtime: &Runtime) -> bool {
        let heard = self.states.rated_observations(&runtime.id, self.clock.now());
        heard.iter().any(|standing| standing.observation.source == Source::Hook)
            && self.registry.reports_submissions(runtime.agent_type.as_str())
    }

    pub(super) fn publish_submitted(&self, runtime: &RuntimeId, event_id: &str, event: NativeEvent<'_>) {
        // Nobody waits, mostly.
        if self.submitted.receiver_count() == 0 {
            return;
        }
        let Some(agent_type) = self.states.agent_type(runtime) else { return };
        if let Some(text) = self.registry.submitted_prompt(agent_type.as_str(), event) {
            let _ =
                self.submitted.send(SubmittedPrompt { runtime: runtime.clone(), event_id: event_id.to_owned(), text });
        }
    }
}
