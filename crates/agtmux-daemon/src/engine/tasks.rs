//! Tasks: applies inputs to the state machine of each task session, and shows the results in the fleet.

use std::sync::Arc;

use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{FleetDelta, PaneKey, PaneTask, PaneTaskStatus, TopologyUpdate};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::{LaunchedRun, RunId, TaskEvent, TaskEventKind, TaskInput};
use tokio::sync::oneshot;

use super::{Engine, EngineStep};
use crate::store::{StoreChange, TaskRunRow, TaskSession, TaskSessionKey};

/// Inputs for the state machine of one task session.
#[derive(Debug)]
pub(crate) struct TaskUpdate {
    pub(crate) key: TaskSessionKey,
    pub(crate) inputs: Vec<TaskInput>,
    /// A run to add after the inputs are applied. If its window has an unfinished run, the new run replaces that one.
    pub(crate) launched: Option<TaskRunRow>,
}

/// The changes of a stored update that the caller must react to: new events, and files to delete.
#[derive(Debug, Default)]
pub(crate) struct TaskUpdateOutcome {
    pub(crate) has_events: bool,
    /// The runs whose files can be deleted, because the database already contains how they ended.
    pub(crate) finished: Vec<RunId>,
    /// The runs whose logs clients cannot request any more, because the window is gone or shows another run.
    pub(crate) without_window: Vec<RunId>,
}

/// Receives the outcome of a task update. `None` means that the update could not be stored and that nothing has
/// changed.
pub(super) type TaskReply = oneshot::Sender<Option<TaskUpdateOutcome>>;

impl Engine {
    /// Applies the inputs to a copy of the session. The copy replaces the session when the step is stored.
    pub(super) fn apply_task_update(&mut self, update: TaskUpdate, reply: TaskReply, step: &mut EngineStep) {
        let TaskUpdate { key, inputs, launched } = update;
        let uncommitted = step.task_sessions.get(&key).cloned();
        let is_committed = uncommitted.is_none();
        let before = uncommitted.unwrap_or_else(|| self.task_sessions.get(&key));
        let mut session = TaskSession::clone(&before);
        let mut events: Vec<TaskEvent> =
            inputs.into_iter().flat_map(|input| session.machine.apply(input, step.now)).collect();
        let mut finished = Vec::new();
        if let Some(row) = launched {
            finished.extend(session.runs_in(row.window).map(|run| run.run_id.clone()).filter(|run| *run != row.run_id));
            session.runs.retain(|run, _| !finished.contains(run));
            events.extend(session.machine.apply(TaskInput::Started(launched_run(&row)), step.now));
            step.changes.push(StoreChange::PutTaskRun(key.clone(), Box::new(row.clone())));
            session.runs.insert(row.run_id.clone(), row);
        }
        let mut without_window = finished.clone();
        // `ended` includes runs that agtmux ended itself, which cause no event.
        let (runs, ended) = session.runs.into_iter().partition(|(run, _)| session.machine.awaits_exit(run));
        let session = TaskSession { machine: session.machine, runs };
        for (run_id, run) in ended {
            let status = ended_status(&run_id, &events);
            // The end of a run may be stored before its launch. The window of the run may then still exist, and clients
            // may request its log.
            let ended_before_launch = !before.runs.contains_key(&run_id);
            let keeps_log = ended_before_launch && session.machine.runs().any(|kept| *kept == run_id);
            without_window.extend((status.is_none() && !keeps_log).then(|| run_id.clone()));
            self.set_pane_task(&key, &run, status, step);
            finished.push(run_id);
        }
        without_window
            .extend(before.machine.runs().filter(|run| session.machine.runs().all(|kept| kept != *run)).cloned());
        step.changes.extend(finished.iter().cloned().map(StoreChange::DropTaskRun));
        if is_committed && events.is_empty() && finished.is_empty() && session == *before {
            let _ = reply.send(Some(TaskUpdateOutcome::default()));
            return;
        }
        let session = Arc::new(session);
        if session.machine != before.machine {
            step.changes.push(StoreChange::PutTaskMachine(key.clone(), session.clone()));
        }
        self.set_task_statuses(&key, &session, step);
        let outcome = TaskUpdateOutcome { has_events: !events.is_empty(), finished, without_window };
        step.task_sessions.insert(key.clone(), session);
        step.add_task_events(&key, events, outcome, reply);
    }

    /// Shows the status of each unfinished run of a session on the pane of the run.
    pub(super) fn set_task_statuses(&mut self, key: &TaskSessionKey, session: &TaskSession, step: &mut EngineStep) {
        for run in session.runs.values() {
            self.set_pane_task(key, run, Some(session.status(run)), step);
        }
    }

    fn set_pane_task(
        &mut self,
        key: &TaskSessionKey,
        run: &TaskRunRow,
        status: Option<PaneTaskStatus>,
        step: &mut EngineStep,
    ) {
        let pane = PaneKey { server: key.server(), pane: run.pane };
        if self.fleet.has_later_task(&pane, run.generation, run.process) {
            return;
        }
        let task = status.map(|status| PaneTask { name: run.task.clone(), process: run.process, status });
        match task {
            Some(_) => self.task_panes.insert(pane.clone(), key.clone()),
            None => self.task_panes.remove(&pane),
        };
        let PaneKey { server, pane } = pane;
        self.apply_topology(TopologyUpdate::Task { server, generation: run.generation, pane, task }, step);
    }

    /// Updates the states of task runtimes. Requests a check of each session in which a task pane was removed or died.
    pub(super) fn apply_task_changes(&mut self, delta: &FleetDelta, step: &mut EngineStep) {
        if self.task_panes.is_empty() || delta.is_empty() {
            return;
        }
        step.task_sessions_to_check.extend(delta.removed.iter().filter_map(|key| self.task_panes.get(key)).cloned());
        self.check_sessions_of_foreign_panes(delta, step);
        self.task_panes.retain(|key, _| !delta.removed.contains(key));
        for key in &delta.changed {
            let Some(session) = self.task_panes.get(key) else { continue };
            if self.fleet.pane(key).is_some_and(|pane| pane.dead.is_some()) {
                step.task_sessions_to_check.insert(session.clone());
            }
            let Some((runtime, task)) = self.fleet.task(key) else { continue };
            let (runtime, status) = (runtime.clone(), task.status.clone());
            self.observe_task(&runtime, &status, step);
        }
    }

    /// Requests a check of each task session in which a pane that is not a task appeared, changed or vanished. A task
    /// session may contain such panes next to its tasks.
    fn check_sessions_of_foreign_panes(&self, delta: &FleetDelta, step: &mut EngineStep) {
        let is_foreign = |key: &PaneKey| !self.task_panes.contains_key(key);
        if !delta.changed.iter().chain(&delta.removed).any(is_foreign) {
            return;
        }
        let shares_session = |(key, _): &(&PaneKey, &TaskSessionKey)| {
            let pane = self.fleet.pane(key);
            let mut sessions = pane.into_iter().flat_map(|pane| &pane.placements).map(|placement| placement.session);
            sessions.any(|session| delta.sessions.contains(&(key.server.clone(), session)))
        };
        let sessions = self.task_panes.iter().filter(shares_session).map(|(_, session)| session.clone());
        step.task_sessions_to_check.extend(sessions);
    }

    fn observe_task(&mut self, runtime: &RuntimeId, status: &PaneTaskStatus, step: &mut EngineStep) {
        let assertions: &[(Assertion, &str)] = match status {
            PaneTaskStatus::Running => &[(Assertion::Running, "the task runs"), (Assertion::NoDialog, "")],
            PaneTaskStatus::WaitingInput(prompt) => {
                &[(Assertion::Running, "the task runs"), (Assertion::DialogOpen(DialogKind::Input), prompt)]
            }
            PaneTaskStatus::Ended { success: true } => {
                &[(Assertion::Completed, "the task has succeeded"), (Assertion::NoDialog, "")]
            }
            PaneTaskStatus::Ended { success: false } => {
                &[(Assertion::Failed, "the task has failed"), (Assertion::NoDialog, "")]
            }
        };
        for (assertion, excerpt) in assertions {
            let observation = Observation {
                excerpt: agtmux_core::redact::text(excerpt).into_owned(),
                ..Observation::new(Source::Wrapper, *assertion, step.now, RuleRef::new("task", 1))
            };
            self.observe_if_new(runtime, observation, step.now, step);
        }
    }
}

fn launched_run(row: &TaskRunRow) -> LaunchedRun {
    LaunchedRun {
        run: row.run_id.clone(),
        server: row.generation,
        window: row.window,
        pane: row.pane,
        task: row.task.clone(),
    }
}

/// The status of a finished run, taken from its exit event. `None` if `events` contains no exit of this run.
fn ended_status(run: &RunId, events: &[TaskEvent]) -> Option<PaneTaskStatus> {
    let exit = events.iter().find(|event| event.kind == TaskEventKind::Exited && event.run_id.as_ref() == Some(run))?;
    Some(PaneTaskStatus::Ended { success: exit.exit_code == Some(0) })
}
