//! The task sessions that the daemon tracks: their state machines and their unfinished runs.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use agtmux_api::task_files::RunFiles;
use agtmux_core::fleet::{PaneTask, PaneTaskStatus, TopologyUpdate};
use agtmux_core::ids::{ServerKey, TargetName};
use agtmux_core::task::{RunId, TaskEvent, TaskEventKind, TaskInput, TaskMachine};

use super::{TaskSessionKey, Tasks};
use crate::engine::TaskEventBatch;
use crate::observe::server_name;
use crate::store::{StoreChange, TaskMachineRow, TaskRunRow};

#[derive(Default)]
pub(super) struct TaskRegistry {
    pub(super) sessions: HashMap<TaskSessionKey, TrackedSession>,
}

pub(super) struct TrackedSession {
    pub(super) machine: TaskMachine,
    pub(super) runs: BTreeMap<RunId, TrackedRun>,
    /// When to check the session in tmux, if a check is planned.
    pub(super) check_at: Option<Instant>,
    /// A check is in progress.
    pub(super) checking: bool,
    /// Names of tasks whose windows are being made.
    pub(super) pending_windows: Vec<String>,
    /// Recent launches, finished or not. A check that began before a launch does not show it.
    pub(super) recent_launches: Vec<TaskRunRow>,
}

/// One unfinished launch of a task.
pub(super) struct TrackedRun {
    pub(super) row: TaskRunRow,
    pub(super) files: RunFiles,
    /// The number of bells in stored events.
    pub(super) bells: u64,
    /// The bytes of output when it fell silent at a possible prompt.
    pub(super) quiet_at_bytes: Option<u64>,
    /// Set if the task has ended but its output is not read completely. The end is published after that.
    pub(super) unread_output: Option<UnreadOutput>,
    /// When to check again because its prompt may have been answered.
    pub(super) recheck_at: Option<Instant>,
    pub(super) state: PaneTaskStatus,
}

/// The progress of the reader after the task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreadOutput {
    /// When the log last grew.
    pub(super) since: Instant,
    pub(super) log_bytes: u64,
}

impl TrackedRun {
    pub(super) fn new(row: TaskRunRow, dir: &Path) -> Self {
        let files = RunFiles::in_dir(dir, row.run_id.as_str());
        Self {
            row,
            files,
            bells: 0,
            quiet_at_bytes: None,
            unread_output: None,
            recheck_at: None,
            state: PaneTaskStatus::Running,
        }
    }
}

impl TrackedSession {
    fn new(key: &TaskSessionKey) -> Self {
        Self {
            machine: TaskMachine::new(key.session.clone()),
            runs: BTreeMap::new(),
            check_at: None,
            checking: false,
            pending_windows: Vec::new(),
            recent_launches: Vec::new(),
        }
    }

    pub(super) fn check_by(&mut self, at: Instant) {
        self.check_at = Some(self.check_at.map_or(at, |known| known.min(at)));
    }

    /// The unfinished run in a window.
    pub(super) fn run_in(&self, window: agtmux_core::ids::WindowId) -> Option<&TrackedRun> {
        self.runs.values().find(|run| run.row.window == window)
    }
}

impl TaskRegistry {
    pub(super) fn of((runs, machines): (Vec<TaskRunRow>, Vec<TaskMachineRow>), dir: &Path) -> Self {
        let mut registry = Self::default();
        for row in machines {
            let machine = row.machine.and_then(|text| serde_json::from_str::<TaskMachine>(&text).ok());
            let Some(machine) = machine else { continue };
            let key = TaskSessionKey { socket: row.socket, session: machine.session().clone() };
            registry.sessions.insert(key.clone(), TrackedSession { machine, ..TrackedSession::new(&key) });
        }
        for row in runs {
            let Ok(session) = row.session.parse() else { continue };
            let key = TaskSessionKey { socket: row.socket.clone(), session };
            registry.session(&key).runs.insert(row.run_id.clone(), TrackedRun::new(row, dir));
        }
        registry
    }

    pub(super) fn session(&mut self, key: &TaskSessionKey) -> &mut TrackedSession {
        self.sessions.entry(key.clone()).or_insert_with(|| TrackedSession::new(key))
    }
}

impl Tasks {
    /// Applies inputs to the machine of a session, stores the result, and publishes the events.
    ///
    /// Returns false if the store failed. Then nothing has changed and the caller must try again.
    pub(super) async fn apply_inputs(
        &self,
        registry: &mut TaskRegistry,
        key: &TaskSessionKey,
        inputs: Vec<TaskInput>,
        more: Vec<StoreChange>,
    ) -> bool {
        let now = self.0.clock.now();
        let session = registry.session(key);
        let mut machine = session.machine.clone();
        let events: Vec<TaskEvent> = inputs.into_iter().flat_map(|input| machine.apply(input, now)).collect();
        let mut changes = more;
        if machine != session.machine {
            let text = serde_json::to_string(&machine).ok().filter(|_| !machine.is_empty());
            changes.push(StoreChange::PutTaskMachine(TaskMachineRow {
                socket: key.socket.clone(),
                session: key.session.to_string(),
                machine: text,
            }));
        }
        // Includes runs that agtmux ended itself, for which there is no event.
        let over: Vec<RunId> = session.runs.keys().filter(|run| !machine.awaits_exit(run)).cloned().collect();
        changes.extend(over.iter().map(|run| StoreChange::DropTaskRun(run.clone())));
        if events.is_empty() && changes.is_empty() {
            return true;
        }
        let recorded = TaskEventBatch { socket: key.socket.clone(), events, changes };
        let Some(events) = self.0.engine.record_task_events(recorded).await else {
            tracing::warn!(session = %key.session, "cannot store task events; trying again later");
            return false;
        };
        let before = std::mem::replace(&mut session.machine, machine);
        for run in before.runs().filter(|run| session.machine.runs().all(|known| known != *run)) {
            // The window is gone or has another run, so the log cannot be requested any more.
            RunFiles::in_dir(&self.0.dir, run.as_str()).remove_log();
        }
        if !events.is_empty() {
            self.0.on_event.wake();
        }
        self.publish_states(session, key, &events, &over).await;
        true
    }

    /// Publishes the state of each run to the fleet and drops finished runs.
    async fn publish_states(
        &self,
        session: &mut TrackedSession,
        key: &TaskSessionKey,
        events: &[TaskEvent],
        over: &[RunId],
    ) {
        for run in over {
            let Some(run) = session.runs.remove(run) else { continue };
            run.files.remove();
            let end = events.iter().find(|event| event.run_id.as_ref() == Some(&run.row.run_id) && is_end(event));
            let stays = end.is_some_and(|event| event.kind == TaskEventKind::Exited);
            let well = end.is_some_and(|event| event.exit_code == Some(0));
            if !stays {
                // The window is gone, so the log cannot be requested any more.
                run.files.remove_log();
            }
            self.observe_task(key, &run.row, stays.then_some(PaneTaskStatus::Ended { success: well })).await;
        }
        let machine = &session.machine;
        for run in session.runs.values_mut() {
            let state = match machine.open_prompt(run.row.window) {
                Some(prompt) => PaneTaskStatus::WaitingInput(prompt.to_owned()),
                None => PaneTaskStatus::Running,
            };
            if run.state != state {
                run.state = state.clone();
                self.observe_task(key, &run.row, Some(state)).await;
            }
        }
    }

    pub(super) async fn observe_task(&self, key: &TaskSessionKey, row: &TaskRunRow, state: Option<PaneTaskStatus>) {
        let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&key.socket)) };
        let task = state.map(|state| PaneTask { name: row.task.clone(), process: row.process, status: state });
        let seen = TopologyUpdate::Task { server, generation: row.generation, pane: row.pane, task };
        self.0.engine.apply_topology(seen).await;
    }
}

fn is_end(event: &TaskEvent) -> bool {
    matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared)
}
