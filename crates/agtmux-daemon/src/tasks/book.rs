//! What is known of tasks: the machine of each session, and the runs that have not been told to be over.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use agtmux_api::task_files::RunFiles;
use agtmux_core::fleet::{Observation, TaskSighting, TaskStand};
use agtmux_core::ids::{ServerKey, TargetName};
use agtmux_core::task::{RunId, TaskEvent, TaskEventKind, TaskInput, TaskMachine};

use super::{Place, Tasks};
use crate::engine::TasksTold;
use crate::observe::server_name;
use crate::store::{Change, MachineRow, RunRow};

#[derive(Default)]
pub(super) struct Book {
    pub(super) sessions: HashMap<Place, Session>,
}

pub(super) struct Session {
    pub(super) machine: TaskMachine,
    pub(super) runs: BTreeMap<RunId, Run>,
    /// When it is to be looked at, if it is.
    pub(super) look_at: Option<Instant>,
    /// Somebody looks at it just now.
    pub(super) looking: bool,
    /// Names of tasks for which windows are made just now.
    pub(super) pending: Vec<String>,
    /// What was started lately, over or not: a look that began before does not show it.
    pub(super) begun: Vec<RunRow>,
}

/// One launch that is not over.
pub(super) struct Run {
    pub(super) row: RunRow,
    pub(super) files: RunFiles,
    /// How many bells were told and stored.
    pub(super) bells: u64,
    /// How much it had written when it fell silent at what may be a prompt.
    pub(super) quiet: Option<u64>,
    /// It has ended, and that is not told before its output is read.
    pub(super) unread: Option<Unread>,
    /// When it is looked at once more, because it may have been answered.
    pub(super) again_at: Option<Instant>,
    pub(super) stand: TaskStand,
}

/// An end that waits for the reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unread {
    /// Since when the log has not grown.
    pub(super) since: Instant,
    pub(super) log: u64,
}

impl Run {
    pub(super) fn new(row: RunRow, dir: &Path) -> Self {
        let files = RunFiles::of(dir, row.run_id.as_str());
        Self { row, files, bells: 0, quiet: None, unread: None, again_at: None, stand: TaskStand::Running }
    }
}

impl Session {
    fn new(place: &Place) -> Self {
        Self {
            machine: TaskMachine::new(place.session.clone()),
            runs: BTreeMap::new(),
            look_at: None,
            looking: false,
            pending: Vec::new(),
            begun: Vec::new(),
        }
    }

    pub(super) fn look_by(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |known| known.min(at)));
    }

    /// The launch that a window holds, if it is not over.
    pub(super) fn run_in(&self, window: agtmux_core::ids::WindowId) -> Option<&Run> {
        self.runs.values().find(|run| run.row.window == window)
    }
}

impl Book {
    pub(super) fn of((runs, machines): (Vec<RunRow>, Vec<MachineRow>), dir: &Path) -> Self {
        let mut book = Self::default();
        for row in machines {
            let machine = row.machine.and_then(|text| serde_json::from_str::<TaskMachine>(&text).ok());
            let Some(machine) = machine else { continue };
            let place = Place { socket: row.socket, session: machine.session().clone() };
            book.sessions.insert(place.clone(), Session { machine, ..Session::new(&place) });
        }
        for row in runs {
            let Ok(session) = row.session.parse() else { continue };
            let place = Place { socket: row.socket.clone(), session };
            book.session(&place).runs.insert(row.run_id.clone(), Run::new(row, dir));
        }
        book
    }

    pub(super) fn session(&mut self, place: &Place) -> &mut Session {
        self.sessions.entry(place.clone()).or_insert_with(|| Session::new(place))
    }
}

impl Tasks {
    /// Tells the machine of a session something, stores what comes of it, and tells that. False if it could not be stored: then
    /// nothing has happened, and it is to be told again.
    pub(super) async fn tell(&self, book: &mut Book, place: &Place, inputs: Vec<TaskInput>, more: Vec<Change>) -> bool {
        let now = self.0.clock.now();
        let session = book.session(place);
        let mut machine = session.machine.clone();
        let events: Vec<TaskEvent> = inputs.into_iter().flat_map(|input| machine.apply(input, now)).collect();
        let mut changes = more;
        if machine != session.machine {
            let text = serde_json::to_string(&machine).ok().filter(|_| !machine.is_empty());
            changes.push(Change::PutMachine(MachineRow {
                socket: place.socket.clone(),
                session: place.session.to_string(),
                machine: text,
            }));
        }
        // Also those of which nothing is told because we ended them ourselves.
        let over: Vec<RunId> = session.runs.keys().filter(|run| !machine.awaits_end(run)).cloned().collect();
        changes.extend(over.iter().map(|run| Change::DropRun(run.clone())));
        if events.is_empty() && changes.is_empty() {
            return true;
        }
        let told = TasksTold { socket: place.socket.clone(), events, changes };
        let Some(events) = self.0.engine.tasks(told).await else {
            tracing::warn!(session = %place.session, "what happened to tasks could not be stored; it is told later");
            return false;
        };
        let before = std::mem::replace(&mut session.machine, machine);
        for run in before.runs().filter(|run| session.machine.runs().all(|known| known != *run)) {
            // Its window is gone, or has another run: nobody can ask for it any more.
            RunFiles::of(&self.0.dir, run.as_str()).remove_log();
        }
        if !events.is_empty() {
            self.0.on_event.nudge();
        }
        self.settle(session, place, &events, &over).await;
        true
    }

    /// Those who live in panes do what their tasks do.
    async fn settle(&self, session: &mut Session, place: &Place, events: &[TaskEvent], over: &[RunId]) {
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
            self.observe(place, &run.row, stays.then_some(TaskStand::Ended { well })).await;
        }
        let machine = &session.machine;
        for run in session.runs.values_mut() {
            let stand = match machine.asks(run.row.window) {
                Some(prompt) => TaskStand::Asks(prompt.to_owned()),
                None => TaskStand::Running,
            };
            if run.stand != stand {
                run.stand = stand.clone();
                self.observe(place, &run.row, Some(stand)).await;
            }
        }
    }

    pub(super) async fn observe(&self, place: &Place, row: &RunRow, stand: Option<TaskStand>) {
        let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&place.socket)) };
        let task = stand.map(|stand| TaskSighting { name: row.task.clone(), process: row.process, stand });
        let seen = Observation::Task { server, generation: row.generation, pane: row.pane, task };
        self.0.engine.observe(seen).await;
    }
}

fn is_end(event: &TaskEvent) -> bool {
    matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared)
}
