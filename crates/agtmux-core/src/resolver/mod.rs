//! One state per runtime: what goes in is written down, so that the same input always gives the same states.

mod input;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use input::{ResolverInput, StateTransition};

use crate::dialog::Dialog;
use crate::evidence::{Observation, Source};
use crate::ids::{AgentType, ServerKey};
use crate::ledger::{Ledger, RatedObservation, StateVerdict};
use crate::runtime::{RuntimeId, StateRecord};
use crate::state::{Confidence, ReasonCode, State};

/// Everything that decides states. Serialised, it is a checkpoint from which a replay can begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateResolver {
    /// How long a completed turn is shown as such.
    completed_for: SignedDuration,
    runtimes: BTreeMap<RuntimeId, RuntimeState>,
    unreachable: BTreeSet<ServerKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RuntimeState {
    server: ServerKey,
    agent_type: AgentType,
    /// The agent's own session, once it told.
    #[serde(default)]
    agent_id: Option<String>,
    suspended: bool,
    #[serde(alias = "mind")]
    ledger: Ledger,
    record: StateRecord,
    /// What it asks while it waits.
    #[serde(default)]
    dialog: Option<Dialog>,
}

impl StateResolver {
    pub fn new(completed_for: SignedDuration) -> Self {
        Self { completed_for, runtimes: BTreeMap::new(), unreachable: BTreeSet::new() }
    }

    /// The setting may have changed since the checkpoint.
    pub fn set_completed_for(&mut self, completed_for: SignedDuration) {
        self.completed_for = completed_for;
    }

    pub fn state(&self, runtime: &RuntimeId) -> Option<&StateRecord> {
        self.runtimes.get(runtime).map(|subject| &subject.record)
    }

    /// What a waiting agent asks, where its screen shows it.
    pub fn dialog(&self, runtime: &RuntimeId) -> Option<&Dialog> {
        self.runtimes.get(runtime)?.dialog.as_ref()
    }

    /// The agent's own session, once it told.
    pub fn agent_id(&self, runtime: &RuntimeId) -> Option<&str> {
        self.runtimes.get(runtime)?.agent_id.as_deref()
    }

    pub fn agent_type(&self, runtime: &RuntimeId) -> Option<&AgentType> {
        self.runtimes.get(runtime).map(|subject| &subject.agent_type)
    }

    /// All that is known of a runtime.
    pub fn ledger(&self, runtime: &RuntimeId) -> Option<&Ledger> {
        self.runtimes.get(runtime).map(|subject| &subject.ledger)
    }

    pub fn is_suspended(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.suspended)
    }

    /// Whether hearing this could change anything. What could not needs no place in the log.
    pub fn is_new_information(&self, runtime: &RuntimeId, statement: &Observation) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.ledger.is_new_information(statement))
    }

    /// Whether this source was last looked at in vain.
    pub fn is_unrecognized(&self, runtime: &RuntimeId, source: Source) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.ledger.is_unrecognized(source))
    }

    pub fn has_runtime(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.contains_key(runtime)
    }

    pub fn runtimes(&self) -> impl Iterator<Item = (&RuntimeId, &StateRecord)> {
        self.runtimes.iter().map(|(id, subject)| (id, &subject.record))
    }

    /// What was heard of a runtime and what part each statement has in its state.
    pub fn rated_observations(&self, runtime: &RuntimeId, now: Timestamp) -> Vec<RatedObservation<'_>> {
        self.runtimes.get(runtime).map(|subject| subject.ledger.rated_observations(now).collect()).unwrap_or_default()
    }

    /// The only way a state changes.
    pub fn apply(&mut self, input: ResolverInput, now: Timestamp) -> Vec<StateTransition> {
        match input {
            ResolverInput::Started { runtime, server, agent_type, suspended } => {
                self.start_runtime(runtime, server, agent_type, suspended, now).into_iter().collect()
            }
            ResolverInput::Ended { runtime } => {
                self.runtimes.remove(&runtime);
                Vec::new()
            }
            ResolverInput::Reachable { server, reachable } => self.set_reachable(&server, reachable, now),
            ResolverInput::Suspended { runtime, suspended } => {
                self.change(&runtime, now, |subject| subject.suspended = suspended)
            }
            ResolverInput::Observed { runtime, observation: statement } => self.change(&runtime, now, |subject| {
                subject.ledger.record(*statement, now);
            }),
            ResolverInput::Unrecognized { runtime, source, at } => {
                self.change(&runtime, now, |subject| subject.ledger.mark_unrecognized(source, at))
            }
            ResolverInput::LedgerReplaced { runtime, ledger: mind } => {
                self.change(&runtime, now, |subject| subject.ledger.replace_with(*mind))
            }
            ResolverInput::LedgerCleared { runtime } => {
                self.change(&runtime, now, |subject| subject.ledger = Ledger::default())
            }
            ResolverInput::AgentIdentified { runtime, agent_id } => {
                self.change(&runtime, now, |subject| subject.agent_id = Some(agent_id))
            }
            ResolverInput::DemotionDue { runtime, state_version } => self.change(&runtime, now, |subject| {
                // Whatever happened since has made its own decision.
                if subject.record.version == state_version && subject.record.state == State::Completed {
                    subject.ledger.demote_completed();
                }
            }),
            ResolverInput::Reevaluate { runtime } => self.change(&runtime, now, |_| {}),
        }
    }

    /// What time alone brings about, up to now. To be applied like any other input.
    pub fn due_inputs(&self, now: Timestamp) -> Vec<ResolverInput> {
        let of_runtime = |(id, subject): (&RuntimeId, &RuntimeState)| {
            let demotion = self
                .demotion_at(subject)
                .is_some_and(|at| at <= now)
                .then(|| ResolverInput::DemotionDue { runtime: id.clone(), state_version: subject.record.version });
            let outdated = judge(subject, &self.unreachable, now) != StateJudgement::of(subject);
            demotion.or_else(|| outdated.then(|| ResolverInput::Reevaluate { runtime: id.clone() }))
        };
        self.runtimes.iter().filter_map(of_runtime).collect()
    }

    /// When [`due`](Self::due) will have something, if nothing else happens.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let of_runtime = |subject: &RuntimeState| {
            [self.demotion_at(subject), subject.ledger.next_deadline(now)].into_iter().flatten().min()
        };
        self.runtimes.values().filter_map(of_runtime).min()
    }

    /// An agent that has completed its turn waits for the next one; a task that has completed has done so for good.
    fn demotion_at(&self, subject: &RuntimeState) -> Option<Timestamp> {
        (subject.record.state == State::Completed && !subject.agent_type.is_task())
            .then(|| subject.record.since.checked_add(self.completed_for).ok())?
    }

    fn start_runtime(
        &mut self,
        runtime: RuntimeId,
        server: ServerKey,
        agent_type: AgentType,
        suspended: bool,
        now: Timestamp,
    ) -> Option<StateTransition> {
        if self.runtimes.contains_key(&runtime) {
            return None;
        }
        let record = StateRecord::initial(ReasonCode::NoAdapter, now);
        let mut subject = RuntimeState {
            server,
            agent_type,
            agent_id: None,
            suspended,
            ledger: Ledger::default(),
            record,
            dialog: None,
        };
        let judged = judge(&subject, &self.unreachable, now);
        subject.record =
            StateRecord { state: judged.state, reason: judged.reason, confidence: judged.confidence, ..subject.record };
        let transition = StateTransition { runtime: runtime.clone(), from: None, to: subject.record.clone() };
        self.runtimes.insert(runtime, subject);
        Some(transition)
    }

    fn set_reachable(&mut self, server: &ServerKey, reachable: bool, now: Timestamp) -> Vec<StateTransition> {
        let changed = if reachable { self.unreachable.remove(server) } else { self.unreachable.insert(server.clone()) };
        if !changed {
            return Vec::new();
        }
        let concerned = self.runtimes.iter_mut().filter(|(_, subject)| subject.server == *server);
        concerned.filter_map(|(id, subject)| commit_judgement(id, subject, &self.unreachable, now)).collect()
    }

    /// A runtime that has ended is nobody's business any more: what comes for it late changes nothing.
    fn change(
        &mut self,
        runtime: &RuntimeId,
        now: Timestamp,
        change: impl FnOnce(&mut RuntimeState),
    ) -> Vec<StateTransition> {
        let Some(subject) = self.runtimes.get_mut(runtime) else { return Vec::new() };
        change(subject);
        commit_judgement(runtime, subject, &self.unreachable, now).into_iter().collect()
    }
}

/// The part of a record that a judgement makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StateJudgement<'a> {
    state: State,
    reason: Option<ReasonCode>,
    confidence: Confidence,
    dialog: Option<&'a Dialog>,
}

impl<'a> StateJudgement<'a> {
    fn of(subject: &'a RuntimeState) -> Self {
        let StateRecord { state, reason, confidence, .. } = subject.record;
        Self { state, reason, confidence, dialog: subject.dialog.as_ref() }
    }

    fn unknown(reason: ReasonCode) -> Self {
        Self { state: State::Unknown, reason: Some(reason), confidence: Confidence::Low, dialog: None }
    }
}

fn judge<'a>(subject: &'a RuntimeState, unreachable: &BTreeSet<ServerKey>, now: Timestamp) -> StateJudgement<'a> {
    if unreachable.contains(&subject.server) {
        return StateJudgement::unknown(ReasonCode::TargetUnreachable);
    }
    if subject.suspended {
        return StateJudgement::unknown(ReasonCode::Suspended);
    }
    let StateVerdict { state, reason, confidence, .. } = subject.ledger.verdict(now);
    let dialog = state.needs_action().then(|| subject.ledger.dialog(state, now)).flatten();
    StateJudgement { state, reason, confidence, dialog }
}

fn commit_judgement(
    id: &RuntimeId,
    subject: &mut RuntimeState,
    unreachable: &BTreeSet<ServerKey>,
    now: Timestamp,
) -> Option<StateTransition> {
    let judged = judge(subject, unreachable, now);
    if judged == StateJudgement::of(subject) {
        return None;
    }
    let StateJudgement { state, reason, confidence, dialog } = judged;
    let dialog = dialog.cloned();
    // More sure of the same state, or another question, is a new version, not a new beginning.
    let since =
        if state == subject.record.state && reason == subject.record.reason { subject.record.since } else { now };
    let to = StateRecord { state, reason, confidence, version: subject.record.version + 1, since, updated_at: now };
    subject.dialog = dialog;
    let from = std::mem::replace(&mut subject.record, to.clone());
    Some(StateTransition { runtime: id.clone(), from: Some(from), to })
}
