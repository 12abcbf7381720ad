//! Turns native events, files and screens of agents into observations about their runtimes.

use std::collections::BTreeMap;
use std::sync::Arc;

use agtmux_agents::GENERIC_RULE;
use agtmux_agents::native::{self, AdapterMemory, Evidence, NativeEvent};
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

use super::submissions::shows_rest;
use super::{Engine, EngineStep};
use crate::observe::ScreenEvidence;
use crate::store::{EventRow, StoreChange};

/// How long a screen observation stays valid after the screen stops matching any rule. The agent may be in the middle
/// of a redraw. A title observation ends at once, because an agent writes its title in one piece.
const SCREEN_TTL: SignedDuration = SignedDuration::from_secs(3);
const TITLE_TTL: SignedDuration = SignedDuration::ZERO;

/// The data that adapters keep about each runtime from one event to the next.
#[derive(Debug, Default)]
pub(super) struct AdapterMemories {
    memories: BTreeMap<RuntimeId, AdapterMemory>,
    /// The times at which to call the adapters of runtimes even if no evidence arrives.
    deadlines: BTreeMap<RuntimeId, Timestamp>,
}

impl AdapterMemories {
    pub(super) fn new(stored: impl IntoIterator<Item = (RuntimeId, AdapterMemory)>) -> Self {
        let memories: BTreeMap<RuntimeId, AdapterMemory> = stored.into_iter().collect();
        let deadlines = memories.iter().filter_map(|(runtime, memory)| Some((runtime.clone(), memory.next_due()?)));
        Self { deadlines: deadlines.collect(), memories }
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.memories.remove(runtime);
        self.deadlines.remove(runtime);
    }

    pub(super) fn session(&self, runtime: &RuntimeId) -> Option<&str> {
        self.memories.get(runtime)?.session.as_deref()
    }

    fn holds_turn_end(&self, runtime: &RuntimeId) -> bool {
        self.memories.get(runtime).is_some_and(AdapterMemory::holds_turn_end)
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.deadlines.values().min().copied()
    }

    /// Moves all times by `by`, because the clock of this machine was set. Returns the memories that have changed.
    pub(super) fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) -> Vec<(RuntimeId, AdapterMemory)> {
        self.change_times(|memory| memory.shift_clock(by, now))
    }

    /// Adds `by` to the time for which observations are held back, because the machine slept and no agent could report
    /// meanwhile. Returns the memories that have changed.
    pub(super) fn skip_time(&mut self, by: SignedDuration) -> Vec<(RuntimeId, AdapterMemory)> {
        self.change_times(|memory| memory.skip_time(by))
    }

    fn change_times(&mut self, change: impl Fn(&mut AdapterMemory)) -> Vec<(RuntimeId, AdapterMemory)> {
        let mut changed = Vec::new();
        for (runtime, memory) in &mut self.memories {
            let before = memory.clone();
            change(memory);
            if *memory != before {
                changed.push((runtime.clone(), memory.clone()));
            }
        }
        for (runtime, memory) in &changed {
            self.set_deadline(runtime, memory.next_due());
        }
        changed
    }

    /// Removes the deadlines that have passed, and returns their runtimes.
    fn take_due(&mut self, now: Timestamp) -> Vec<RuntimeId> {
        self.deadlines.extract_if(.., |_, due| *due <= now).map(|(runtime, _)| runtime).collect()
    }

    fn set_deadline(&mut self, runtime: &RuntimeId, due: Option<Timestamp>) {
        match due {
            Some(due) => self.deadlines.insert(runtime.clone(), due),
            None => self.deadlines.remove(runtime),
        };
    }
}

/// Entries read from a file that an agent keeps about itself. Entries read together are applied together, so that no
/// outdated intermediate state is published.
#[derive(Debug)]
pub(crate) struct FileEvidence {
    pub(crate) pane: PaneKey,
    pub(crate) process: ProcessRef,
    pub(crate) entries: Vec<FileEntry>,
    /// Whether the entries come from a log and not from a status file. A log may be read again, so the same entry may
    /// arrive twice.
    pub(crate) from_log: bool,
}

#[derive(Debug)]
pub(crate) struct FileEntry {
    pub(crate) event_type: String,
    pub(crate) payload: Value,
    pub(crate) at: Timestamp,
}

/// The event with which a wrapper reports the agent that it has started.
pub(crate) const AGENT_STARTED: &str = "agent-started";

impl Engine {
    /// Whether an agent already has this name. Agents whose process is one of `own` do not count.
    pub(super) fn is_name_taken(&self, name: &str, own: &[ProcessRef]) -> bool {
        let named = self.runtime_panes.values().filter_map(|key| self.fleet.pane(key)?.runtime.as_ref());
        named.filter(|runtime| runtime.name.as_deref() == Some(name)).any(|other| !own.contains(&other.process))
    }

    /// Applies an event of the agent itself or of its wrapper.
    pub(super) fn reduce_event(
        &mut self,
        runtime: &RuntimeId,
        event: &EventRow,
        payload: &Value,
        step: &mut EngineStep,
    ) {
        let order = &event.order;
        let native_event =
            NativeEvent { source: event.source, event_type: &event.event_type, payload, at: order.event_time };
        self.apply_agent_name(runtime, native_event, step);
        // While an agent is suspended, escape codes in its terminal come from other programs.
        let foreign = event.source == Source::Osc && self.states.is_suspended(runtime);
        let newest = self.cursors.advance(runtime, event.source, order);
        if foreign || !newest || !self.is_adapter_enabled(runtime) {
            return;
        }
        self.publish_submitted(runtime, &order.event_id, native_event);
        self.reduce(runtime, Evidence::Event(native_event), Some(order), step);
        self.request_recheck(runtime);
    }

    /// Applies the name that a wrapper gave to the agent it started. Users can then refer to the agent by this name.
    fn apply_agent_name(&mut self, runtime: &RuntimeId, event: NativeEvent<'_>, step: &mut EngineStep) {
        if event.source != Source::Wrapper || event.event_type != AGENT_STARTED {
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

    /// Turns evidence from the agent itself into observations and applies them. `order` is `None` unless a client
    /// posted the evidence as an event.
    fn reduce(&mut self, runtime: &RuntimeId, evidence: Evidence<'_>, order: Option<&OrderKey>, step: &mut EngineStep) {
        let Some(agent_type) = self.states.agent_type(runtime).cloned() else { return };
        let mut memory = self.memories.memories.get(runtime).cloned().unwrap_or_default();
        let agent = self.registry.agent(agent_type.as_str()).map(Arc::as_ref);
        let (observations, due) = native::reduce(agent, &mut memory, evidence, step.now);
        self.memories.set_deadline(runtime, due);
        // The end of the turn is no longer held back. Captures of an idle screen were ignored until now, so request a
        // new one.
        if self.memories.holds_turn_end(runtime) && !memory.holds_turn_end() {
            self.request_recheck(runtime);
        }
        self.update_memory(runtime, &agent_type, memory, step);
        let received_at = order.map_or(step.now, |order| order.ingested_at);
        let was_read = order.is_none() && !matches!(evidence, Evidence::TimePassed);
        let is_headless = self.is_headless(runtime);
        for mut observation in observations {
            // A headless agent reports that its session is idle before it begins its only turn. Ignore this report.
            if is_headless && observation.assertion == Assertion::Idle {
                continue;
            }
            let at = observation.as_of;
            observation.as_of = at.min(received_at);
            observation.ttl = self.native_ttl(&observation);
            observation.counts_from = self.dialog_hold(runtime, &observation, step.now);
            if observation.assertion == Assertion::NoDialog {
                self.end_hold(runtime, observation.source, step);
            }
            // The same file may have been read before, so skip what is already known.
            if was_read || (order.is_none() && observation.source == Source::File) {
                self.observe_if_new(runtime, observation, at, step);
            } else {
                observation.order = order.cloned().unwrap_or_else(|| local_order_key(at, step.now));
                self.resolve(observed(runtime, observation), order.map(|order| order.event_id.clone()), step);
            }
        }
    }

    /// Whether the agent was started for one turn, without a user.
    fn is_headless(&self, runtime: &RuntimeId) -> bool {
        let is_report = |observation: &Observation| {
            observation.source == Source::Process && observation.assertion == Assertion::Running
        };
        self.states.ledger(runtime).is_some_and(|ledger| ledger.records().any(|record| is_report(&record.observation)))
    }

    /// Until when to hold back an observation that reports a dialog, so that the dialog is published together with its
    /// content. An agent reports a dialog before it draws it, and only the screen shows the content, so this call also
    /// requests a screen capture at once. Returns `None` if the observation is not held back, for example because the
    /// pane has no observer.
    fn dialog_hold(&self, runtime: &RuntimeId, observation: &Observation, now: Timestamp) -> Option<Timestamp> {
        let ledger = self.states.ledger(runtime)?;
        // If the agent already needs action, the report is not held back. An agent in the error state is an example:
        // the report ends the error at once, even if it is held back, so clients would see an older idle state until
        // the end of the hold.
        let needs_action = self.states.state(runtime).is_some_and(|record| record.state.needs_action());
        let opens = matches!(observation.assertion, Assertion::DialogOpen(_)) && observation.dialog.is_none();
        // A script that reports a state by `agtmux emit` expects clients to see the state at once.
        let is_generic = observation.rule.name == GENERIC_RULE;
        if !opens || is_generic || needs_action || !ledger.is_new_information(observation) {
            return None;
        }
        let agent_type = self.states.agent_type(runtime)?;
        self.registry.agent(agent_type.as_str()).filter(|agent| agent.reads_dialogs())?;
        let pane = self.runtime_panes.get(runtime).filter(|pane| pane.server.target.is_local())?;
        if !self.recheck_hints.look_for_dialog(pane) {
            return None;
        }
        // A repeated report does not prolong the hold.
        ledger.held_until(observation.source, now).or_else(|| now.checked_add(self.settings.dialog_hold.0).ok())
    }

    /// Ends the hold of a dialog that its source now reports as closed. The dialog is published, so that it appears in
    /// the history.
    fn end_hold(&mut self, runtime: &RuntimeId, source: Source, step: &mut EngineStep) {
        if self.states.ledger(runtime).is_some_and(|ledger| ledger.held_until(source, step.now).is_some()) {
            self.resolve(ResolverInput::HoldEnded { runtime: runtime.clone() }, None, step);
        }
    }

    fn update_memory(
        &mut self,
        runtime: &RuntimeId,
        agent_type: &AgentType,
        memory: AdapterMemory,
        step: &mut EngineStep,
    ) {
        let before = self.memories.memories.get(runtime);
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
        self.memories.memories.insert(runtime.clone(), memory);
    }

    fn native_ttl(&self, observation: &Observation) -> Option<SignedDuration> {
        match (observation.source, observation.assertion) {
            (Source::File, _) => Some(SCREEN_TTL),
            (_, Assertion::Running) => {
                Some(SignedDuration::try_from(self.settings.running_ttl.0).unwrap_or(SignedDuration::MAX))
            }
            _ => None,
        }
    }

    /// Applies the entries of a file that the agent keeps about itself.
    pub(super) fn reduce_file(&mut self, evidence: FileEvidence, step: &mut EngineStep) {
        let runtime =
            self.runtime_of(&evidence.pane, evidence.process).filter(|runtime| self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        for FileEntry { event_type, payload, at } in &evidence.entries {
            let entry = NativeEvent { source: Source::File, event_type, payload, at: *at };
            let entry = if evidence.from_log { Evidence::LogEntry(entry) } else { Evidence::Event(entry) };
            self.reduce(&runtime, entry, None, step);
        }
    }

    /// Applies the result of a screen capture.
    pub(super) fn observe_screen(&mut self, mut evidence: ScreenEvidence, step: &mut EngineStep) {
        let pane = PaneKey { server: evidence.server, pane: evidence.pane };
        let same_server =
            self.fleet.server(&pane.server).is_some_and(|server| server.generation == evidence.generation);
        // The capture describes the process that ran when the capture began.
        let runtime =
            self.runtime_of(&pane, evidence.process).filter(|runtime| same_server && self.is_adapter_enabled(runtime));
        let Some(runtime) = runtime else { return };
        let is_measured =
            |kind: &AgentType| self.registry.agent(kind.as_str()).is_some_and(|agent| agent.is_measured());
        let measured = self.states.agent_type(&runtime).is_none_or(is_measured);
        // The agent has reported how its turn ended, and this report is still held back. Until it is released, an idle
        // screen is ignored, so that the state does not become idle first.
        if self.memories.holds_turn_end(&runtime) {
            evidence.observations.retain(|observation| observation.assertion != Assertion::Idle);
        }
        let shows_rest = shows_rest(&evidence.observations);
        for mut observation in evidence.observations {
            observation.ttl = screen_source_ttl(observation.source);
            observation.tentative = !measured;
            self.observe_if_new(&runtime, observation, evidence.captured_at, step);
        }
        for source in evidence.silent_sources {
            if self.states.ledger(&runtime).is_some_and(|ledger| !ledger.is_unrecognized(source)) {
                let input = ResolverInput::Unrecognized { runtime: runtime.clone(), source, at: step.now };
                self.resolve(input, None, step);
            }
        }
        if shows_rest && self.submissions.rest_seen(&runtime, evidence.captured_at) {
            self.publish_submission(&runtime, step);
        }
    }

    /// Records an observation that this daemon made at time `at`, unless the ledger already contains the same
    /// information.
    pub(super) fn observe_if_new(
        &mut self,
        runtime: &RuntimeId,
        mut observation: Observation,
        at: Timestamp,
        step: &mut EngineStep,
    ) {
        // The clock may have been set back since the evidence was read.
        observation.as_of = observation.as_of.min(step.now);
        if self.states.ledger(runtime).is_some_and(|ledger| ledger.is_new_information(&observation)) {
            observation.order = local_order_key(at, step.now);
            self.resolve(observed(runtime, observation), None, step);
        }
    }

    /// Asks the observer to capture the agent's pane again. After an event, the screen may show more than the event
    /// reported, or may show that the event is out of date.
    pub(super) fn request_recheck(&self, runtime: &RuntimeId) {
        if let Some(pane) = self.runtime_panes.get(runtime) {
            self.recheck_hints.request_recheck(pane);
        }
    }

    /// The runtime in a pane. `None` if the runtime has another process than `process`.
    pub(super) fn runtime_of(&self, pane: &PaneKey, process: ProcessRef) -> Option<RuntimeId> {
        let runtime = self.fleet.pane(pane)?.runtime.as_ref()?;
        (runtime.process == process).then(|| runtime.id.clone())
    }

    /// Applies observations whose hold has ended.
    pub(super) fn release_held(&mut self, step: &mut EngineStep) {
        for runtime in self.memories.take_due(step.now) {
            self.reduce(&runtime, Evidence::TimePassed, None, step);
        }
    }
}

fn observed(runtime: &RuntimeId, observation: Observation) -> ResolverInput {
    ResolverInput::Observed { runtime: runtime.clone(), observation: Box::new(observation) }
}

/// How long an observation from this source stays valid. `None` for the source `process`: its observations stay valid
/// while the process lives.
fn screen_source_ttl(source: Source) -> Option<SignedDuration> {
    match source {
        Source::Title => Some(TITLE_TTL),
        Source::Process => None,
        _ => Some(SCREEN_TTL),
    }
}

/// The key that puts an observation of this daemon in order with other observations.
fn local_order_key(at: Timestamp, now: Timestamp) -> OrderKey {
    OrderKey {
        source_seq: None,
        event_time: at.min(now),
        ingested_at: now,
        event_id: Uuid::now_v7().simple().to_string(),
    }
}

/// The agent id. It depends only on the agent type and the session, so it is the same on every host.
pub(crate) fn agent_id(agent_type: &AgentType, session: &str) -> String {
    let name = format!("{agent_type}/{session}");
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}
