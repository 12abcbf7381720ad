//! The state resolver: keeps one state per runtime. All inputs are logged, so a replay gives the same states.

mod input;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use input::{ResolverInput, StateTransition};

use crate::asked_command::{self, AskedCommand};
use crate::dialog::Dialog;
use crate::ids::{AgentType, ServerKey};
use crate::ledger::{Ledger, StateVerdict};
use crate::runtime::{RuntimeId, StateRecord};
use crate::state::{ReasonCode, State};

/// Resolves the state of every runtime. Its serialized form is a checkpoint that a replay can start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateResolver {
    /// How long a completed turn is shown as completed before the agent becomes idle.
    completed_for: SignedDuration,
    runtimes: BTreeMap<RuntimeId, RuntimeState>,
    unreachable: BTreeSet<ServerKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RuntimeState {
    server: ServerKey,
    agent_type: AgentType,
    /// The agent's own session id. `None` until it is known.
    agent_id: Option<String>,
    suspended: bool,
    #[serde(alias = "mind")]
    ledger: Ledger,
    record: StateRecord,
    /// The open dialog of a waiting agent.
    dialog: Option<Dialog>,
    /// The requests for approval that the agent itself reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<AskedCommand>,
    /// How much of the time since the state began does not count for the demotion to idle, because the machine slept or
    /// the daemon was stopped.
    #[serde(default, skip_serializing_if = "SignedDuration::is_zero")]
    skipped: SignedDuration,
    /// The last state before an interruption, during which agtmux cannot observe the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<InterruptedState>,
    /// When the agent completed its last turn, if the user has not seen the result yet (see [`ResolverInput::Seen`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unseen_since: Option<Timestamp>,
}

/// The state of a runtime before its server became unreachable or its process was suspended. If the runtime has the
/// same state afterwards, the state keeps its age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InterruptedState {
    state: State,
    reason: Option<ReasonCode>,
    since: Timestamp,
    skipped: SignedDuration,
}

impl StateResolver {
    pub fn new(completed_for: SignedDuration) -> Self {
        Self { completed_for, runtimes: BTreeMap::new(), unreachable: BTreeSet::new() }
    }

    /// Sets how long a completed turn is shown as completed. A checkpoint may contain an older value of this setting.
    pub fn set_completed_for(&mut self, completed_for: SignedDuration) {
        self.completed_for = completed_for;
    }

    pub fn state(&self, runtime: &RuntimeId) -> Option<&StateRecord> {
        self.runtimes.get(runtime).map(|entry| &entry.record)
    }

    /// The open dialog of a waiting agent, or `None` if no source shows one. Contains the whole command if the
    /// agent reports it.
    pub fn dialog(&self, runtime: &RuntimeId) -> Option<Dialog> {
        let entry = self.runtimes.get(runtime)?;
        entry.dialog.as_ref().map(|dialog| asked_command::complete(dialog, &entry.asked))
    }

    /// When the agent completed its last turn, if the user has not seen the result yet (see [`ResolverInput::Seen`]).
    pub fn unseen_since(&self, runtime: &RuntimeId) -> Option<Timestamp> {
        self.runtimes.get(runtime)?.unseen_since
    }

    /// The requests for approval that the agent itself reports.
    pub fn asked(&self, runtime: &RuntimeId) -> &[AskedCommand] {
        self.runtimes.get(runtime).map_or(&[], |entry| &entry.asked)
    }

    /// The agent's own session id. `None` until it is known.
    pub fn agent_id(&self, runtime: &RuntimeId) -> Option<&str> {
        self.runtimes.get(runtime)?.agent_id.as_deref()
    }

    pub fn agent_type(&self, runtime: &RuntimeId) -> Option<&AgentType> {
        self.runtimes.get(runtime).map(|entry| &entry.agent_type)
    }

    /// The ledger of a runtime.
    pub fn ledger(&self, runtime: &RuntimeId) -> Option<&Ledger> {
        self.runtimes.get(runtime).map(|entry| &entry.ledger)
    }

    pub fn is_suspended(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.get(runtime).is_some_and(|entry| entry.suspended)
    }

    pub fn has_runtime(&self, runtime: &RuntimeId) -> bool {
        self.runtimes.contains_key(runtime)
    }

    pub fn runtimes(&self) -> impl Iterator<Item = (&RuntimeId, &StateRecord)> {
        self.runtimes.iter().map(|(id, entry)| (id, &entry.record))
    }

    /// Applies an input. This is the only way a state changes.
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
                self.change(&runtime, now, |entry| entry.suspended = suspended)
            }
            ResolverInput::Observed { runtime, observation } => self.change(&runtime, now, |entry| {
                entry.ledger.record(*observation, now);
            }),
            ResolverInput::Unrecognized { runtime, source, at } => {
                self.change(&runtime, now, |entry| entry.ledger.mark_unrecognized(source, at))
            }
            ResolverInput::LedgerReplaced { runtime, ledger } => {
                self.change(&runtime, now, |entry| entry.ledger.replace_with(*ledger))
            }
            ResolverInput::LedgerCleared { runtime } => {
                self.change(&runtime, now, |entry| entry.ledger = Ledger::default())
            }
            ResolverInput::AgentIdentified { runtime, agent_id } => {
                self.change(&runtime, now, |entry| entry.agent_id = Some(agent_id))
            }
            ResolverInput::DemotionDue { runtime, state_version } => self.change(&runtime, now, |entry| {
                // The demotion is outdated if the state has a newer version.
                if entry.record.version == state_version && entry.record.state == State::Completed {
                    entry.ledger.demote_completed();
                }
            }),
            ResolverInput::HoldEnded { runtime } => self.change(&runtime, now, |entry| entry.ledger.end_holds()),
            ResolverInput::Reevaluate { runtime } => self.change(&runtime, now, |_| {}),
            ResolverInput::Seen { runtime } => self.change(&runtime, now, |entry| entry.unseen_since = None),
            ResolverInput::ClockStepped { by } => self.change_all(now, |entry| entry.shift_clock(by, now)),
            ResolverInput::TimeSkipped { by } => self.change_all(now, |entry| {
                entry.ledger.skip_time(by, now);
                let interrupted = entry.interrupted.iter_mut().map(|before| &mut before.skipped);
                interrupted.chain([&mut entry.skipped]).for_each(|skipped| *skipped = skipped.saturating_add(by));
            }),
        }
    }

    /// Returns the inputs that are due because time has passed: demotions of completed turns, and new evaluations of
    /// runtimes with expired observations. The caller applies them like any other input.
    pub fn due_inputs(&self, now: Timestamp) -> Vec<ResolverInput> {
        let of_runtime = |(id, entry): (&RuntimeId, &RuntimeState)| {
            let demotion = self
                .demotion_at(entry)
                .is_some_and(|at| at <= now)
                .then(|| ResolverInput::DemotionDue { runtime: id.clone(), state_version: entry.record.version });
            let outdated = judge(entry, &self.unreachable, now) != entry.recorded();
            demotion.or_else(|| outdated.then(|| ResolverInput::Reevaluate { runtime: id.clone() }))
        };
        self.runtimes.iter().filter_map(of_runtime).collect()
    }

    /// When [`due_inputs`](Self::due_inputs) will next return an input, provided that no other input is applied before.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let of_runtime = |entry: &RuntimeState| {
            [self.demotion_at(entry), entry.ledger.next_deadline(now)].into_iter().flatten().min()
        };
        self.runtimes.values().filter_map(of_runtime).min()
    }

    /// When a completed agent becomes idle. A completed task stays completed.
    fn demotion_at(&self, entry: &RuntimeState) -> Option<Timestamp> {
        let shown_for = self.completed_for.saturating_add(entry.skipped);
        (entry.record.state == State::Completed && !entry.agent_type.is_task())
            .then(|| entry.record.since.checked_add(shown_for).ok())?
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
        let mut entry = RuntimeState {
            server,
            agent_type,
            agent_id: None,
            suspended,
            ledger: Ledger::default(),
            record,
            dialog: None,
            asked: Vec::new(),
            skipped: SignedDuration::ZERO,
            interrupted: None,
            unseen_since: None,
        };
        let judged = judge(&entry, &self.unreachable, now);
        entry.record =
            StateRecord { state: judged.state, reason: judged.reason, confidence: judged.confidence, ..entry.record };
        let transition = StateTransition { runtime: runtime.clone(), from: None, to: entry.record.clone() };
        self.runtimes.insert(runtime, entry);
        Some(transition)
    }

    fn set_reachable(&mut self, server: &ServerKey, reachable: bool, now: Timestamp) -> Vec<StateTransition> {
        let changed = if reachable { self.unreachable.remove(server) } else { self.unreachable.insert(server.clone()) };
        if !changed {
            return Vec::new();
        }
        let concerned = self.runtimes.iter_mut().filter(|(_, entry)| entry.server == *server);
        concerned.filter_map(|(id, entry)| commit_judgement(id, entry, &self.unreachable, now)).collect()
    }

    /// Changes one runtime. Inputs for an ended runtime are ignored.
    fn change(
        &mut self,
        runtime: &RuntimeId,
        now: Timestamp,
        change: impl FnOnce(&mut RuntimeState),
    ) -> Vec<StateTransition> {
        let Some(entry) = self.runtimes.get_mut(runtime) else { return Vec::new() };
        change(entry);
        commit_judgement(runtime, entry, &self.unreachable, now).into_iter().collect()
    }

    fn change_all(&mut self, now: Timestamp, mut change: impl FnMut(&mut RuntimeState)) -> Vec<StateTransition> {
        let commit = |(id, entry): (&RuntimeId, &mut RuntimeState)| {
            change(entry);
            commit_judgement(id, entry, &self.unreachable, now)
        };
        self.runtimes.iter_mut().filter_map(commit).collect()
    }
}

impl RuntimeState {
    /// Moves all times by `by`, but no time past `now`.
    fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) {
        self.ledger.shift_clock(by, now);
        let interrupted = self.interrupted.as_mut().map(|interrupted| &mut interrupted.since);
        let others = interrupted.into_iter().chain(self.unseen_since.as_mut());
        for at in [&mut self.record.since, &mut self.record.updated_at].into_iter().chain(others) {
            *at = at.checked_add(by).unwrap_or(now).min(now);
        }
    }

    /// When the state in `judged` began, and how much of the time since then does not count for the demotion. If an
    /// interruption only hid this state, the state began before the interruption.
    fn beginning_of(&mut self, judged: (State, Option<ReasonCode>), now: Timestamp) -> (Timestamp, SignedDuration) {
        let (StateRecord { state, reason, since, .. }, skipped) = (self.record.clone(), self.skipped);
        if judged == (state, reason) {
            return (since, skipped);
        }
        if is_interruption(judged.1) {
            let shown = (!is_interruption(reason)).then_some(InterruptedState { state, reason, since, skipped });
            self.interrupted = self.interrupted.take().or(shown);
            return (now, SignedDuration::ZERO);
        }
        let is_same = |before: &InterruptedState| (before.state, before.reason) == judged;
        let before = self.interrupted.take().filter(is_same);
        before.map_or((now, SignedDuration::ZERO), |before| (before.since, before.skipped))
    }

    /// The verdict that the record contains.
    fn recorded(&self) -> StateVerdict<'_> {
        let StateRecord { state, reason, confidence, .. } = self.record;
        StateVerdict { state, reason, confidence, dialog: self.dialog.as_ref(), asked: &self.asked }
    }
}

/// Whether the reason is only that the agent cannot be observed. Such a reason says nothing about what the agent does.
fn is_interruption(reason: Option<ReasonCode>) -> bool {
    matches!(reason, Some(ReasonCode::TargetUnreachable | ReasonCode::Suspended))
}

fn judge<'a>(entry: &'a RuntimeState, unreachable: &BTreeSet<ServerKey>, now: Timestamp) -> StateVerdict<'a> {
    if unreachable.contains(&entry.server) {
        return StateVerdict::unknown(ReasonCode::TargetUnreachable);
    }
    if entry.suspended {
        return StateVerdict::unknown(ReasonCode::Suspended);
    }
    entry.ledger.verdict(now)
}

fn commit_judgement(
    id: &RuntimeId,
    entry: &mut RuntimeState,
    unreachable: &BTreeSet<ServerKey>,
    now: Timestamp,
) -> Option<StateTransition> {
    let judged = judge(entry, unreachable, now);
    if judged == entry.recorded() {
        return None;
    }
    let StateVerdict { state, reason, confidence, dialog, asked } = judged;
    let (dialog, asked) = (dialog.cloned(), asked.to_vec());
    // A changed confidence or dialog makes a new version but keeps the start time of the state.
    let since;
    (since, entry.skipped) = entry.beginning_of((state, reason), now);
    let to = StateRecord { state, reason, confidence, version: entry.record.version + 1, since, updated_at: now };
    (entry.dialog, entry.asked) = (dialog, asked);
    entry.unseen_since = match state {
        // If the state began before `now`, the agent has not completed another turn: the state was only hidden for a
        // while.
        State::Completed if entry.record.state != State::Completed && since == now => Some(now),
        State::Completed | State::Idle | State::Unknown => entry.unseen_since,
        State::Running | State::WaitingApproval | State::WaitingInput | State::Error => None,
    };
    let from = std::mem::replace(&mut entry.record, to.clone());
    Some(StateTransition { runtime: id.clone(), from: Some(from), to })
}
