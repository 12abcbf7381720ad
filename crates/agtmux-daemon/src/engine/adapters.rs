//! What agents say of themselves and show, turned into statements about their runtimes.

use std::collections::BTreeMap;

use agtmux_agents::native::{AdapterMemory, NativeEvent, NativeObservation};
use agtmux_core::evidence::{Assertion, Observation, Source};
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_core::ordering::OrderKey;
use agtmux_core::refs::is_agent_name;
use agtmux_core::resolver as states;
use agtmux_core::runtime::RuntimeId;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::{Engine, EngineStep};
use crate::observe::{ScreenEvidence, SourceObservation};
use crate::store::{EventRow, StoreChange, events};

/// How long a screen that is no longer understood is believed: it may be in the middle of being drawn. A title comes in
/// one piece.
const SCREEN_TTL: SignedDuration = SignedDuration::from_secs(3);
const TITLE_TTL: SignedDuration = SignedDuration::ZERO;

/// What agents' adapters remember between events.
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

/// What a file of the agent tells of it. What was read together is told together: nobody is shown what is already over.
#[derive(Debug)]
pub(crate) struct FileEvidence {
    pub(crate) pane: PaneKey,
    pub(crate) process: ProcessRef,
    pub(crate) entries: Vec<FileEntry>,
    /// From a log, which may be read more than once.
    pub(crate) from_log: bool,
}

#[derive(Debug)]
pub(crate) struct FileEntry {
    pub(crate) event_type: String,
    pub(crate) payload: Value,
    pub(crate) at: Timestamp,
}

impl Engine {
    /// An event of the agent's own, or of whoever wraps it.
    pub(super) fn reduce_event(&mut self, runtime: &RuntimeId, event: &EventRow, step: &mut EngineStep) {
        let stored = match &event.payload {
            Some(payload) => Some(payload.clone()),
            // One that had to wait was put aside, perhaps a moment ago.
            None => step.payload_of(&event.order.event_id).map_or_else(
                || events::payload_of(&self.reader, &event.order.event_id).unwrap_or_default(),
                |payload| Some(payload.to_owned()),
            ),
        };
        let document: Value = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let payload = document.get("payload").unwrap_or(&Value::Null);
        let heard =
            NativeEvent { source: event.source, event_type: &event.event_type, payload, at: event.order.event_time };
        self.apply_agent_name(runtime, heard, step);
        // While an agent is stopped, whatever is written to its terminal is not of it.
        let foreign = event.source == Source::Osc && self.states.is_suspended(runtime);
        let newest = self.cursors.advance(runtime, event.source, &event.order);
        if foreign || !newest || !self.is_adapter_enabled(runtime) {
            return;
        }
        self.publish_submitted(runtime, &event.order.event_id, heard);
        let told = self.reduce(runtime, heard, step);
        for told in told {
            let statement = Box::new(self.observation(told, event.order.clone()));
            let input = states::ResolverInput::Observed { runtime: runtime.clone(), observation: statement };
            self.resolve(input, Some(event.order.event_id.clone()), step);
        }
        self.request_recheck(runtime);
    }

    /// Whoever starts an agent may give it a name, which is then as good as any other reference.
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
        let told = self.registry.reduce(agent_type.as_str(), &mut memory, event, step.now);
        self.update_memory(runtime, &agent_type, memory, step);
        told
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
            let home = self.runtime_panes.get(runtime).and_then(|key| self.fleet.pane(key));
            let cwd = home.and_then(|pane| pane.foreground.as_ref()?.cwd.clone());
            step.changes.push(StoreChange::PutAgent {
                agent_id: agent_id.clone(),
                agent_type: agent_type.clone(),
                session,
                runtime: runtime.clone(),
                cwd,
                at: step.now,
            });
            self.resolve(states::ResolverInput::AgentIdentified { runtime: runtime.clone(), agent_id }, None, step);
            if let Some(pane) = self.runtime_panes.get(runtime) {
                step.mark_pane_changed(&self.fleet, pane);
            }
        }
        step.changes.push(StoreChange::PutMemory { runtime: runtime.clone(), memory: Box::new(memory.clone()) });
        self.memories.0.insert(runtime.clone(), memory);
    }

    fn observation(&self, told: NativeObservation, order: OrderKey) -> Observation {
        Observation {
            source: told.source,
            assertion: told.assertion,
            conclusive: true,
            as_of: told.as_of.min(order.ingested_at),
            settled: true,
            ttl: match told.source {
                Source::File => Some(SCREEN_TTL),
                _ => (told.assertion == Assertion::Running).then(|| self.running_ttl()),
            },
            order,
            rule: told.rule,
            excerpt: told.excerpt,
            tentative: told.tentative,
            inferred_from_absence: false,
            no_turn_visible: false,
            dialog: None,
        }
    }

    fn running_ttl(&self) -> SignedDuration {
        SignedDuration::try_from(self.settings.running_ttl.0).unwrap_or(SignedDuration::MAX)
    }

    /// A file that the agent keeps about itself was read.
    pub(super) fn reduce_file(&mut self, filed: FileEvidence, step: &mut EngineStep) {
        let runtime = self.runtime_of(&filed.pane, filed.process).filter(|runtime| self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        for FileEntry { event_type, payload, at } in &filed.entries {
            if filed.from_log && self.is_known_log_entry(&runtime, *at, step) {
                continue;
            }
            let event = NativeEvent { source: Source::File, event_type, payload, at: (*at).min(step.now) };
            for told in self.reduce(&runtime, event, step) {
                let order = local_order_key(told.as_of, step.now);
                let statement = self.observation(told, order);
                self.observe_if_new(&runtime, statement, step);
            }
        }
    }

    /// A screen was looked at.
    pub(super) fn observe_screen(&mut self, seen: ScreenEvidence, step: &mut EngineStep) {
        let pane = PaneKey { server: seen.server, pane: seen.pane };
        let same_server = self.fleet.server(&pane.server).is_some_and(|server| server.generation == seen.generation);
        // What is on screen is of the one who lived there when the look began.
        let runtime =
            self.runtime_of(&pane, seen.process).filter(|runtime| same_server && self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        let measured = self.states.agent_type(&runtime).is_none_or(|kind| self.registry.is_measured(kind.as_str()));
        for SourceObservation {
            source,
            assertion: stand,
            conclusive,
            inferred_from_absence: yields,
            no_turn_visible: anew,
            settled,
            as_of,
            rule,
            excerpt,
            dialog,
        } in seen.observations
        {
            let statement = Observation {
                source,
                assertion: stand,
                conclusive,
                as_of,
                settled,
                ttl: screen_source_ttl(source),
                order: local_order_key(seen.captured_at, step.now),
                rule,
                excerpt,
                tentative: !measured,
                inferred_from_absence: yields,
                no_turn_visible: anew,
                dialog: dialog.map(Box::new),
            };
            self.observe_if_new(&runtime, statement, step);
        }
        for source in seen.silent_sources {
            if !self.states.is_unrecognized(&runtime, source) {
                let input = states::ResolverInput::Unrecognized { runtime: runtime.clone(), source, at: step.now };
                self.resolve(input, None, step);
            }
        }
    }

    pub(super) fn observe_if_new(&mut self, runtime: &RuntimeId, statement: Observation, step: &mut EngineStep) {
        if self.states.is_new_information(runtime, &statement) {
            let input = states::ResolverInput::Observed { runtime: runtime.clone(), observation: Box::new(statement) };
            self.resolve(input, None, step);
        }
    }

    /// What an agent says it also shows: more of it, or that it is over.
    pub(super) fn request_recheck(&self, runtime: &RuntimeId) {
        if let Some(pane) = self.runtime_panes.get(runtime) {
            self.recheck_hints.request_recheck(pane);
        }
    }

    /// The runtime in a pane, if it is still that process.
    pub(super) fn runtime_of(&self, pane: &PaneKey, process: ProcessRef) -> Option<RuntimeId> {
        let runtime = self.fleet.pane(pane)?.runtime.as_ref()?;
        (runtime.process == process).then(|| runtime.id.clone())
    }

    /// What was held back until now.
    pub(super) fn release_held(&mut self, step: &mut EngineStep) {
        let due = self.memories.0.iter().filter(|(_, memory)| memory.next_due().is_some_and(|at| at <= step.now));
        let due: Vec<RuntimeId> = due.map(|(runtime, _)| runtime.clone()).collect();
        for runtime in due {
            let Some(memory) = self.memories.0.get_mut(&runtime) else { continue };
            let told: Vec<NativeObservation> = std::iter::from_fn(|| memory.take_due(step.now)).collect();
            step.changes.push(StoreChange::PutMemory { runtime: runtime.clone(), memory: Box::new(memory.clone()) });
            for told in told {
                let order = local_order_key(told.as_of, step.now);
                let statement = self.observation(told, order);
                match statement.source {
                    // What a file says may have been read before.
                    Source::File => self.observe_if_new(&runtime, statement, step),
                    _ => {
                        let statement = Box::new(statement);
                        self.resolve(
                            states::ResolverInput::Observed { runtime: runtime.clone(), observation: statement },
                            None,
                            step,
                        );
                    }
                }
            }
        }
    }
}

/// What a process was started for stays true for as long as it lives.
fn screen_source_ttl(source: Source) -> Option<SignedDuration> {
    match source {
        Source::Title => Some(TITLE_TTL),
        Source::Process => None,
        _ => Some(SCREEN_TTL),
    }
}

/// The order of what we found out ourselves.
pub(super) fn local_order_key(at: Timestamp, now: Timestamp) -> OrderKey {
    OrderKey {
        source_seq: None,
        event_time: at.min(now),
        ingested_at: now,
        event_id: Uuid::now_v7().simple().to_string(),
    }
}

/// The same for the same session of the same kind of agent, wherever it runs.
pub(crate) fn agent_id(agent_type: &AgentType, session: &str) -> String {
    let name = format!("{agent_type}/{session}");
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}
