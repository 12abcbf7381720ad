//! A simulated task session for tests: windows, time and reported events.

use jiff::{SignedDuration, Timestamp};

use crate::ids::{Generation, PaneId, WindowId};
use crate::task::{
    LaunchedRun, PlannedRemoval, RunId, TaskEvent, TaskExit, TaskInput, TaskMachine, TaskSessionName,
    TaskSessionSnapshot, TaskSnapshot,
};

pub(super) const SERVER: Generation = Generation { pid: 77, start_time: 1000 };

pub(super) struct SessionFixture {
    pub(super) machine: TaskMachine,
    pub(super) windows: Vec<TaskSnapshot>,
    pub(super) server: Generation,
    pub(super) now: Timestamp,
}

pub(super) fn run(name: &str) -> RunId {
    name.parse().expect("an id")
}

pub(super) fn session() -> TaskSessionName {
    "pi-foo-1".parse().expect("a name")
}

/// A window with a live pane. The window and the pane have the same number.
pub(super) fn window(id: u32, name: &str) -> TaskSnapshot {
    TaskSnapshot {
        window_id: WindowId(id),
        window_name: name.to_owned(),
        pane_id: Some(PaneId(id)),
        pane_state_known: true,
        current_command: None,
        task_cwd: None,
        dead: false,
        exit_code: None,
        signal: None,
        bell: false,
        bell_count: 0,
        output_preview: String::new(),
        run: None,
        cursor_line: Some(String::new()),
        cursor_row: Some(0),
        answers: 0,
        awaits_launch: false,
    }
}

impl SessionFixture {
    /// An empty session whose baseline snapshot was applied.
    pub(super) fn new() -> Self {
        let mut fixture = Self::unseen();
        assert_eq!(fixture.apply_snapshot(), Vec::<String>::new());
        fixture
    }

    /// An empty session before the first snapshot.
    pub(super) fn unseen() -> Self {
        let now = Timestamp::from_second(1_000_000).expect("a time");
        Self { machine: TaskMachine::new(session()), windows: Vec::new(), server: SERVER, now }
    }

    pub(super) fn wait(&mut self, millis: i64) {
        self.now += SignedDuration::from_millis(millis);
    }

    pub(super) fn events(&mut self, input: TaskInput) -> Vec<TaskEvent> {
        self.machine.apply(input, self.now)
    }

    pub(super) fn apply(&mut self, input: TaskInput) -> Vec<String> {
        short(&self.events(input))
    }

    pub(super) fn snapshot(&self) -> TaskSessionSnapshot {
        TaskSessionSnapshot {
            session_name: session(),
            exists: !self.windows.is_empty(),
            captured_at: self.now,
            tasks: self.windows.clone(),
            server: Some(self.server),
        }
    }

    pub(super) fn apply_snapshot(&mut self) -> Vec<String> {
        let snapshot = self.snapshot();
        self.apply(TaskInput::Snapshot(snapshot))
    }

    /// Lets time pass and takes snapshots until the machine has reported everything that is due.
    pub(super) fn settle(&mut self) -> Vec<String> {
        self.wait(400);
        let mut events = self.apply(TaskInput::Tick);
        events.extend(self.apply_snapshot());
        self.wait(400);
        events.extend(self.apply_snapshot());
        events.extend(self.apply(TaskInput::Tick));
        events
    }

    pub(super) fn window(&mut self, id: u32) -> &mut TaskSnapshot {
        self.windows.iter_mut().find(|window| window.window_id.0 == id).expect("the window")
    }

    pub(super) fn close(&mut self, id: u32) {
        self.windows.retain(|window| window.window_id.0 != id);
    }

    /// Launches a run. All later snapshots show the run in its window.
    pub(super) fn launch(&mut self, id: u32, name: &str, run_id: &str) -> Vec<String> {
        self.close(id);
        self.windows.push(TaskSnapshot { run: Some(run(run_id)), ..window(id, name) });
        self.started(id, name, run_id)
    }

    pub(super) fn started(&mut self, id: u32, name: &str, run_id: &str) -> Vec<String> {
        let launch = LaunchedRun {
            run: run(run_id),
            server: self.server,
            window: WindowId(id),
            pane: PaneId(id),
            task: name.to_owned(),
        };
        self.apply(TaskInput::Started(launch))
    }

    pub(super) fn exited(&mut self, run_id: &str, exit: TaskExit) -> Vec<String> {
        self.exited_after(run_id, exit, 0)
    }

    pub(super) fn exited_after(&mut self, run_id: &str, exit: TaskExit, bells: u64) -> Vec<String> {
        self.apply(TaskInput::Exited { run: run(run_id), exit, bells, output: String::new() })
    }

    pub(super) fn bell_rang(&mut self, run_id: &str, bells: u64) -> Vec<String> {
        self.apply(TaskInput::BellRang { run: run(run_id), bells, output: String::new() })
    }

    pub(super) fn plan_removal(&mut self, ending: PlannedRemoval) -> Vec<String> {
        self.apply(TaskInput::RemovalPlanned(ending))
    }

    /// Ends the process in this window. Later snapshots show a dead pane.
    pub(super) fn die(&mut self, id: u32, exit: TaskExit) {
        let window = self.window(id);
        (window.dead, window.exit_code, window.signal) = (true, exit.code, exit.signal);
    }

    pub(super) fn show_prompt(&mut self, id: u32, line: &str) {
        let window = self.window(id);
        window.cursor_line = Some(line.to_owned());
        window.output_preview = line.trim_end().to_owned();
    }

    /// Stores the machine and restores it, as happens when the daemon restarts.
    pub(super) fn restart(&mut self) {
        let stored = serde_json::to_string(&self.machine).expect("writes");
        self.machine = serde_json::from_str(&stored).expect("reads");
    }
}

/// Messages without their common prefix.
fn short(events: &[TaskEvent]) -> Vec<String> {
    let without = |event: &TaskEvent| event.message.strip_prefix("tmux task ").unwrap_or(&event.message).to_owned();
    events.iter().map(without).collect()
}
