//! One state per runtime: what goes in is written down, so that the same input always gives the same states.

mod input;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use input::{Input, Transition};

use crate::dialog::Dialog;
use crate::evidence::{Source, Statement};
use crate::ids::{AgentType, ServerKey};
use crate::mind::{Mind, Standing, Verdict};
use crate::runtime::{RuntimeId, StateRecord};
use crate::state::{Confidence, ReasonCode, State};

/// Everything that decides states. Serialised, it is a checkpoint from which a replay can begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEngine {
    /// How long a completed turn is shown as such.
    completed_for: SignedDuration,
    runtimes: BTreeMap<RuntimeId, Subject>,
    unreachable: BTreeSet<ServerKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Subject {
    server: ServerKey,
    agent_type: AgentType,
    /// The agent's own session, once it told.
    #[serde(default)]
    agent_id: Option<String>,
    suspended: bool,
    mind: Mind,
    record: StateRecord,
    /// What it asks while it waits.
    #[serde(default)]
    dialog: Option<Dialog>,
}

impl StateEngine {
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
    pub fn mind(&self, runtime: &RuntimeId) -> Option<&Mind> {
        self.runtimes.get(runtime).map(|subject| &subject.mind)
    }

    pub fn is_suspended(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.suspended)
    }

    /// Whether hearing this could change anything. What could not needs no place in the log.
    pub fn is_news(&self, runtime: &RuntimeId, statement: &Statement) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.mind.is_news(statement))
    }

    /// Whether this source was last looked at in vain.
    pub fn is_silent(&self, runtime: &RuntimeId, source: Source) -> bool {
        self.runtimes.get(runtime).is_some_and(|subject| subject.mind.is_silent(source))
    }

    pub fn knows(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.contains_key(runtime)
    }

    pub fn runtimes(&self) -> impl Iterator<Item = (&RuntimeId, &StateRecord)> {
        self.runtimes.iter().map(|(id, subject)| (id, &subject.record))
    }

    /// What was heard of a runtime and what part each statement has in its state.
    pub fn standings(&self, runtime: &RuntimeId, now: Timestamp) -> Vec<Standing<'_>> {
        self.runtimes.get(runtime).map(|subject| subject.mind.standings(now).collect()).unwrap_or_default()
    }

    /// The only way a state changes.
    pub fn apply(&mut self, input: Input, now: Timestamp) -> Vec<Transition> {
        match input {
            Input::Began { runtime, server, agent_type, suspended } => {
                self.began(runtime, server, agent_type, suspended, now).into_iter().collect()
            }
            Input::Ended { runtime } => {
                self.runtimes.remove(&runtime);
                Vec::new()
            }
            Input::Reachable { server, reachable } => self.reachable(&server, reachable, now),
            Input::Suspended { runtime, suspended } => {
                self.change(&runtime, now, |subject| subject.suspended = suspended)
            }
            Input::Heard { runtime, statement } => self.change(&runtime, now, |subject| {
                subject.mind.hear(*statement, now);
            }),
            Input::Silent { runtime, source, at } => {
                self.change(&runtime, now, |subject| subject.mind.silent(source, at))
            }
            Input::Recalled { runtime, mind } => self.change(&runtime, now, |subject| subject.mind.recall(*mind)),
            Input::Muted { runtime } => self.change(&runtime, now, |subject| subject.mind = Mind::default()),
            Input::Named { runtime, agent_id } => {
                self.change(&runtime, now, |subject| subject.agent_id = Some(agent_id))
            }
            Input::DemotionDue { runtime, state_version } => self.change(&runtime, now, |subject| {
                // Whatever happened since has made its own decision.
                if subject.record.version == state_version && subject.record.state == State::Completed {
                    subject.mind.demote_completed();
                }
            }),
            Input::Reconsider { runtime } => self.change(&runtime, now, |_| {}),
        }
    }

    /// What time alone brings about, up to now. To be applied like any other input.
    pub fn due(&self, now: Timestamp) -> Vec<Input> {
        let of_runtime = |(id, subject): (&RuntimeId, &Subject)| {
            let demotion = self
                .demotion_at(subject)
                .is_some_and(|at| at <= now)
                .then(|| Input::DemotionDue { runtime: id.clone(), state_version: subject.record.version });
            let outdated = judge(subject, &self.unreachable, now) != Judged::of(subject);
            demotion.or_else(|| outdated.then(|| Input::Reconsider { runtime: id.clone() }))
        };
        self.runtimes.iter().filter_map(of_runtime).collect()
    }

    /// When [`due`](Self::due) will have something, if nothing else happens.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let of_runtime = |subject: &Subject| {
            [self.demotion_at(subject), subject.mind.next_deadline(now)].into_iter().flatten().min()
        };
        self.runtimes.values().filter_map(of_runtime).min()
    }

    /// An agent that has completed its turn waits for the next one; a task that has completed has done so for good.
    fn demotion_at(&self, subject: &Subject) -> Option<Timestamp> {
        (subject.record.state == State::Completed && !subject.agent_type.is_task())
            .then(|| subject.record.since.checked_add(self.completed_for).ok())?
    }

    fn began(
        &mut self,
        runtime: RuntimeId,
        server: ServerKey,
        agent_type: AgentType,
        suspended: bool,
        now: Timestamp,
    ) -> Option<Transition> {
        if self.runtimes.contains_key(&runtime) {
            return None;
        }
        let record = StateRecord::first(ReasonCode::NoAdapter, now);
        let mut subject =
            Subject { server, agent_type, agent_id: None, suspended, mind: Mind::default(), record, dialog: None };
        let judged = judge(&subject, &self.unreachable, now);
        subject.record =
            StateRecord { state: judged.state, reason: judged.reason, confidence: judged.confidence, ..subject.record };
        let transition = Transition { runtime: runtime.clone(), from: None, to: subject.record.clone() };
        self.runtimes.insert(runtime, subject);
        Some(transition)
    }

    fn reachable(&mut self, server: &ServerKey, reachable: bool, now: Timestamp) -> Vec<Transition> {
        let changed = if reachable { self.unreachable.remove(server) } else { self.unreachable.insert(server.clone()) };
        if !changed {
            return Vec::new();
        }
        let concerned = self.runtimes.iter_mut().filter(|(_, subject)| subject.server == *server);
        concerned.filter_map(|(id, subject)| settle(id, subject, &self.unreachable, now)).collect()
    }

    /// A runtime that has ended is nobody's business any more: what comes for it late changes nothing.
    fn change(&mut self, runtime: &RuntimeId, now: Timestamp, change: impl FnOnce(&mut Subject)) -> Vec<Transition> {
        let Some(subject) = self.runtimes.get_mut(runtime) else { return Vec::new() };
        change(subject);
        settle(runtime, subject, &self.unreachable, now).into_iter().collect()
    }
}

/// The part of a record that a judgement makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Judged<'a> {
    state: State,
    reason: Option<ReasonCode>,
    confidence: Confidence,
    dialog: Option<&'a Dialog>,
}

impl<'a> Judged<'a> {
    fn of(subject: &'a Subject) -> Self {
        let StateRecord { state, reason, confidence, .. } = subject.record;
        Self { state, reason, confidence, dialog: subject.dialog.as_ref() }
    }

    fn unknown(reason: ReasonCode) -> Self {
        Self { state: State::Unknown, reason: Some(reason), confidence: Confidence::Low, dialog: None }
    }
}

fn judge<'a>(subject: &'a Subject, unreachable: &BTreeSet<ServerKey>, now: Timestamp) -> Judged<'a> {
    if unreachable.contains(&subject.server) {
        return Judged::unknown(ReasonCode::TargetUnreachable);
    }
    if subject.suspended {
        return Judged::unknown(ReasonCode::Suspended);
    }
    let Verdict { state, reason, confidence, .. } = subject.mind.verdict(now);
    let dialog = state.needs_action().then(|| subject.mind.dialog(state, now)).flatten();
    Judged { state, reason, confidence, dialog }
}

fn settle(
    id: &RuntimeId,
    subject: &mut Subject,
    unreachable: &BTreeSet<ServerKey>,
    now: Timestamp,
) -> Option<Transition> {
    let judged = judge(subject, unreachable, now);
    if judged == Judged::of(subject) {
        return None;
    }
    let Judged { state, reason, confidence, dialog } = judged;
    let dialog = dialog.cloned();
    // More sure of the same state, or another question, is a new version, not a new beginning.
    let since =
        if state == subject.record.state && reason == subject.record.reason { subject.record.since } else { now };
    let to = StateRecord { state, reason, confidence, version: subject.record.version + 1, since, updated_at: now };
    subject.dialog = dialog;
    let from = std::mem::replace(&mut subject.record, to.clone());
    Some(Transition { runtime: id.clone(), from: Some(from), to })
}
