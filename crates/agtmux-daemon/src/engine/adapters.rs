//! Turns native events, files and screens of agents into observations about their runtimes.

use std::collections::BTreeMap;

use agtmux_agents::native::{AdapterMemory, NativeEvent, NativeObservation};
use agtmux_core::evidence::{Assertion, Observation, Source};
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_core::ordering::OrderKey;
use agtmux_core::refs::is_agent_name;
use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::{Engine, EngineStep};
use crate::observe::{ScreenEvidence, SourceObservation};
use crate::store::{EventRow, StoreChange, events};

/// How long a screen observation stays valid after the screen stops matching any rule: the agent may be redrawing. A
/// title is written in one piece, so its observation ends at once.
const SCREEN_TTL: SignedDuration = SignedDuration::from_secs(3);
const TITLE_TTL: SignedDuration = SignedDuration::ZERO;

/// What the adapters remember about each runtime between events.
#[derive(Debug, Default)]
pub(super) struct AdapterMemories(BTreeMap<RuntimeId, AdapterMemory>);

impl AdapterMemories {
    pub(super) fn new(stored: impl IntoIterator<Item = (RuntimeId, AdapterMemory)>) -> Self {
        Self(stored.into_iter().collect())
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.0.remove(runtime);
    }

    pub(super) fn session(&self, runtime: &RuntimeId) -> Option<&str> {
        self.0.get(runtime)?.session.as_deref()
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.0.values().filter_map(AdapterMemory::next_due).min()
    }
}

/// Entries read from a file that an agent keeps about itself. Entries read together are applied together, so that no
/// outdated intermediate state is published.
#[derive(Debug)]
pub(crate) struct FileEvidence {
    pub(crate) pane: PaneKey,
    pub(crate) process: ProcessRef,
    pub(crate) entries: Vec<FileEntry>,
    /// The entries come from a log, which may be read more than once.
    pub(crate) from_log: bool,
}

#[derive(Debug)]
pub(crate) struct FileEntry {
    pub(crate) event_type: String,
    pub(crate) payload: Value,
    pub(crate) at: Timestamp,
}

impl Engine {
    /// Applies an event of the agent itself or of its wrapper.
    pub(super) fn reduce_event(&mut self, runtime: &RuntimeId, event: &EventRow, step: &mut EngineStep) {
        let stored = match &event.payload {
            Some(payload) => Some(payload.clone()),
            // The payload of a pending event is not kept in memory: it is in this step or in the store.
            None => step.payload_of(&event.order.event_id).map_or_else(
                || events::payload_of(&self.reader, &event.order.event_id).unwrap_or_default(),
                |payload| Some(payload.to_owned()),
            ),
        };
        let document: Value = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let payload = document.get("payload").unwrap_or(&Value::Null);
        let native_event =
            NativeEvent { source: event.source, event_type: &event.event_type, payload, at: event.order.event_time };
        self.apply_agent_name(runtime, native_event, step);
        // While an agent is suspended, other programs write to its terminal.
        let foreign = event.source == Source::Osc && self.states.is_suspended(runtime);
        let newest = self.cursors.advance(runtime, event.source, &event.order);
        if foreign || !newest || !self.is_adapter_enabled(runtime) {
            return;
        }
        self.publish_submitted(runtime, &event.order.event_id, native_event);
        for native in self.reduce(runtime, native_event, step) {
            let observation = Box::new(self.observation(native, event.order.clone()));
            let input = ResolverInput::Observed { runtime: runtime.clone(), observation };
            self.resolve(input, Some(event.order.event_id.clone()), step);
        }
        self.request_recheck(runtime);
    }

    /// A wrapper may name the agent that it starts. The name then works as a reference.
    fn apply_agent_name(&mut self, runtime: &RuntimeId, event: NativeEvent<'_>, step: &mut EngineStep) {
        if event.source != Source::Wrapper || event.event_type != "agent-started" {
            return;
        }
        let name = event.payload.get("name").and_then(Value::as_str).filter(|name| is_agent_name(name));
        if let (Some(name), Some(key)) = (name, self.runtime_panes.get(runtime))
            && self.fleet.name_runtime(key, runtime, name)
        {
            step.changed_evidence.insert(runtime.clone());
            step.mark_pane_changed(&self.fleet, key);
        }
    }

    fn is_known_log_entry(&mut self, runtime: &RuntimeId, at: Timestamp, step: &mut EngineStep) -> bool {
        let Some(agent_type) = self.states.agent_type(runtime).cloned() else { return true };
        let mut memory = self.memories.0.get(runtime).cloned().unwrap_or_default();
        let known = memory.record_log_time(at);
        self.update_memory(runtime, &agent_type, memory, step);
        known
    }

    fn reduce(&mut self, runtime: &RuntimeId, event: NativeEvent<'_>, step: &mut EngineStep) -> Vec<NativeObservation> {
        let Some(agent_type) = self.states.agent_type(runtime).cloned() else { return Vec::new() };
        let mut memory = self.memories.0.get(runtime).cloned().unwrap_or_default();
        let observations = self.registry.reduce(agent_type.as_str(), &mut memory, event, step.now);
        self.update_memory(runtime, &agent_type, memory, step);
        observations
    }

    fn update_memory(
        &mut self,
        runtime: &RuntimeId,
        agent_type: &AgentType,
        memory: AdapterMemory,
        step: &mut EngineStep,
    ) {
        let before = self.memories.0.get(runtime);
        if before == Some(&memory) || (before.is_none() && memory == AdapterMemory::default()) {
            return;
        }
        if let Some(session) = memory.session.clone()
            && before.and_then(|m| m.session.as_ref()) != Some(&session)
        {
            let agent_id = agent_id(agent_type, &session);
            let pane = self.runtime_panes.get(runtime).and_then(|key| self.fleet.pane(key));
            let cwd = pane.and_then(|pane| pane.foreground.as_ref()?.cwd.clone());
            step.changes.push(StoreChange::PutAgent {
                agent_id: agent_id.clone(),
                agent_type: agent_type.clone(),
                session,
                runtime: runtime.clone(),
                cwd,
                at: step.now,
            });
            self.resolve(ResolverInput::AgentIdentified { runtime: runtime.clone(), agent_id }, None, step);
            if let Some(pane) = self.runtime_panes.get(runtime) {
                step.mark_pane_changed(&self.fleet, pane);
            }
        }
        step.changes.push(StoreChange::PutMemory { runtime: runtime.clone(), memory: Box::new(memory.clone()) });
        self.memories.0.insert(runtime.clone(), memory);
    }

    fn observation(&self, native: NativeObservation, order: OrderKey) -> Observation {
        Observation {
            source: native.source,
            assertion: native.assertion,
            conclusive: true,
            as_of: native.as_of.min(order.ingested_at),
            settled: true,
            ttl: match native.source {
                Source::File => Some(SCREEN_TTL),
                _ => (native.assertion == Assertion::Running).then(|| self.running_ttl()),
            },
            order,
            rule: native.rule,
            excerpt: native.excerpt,
            tentative: native.tentative,
            inferred_from_absence: false,
            no_turn_visible: false,
            dialog: None,
        }
    }

    fn running_ttl(&self) -> SignedDuration {
        SignedDuration::try_from(self.settings.running_ttl.0).unwrap_or(SignedDuration::MAX)
    }

    /// Applies the entries of a file that the agent keeps about itself.
    pub(super) fn reduce_file(&mut self, evidence: FileEvidence, step: &mut EngineStep) {
        let runtime =
            self.runtime_of(&evidence.pane, evidence.process).filter(|runtime| self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        for FileEntry { event_type, payload, at } in &evidence.entries {
            if evidence.from_log && self.is_known_log_entry(&runtime, *at, step) {
                continue;
            }
            let event = NativeEvent { source: Source::File, event_type, payload, at: (*at).min(step.now) };
            for native in self.reduce(&runtime, event, step) {
                let order = local_order_key(native.as_of, step.now);
                let observation = self.observation(native, order);
                self.observe_if_new(&runtime, observation, step);
            }
        }
    }

    /// Applies the result of a screen capture.
    pub(super) fn observe_screen(&mut self, evidence: ScreenEvidence, step: &mut EngineStep) {
        let pane = PaneKey { server: evidence.server, pane: evidence.pane };
        let same_server =
            self.fleet.server(&pane.server).is_some_and(|server| server.generation == evidence.generation);
        // The capture describes the process that ran when the capture began.
        let runtime =
            self.runtime_of(&pane, evidence.process).filter(|runtime| same_server && self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        let measured = self.states.agent_type(&runtime).is_none_or(|kind| self.registry.is_measured(kind.as_str()));
        for SourceObservation {
            source,
            assertion,
            conclusive,
            inferred_from_absence,
            no_turn_visible,
            settled,
            as_of,
            rule,
            excerpt,
            dialog,
        } in evidence.observations
        {
            let observation = Observation {
                source,
                assertion,
                conclusive,
                as_of,
                settled,
                ttl: screen_source_ttl(source),
                order: local_order_key(evidence.captured_at, step.now),
                rule,
                excerpt,
                tentative: !measured,
                inferred_from_absence,
                no_turn_visible,
                dialog: dialog.map(Box::new),
            };
            self.observe_if_new(&runtime, observation, step);
        }
        for source in evidence.silent_sources {
            if !self.states.is_unrecognized(&runtime, source) {
                let input = ResolverInput::Unrecognized { runtime: runtime.clone(), source, at: step.now };
                self.resolve(input, None, step);
            }
        }
    }

    pub(super) fn observe_if_new(&mut self, runtime: &RuntimeId, observation: Observation, step: &mut EngineStep) {
        if self.states.is_new_information(runtime, &observation) {
            let input = ResolverInput::Observed { runtime: runtime.clone(), observation: Box::new(observation) };
            self.resolve(input, None, step);
        }
    }

    /// Asks the observer to capture the agent's pane: the screen may show more than the event, or that the event is
    /// over.
    pub(super) fn request_recheck(&self, runtime: &RuntimeId) {
        if let Some(pane) = self.runtime_panes.get(runtime) {
            self.recheck_hints.request_recheck(pane);
        }
    }

    /// The runtime in a pane, if it is still this process.
    pub(super) fn runtime_of(&self, pane: &PaneKey, process: ProcessRef) -> Option<RuntimeId> {
        let runtime = self.fleet.pane(pane)?.runtime.as_ref()?;
        (runtime.process == process).then(|| runtime.id.clone())
    }

    /// Applies observations that adapters held back and that are due now.
    pub(super) fn release_held(&mut self, step: &mut EngineStep) {
        let due = self.memories.0.iter().filter(|(_, memory)| memory.next_due().is_some_and(|at| at <= step.now));
        let due: Vec<RuntimeId> = due.map(|(runtime, _)| runtime.clone()).collect();
        for runtime in due {
            let Some(memory) = self.memories.0.get_mut(&runtime) else { continue };
            let released: Vec<NativeObservation> = std::iter::from_fn(|| memory.take_due(step.now)).collect();
            step.changes.push(StoreChange::PutMemory { runtime: runtime.clone(), memory: Box::new(memory.clone()) });
            for native in released {
                let order = local_order_key(native.as_of, step.now);
                let observation = self.observation(native, order);
                match observation.source {
                    // The same file may have been read before.
                    Source::File => self.observe_if_new(&runtime, observation, step),
                    _ => {
                        let observation = Box::new(observation);
                        self.resolve(ResolverInput::Observed { runtime: runtime.clone(), observation }, None, step);
                    }
                }
            }
        }
    }
}

/// An observation of source `process` has no TTL: it stays valid while the process lives.
fn screen_source_ttl(source: Source) -> Option<SignedDuration> {
    match source {
        Source::Title => Some(TITLE_TTL),
        Source::Process => None,
        _ => Some(SCREEN_TTL),
    }
}

/// The order key of an observation made by this daemon.
pub(super) fn local_order_key(at: Timestamp, now: Timestamp) -> OrderKey {
    OrderKey {
        source_seq: None,
        event_time: at.min(now),
        ingested_at: now,
        event_id: Uuid::now_v7().simple().to_string(),
    }
}

/// The agent id: the same for the same agent type and session, on every host.
pub(crate) fn agent_id(agent_type: &AgentType, session: &str) -> String {
    let name = format!("{agent_type}/{session}");
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}
