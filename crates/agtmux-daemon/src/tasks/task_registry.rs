//! What is known of tasks: the machine of each session, and the runs that have not been told to be over.

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
    /// When it is to be looked at, if it is.
    pub(super) check_at: Option<Instant>,
    /// Somebody looks at it just now.
    pub(super) checking: bool,
    /// Names of tasks for which windows are made just now.
    pub(super) pending_windows: Vec<String>,
    /// What was started lately, over or not: a look that began before does not show it.
    pub(super) recent_launches: Vec<TaskRunRow>,
}

/// One launch that is not over.
pub(super) struct TrackedRun {
    pub(super) row: TaskRunRow,
    pub(super) files: RunFiles,
    /// How many bells were told and stored.
    pub(super) bells: u64,
    /// How much it had written when it fell silent at what may be a prompt.
    pub(super) quiet_at_bytes: Option<u64>,
    /// It has ended, and that is not told before its output is read.
    pub(super) unread_output: Option<UnreadOutput>,
    /// When it is looked at once more, because it may have been answered.
    pub(super) recheck_at: Option<Instant>,
    pub(super) state: PaneTaskStatus,
}

/// An end that waits for the reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreadOutput {
    /// Since when the log has not grown.
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
    fn new(place: &TaskSessionKey) -> Self {
        Self {
            machine: TaskMachine::new(place.session.clone()),
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

    /// The launch that a window holds, if it is not over.
    pub(super) fn run_in(&self, window: agtmux_core::ids::WindowId) -> Option<&TrackedRun> {
        self.runs.values().find(|run| run.row.window == window)
    }
}

impl TaskRegistry {
    pub(super) fn of((runs, machines): (Vec<TaskRunRow>, Vec<TaskMachineRow>), dir: &Path) -> Self {
        let mut book = Self::default();
        for row in machines {
            let machine = row.machine.and_then(|text| serde_json::from_str::<TaskMachine>(&text).ok());
            let Some(machine) = machine else { continue };
            let place = TaskSessionKey { socket: row.socket, session: machine.session().clone() };
            book.sessions.insert(place.clone(), TrackedSession { machine, ..TrackedSession::new(&place) });
        }
        for row in runs {
            let Ok(session) = row.session.parse() else { continue };
            let place = TaskSessionKey { socket: row.socket.clone(), session };
            book.session(&place).runs.insert(row.run_id.clone(), TrackedRun::new(row, dir));
        }
        book
    }

    pub(super) fn session(&mut self, place: &TaskSessionKey) -> &mut TrackedSession {
        self.sessions.entry(place.clone()).or_insert_with(|| TrackedSession::new(place))
    }
}

impl Tasks {
    /// Tells the machine of a session something, stores what comes of it, and tells that. False if it could not be stored: then
    /// nothing has happened, and it is to be told again.
    pub(super) async fn apply_inputs(
        &self,
        book: &mut TaskRegistry,
        place: &TaskSessionKey,
        inputs: Vec<TaskInput>,
        more: Vec<StoreChange>,
    ) -> bool {
        let now = self.0.clock.now();
        let session = book.session(place);
        let mut machine = session.machine.clone();
        let events: Vec<TaskEvent> = inputs.into_iter().flat_map(|input| machine.apply(input, now)).collect();
        let mut changes = more;
        if machine != session.machine {
            let text = serde_json::to_string(&machine).ok().filter(|_| !machine.is_empty());
            changes.push(StoreChange::PutTaskMachine(TaskMachineRow {
                socket: place.socket.clone(),
                session: place.session.to_string(),
                machine: text,
            }));
        }
        // Also those of which nothing is told because we ended them ourselves.
        let over: Vec<RunId> = session.runs.keys().filter(|run| !machine.awaits_exit(run)).cloned().collect();
        changes.extend(over.iter().map(|run| StoreChange::DropTaskRun(run.clone())));
        if events.is_empty() && changes.is_empty() {
            return true;
        }
        let told = TaskEventBatch { socket: place.socket.clone(), events, changes };
        let Some(events) = self.0.engine.record_task_events(told).await else {
            tracing::warn!(session = %place.session, "what happened to tasks could not be stored; it is told later");
            return false;
        };
        let before = std::mem::replace(&mut session.machine, machine);
        for run in before.runs().filter(|run| session.machine.runs().all(|known| known != *run)) {
            // Its window is gone, or has another run: nobody can ask for it any more.
            RunFiles::in_dir(&self.0.dir, run.as_str()).remove_log();
        }
        if !events.is_empty() {
            self.0.on_event.wake();
        }
        self.publish_states(session, place, &events, &over).await;
        true
    }

    /// Those who live in panes do what their tasks do.
    async fn publish_states(
        &self,
        session: &mut TrackedSession,
        place: &TaskSessionKey,
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
                // Nobody can ask for it any more.
                run.files.remove_log();
            }
            self.observe_task(place, &run.row, stays.then_some(PaneTaskStatus::Ended { success: well })).await;
        }
        let machine = &session.machine;
        for run in session.runs.values_mut() {
            let stand = match machine.open_prompt(run.row.window) {
                Some(prompt) => PaneTaskStatus::WaitingInput(prompt.to_owned()),
                None => PaneTaskStatus::Running,
            };
            if run.state != stand {
                run.state = stand.clone();
                self.observe_task(place, &run.row, Some(stand)).await;
            }
        }
    }

    pub(super) async fn observe_task(&self, place: &TaskSessionKey, row: &TaskRunRow, stand: Option<PaneTaskStatus>) {
        let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&place.socket)) };
        let task = stand.map(|stand| PaneTask { name: row.task.clone(), process: row.process, status: stand });
        let seen = TopologyUpdate::Task { server, generation: row.generation, pane: row.pane, task };
        self.0.engine.apply_topology(seen).await;
    }
}

fn is_end(event: &TaskEvent) -> bool {
    matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared)
}
