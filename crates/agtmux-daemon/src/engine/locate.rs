//! Looks up a pane and its agent for an action.

use agtmux_agents::native::NativeEvent;
use agtmux_api::error::ApiError;
use agtmux_core::asked_command::AskedCommand;
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::Source;
use agtmux_core::fleet::{Pane, PaneKey};
use agtmux_core::ids::Generation;
use agtmux_core::refs::PaneRef;
use agtmux_core::runtime::{Runtime, RuntimeId, StateRecord};

use super::{Engine, ref_error};
use crate::submissions::Submission;

/// A pane and its agent, as the engine knew them at one moment.
#[derive(Debug, Clone)]
pub(crate) struct LocatedPane {
    pub(crate) key: PaneKey,
    pub(crate) generation: Generation,
    pub(crate) pane: Pane,
    /// Whether the pane's server responds.
    pub(crate) reachable: bool,
    pub(crate) agent: Option<LocatedAgent>,
    /// The shortest reference that names only this pane.
    shortest: PaneRef,
}

/// The agent in a located pane.
#[derive(Debug, Clone)]
pub(crate) struct LocatedAgent {
    pub(crate) runtime: Runtime,
    pub(crate) record: StateRecord,
    pub(crate) dialog: Option<Dialog>,
    /// The commands for which the agent itself has reported that it asks for approval.
    pub(crate) asked: Vec<AskedCommand>,
    /// Whether the agent has sent hook events and its adapter recognises submitted prompts in them.
    pub(crate) reports_submissions: bool,
    /// The id that the agent's own host uses for this runtime. `None` if the agent runs on this host, or if agtmux does
    /// not know that id yet.
    pub(crate) remote_runtime_id: Option<String>,
    /// The last submission of a text to the agent by agtmux.
    pub(crate) submission: Option<Submission>,
}

/// A prompt that an agent has accepted, as the agent itself reports.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedPrompt {
    pub(crate) runtime: RuntimeId,
    pub(crate) event_id: String,
    /// The redacted text of the prompt. Empty if the agent does not report the text.
    pub(crate) text: String,
}

impl LocatedPane {
    /// The shortest reference that names only this pane.
    pub(crate) fn reference(&self) -> &PaneRef {
        &self.shortest
    }
}

impl Engine {
    pub(super) fn locate(&self, reference: &PaneRef) -> Result<LocatedPane, ApiError> {
        let key = reference.locate(&self.fleet).map_err(|error| ref_error(&error))?;
        let gone = || ref_error(&agtmux_core::refs::RefError::NotFound(reference.to_string()));
        self.locate_key(key).ok_or_else(gone)
    }

    pub(super) fn locate_key(&self, key: PaneKey) -> Option<LocatedPane> {
        let server = self.fleet.server(&key.server)?;
        let pane = self.fleet.pane(&key)?.clone();
        let agent = pane.runtime.clone().and_then(|runtime| {
            let record = self.states.state(&runtime.id)?.clone();
            let dialog = self.states.dialog(&runtime.id);
            let asked = self.states.asked(&runtime.id).to_vec();
            let reports_submissions = self.reports_submissions(&runtime);
            let remote_runtime_id = self.remote_agents.get(&runtime.id).and_then(|remote| remote.runtime_id.clone());
            let submission = self.submissions.get(&runtime.id).cloned();
            Some(LocatedAgent { runtime, record, dialog, asked, reports_submissions, remote_runtime_id, submission })
        });
        let reachable = server.outage.is_none();
        let shortest = PaneRef::shortest(&self.fleet, &key, &pane);
        Some(LocatedPane { generation: server.generation, key, pane, reachable, agent, shortest })
    }

    fn reports_submissions(&self, runtime: &Runtime) -> bool {
        let ledger = self.states.ledger(&runtime.id).into_iter();
        let mut observations = ledger.flat_map(|ledger| ledger.rated_observations(self.clock.now()));
        observations.any(|rated| rated.observation.source == Source::Hook)
            && self.registry.agent(runtime.agent_type.as_str()).is_some_and(|agent| agent.reports_submissions())
    }

    pub(super) fn publish_submitted(&self, runtime: &RuntimeId, event_id: &str, event: NativeEvent<'_>) {
        // Usually no action waits for a prompt.
        if self.submitted.receiver_count() == 0 {
            return;
        }
        let agent = self.states.agent_type(runtime).and_then(|agent_type| self.registry.agent(agent_type.as_str()));
        if let Some(text) = agent.and_then(|agent| agent.submitted_prompt(event)) {
            let _ =
                self.submitted.send(SubmittedPrompt { runtime: runtime.clone(), event_id: event_id.to_owned(), text });
        }
    }
}
