//! Fixture for task tests. It has a task session on a real tmux server, and reads the session's events.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::agtmux::{CommandResult, SOON, run, start, world};
use crate::{TestTmuxServer, TestWorld, wait_for};

pub struct TaskFixture {
    pub tmux: TestTmuxServer,
    pub project: PathBuf,
    pub session: String,
    pub locale: &'static str,
    pub world: TestWorld,
}

/// The ids that `task run --json` prints.
#[derive(Debug)]
pub struct LaunchedTask {
    pub window: String,
    pub run: String,
    pub pane: String,
}

impl TaskFixture {
    /// A fixture with the project `foo`, the session `pi-foo-1` and a daemon. No tmux server runs yet.
    pub fn new() -> Self {
        Self::with_project("foo", "C.UTF-8")
    }

    pub fn with_project(project: &str, locale: &'static str) -> Self {
        let world = world();
        let project = world.home().join(project);
        fs::create_dir_all(&project).expect("the world is writable");
        let tmux = world.tmux("default");
        let mut fixture = Self { tmux, project, session: String::new(), locale, world };
        let name = fixture.session_name("1");
        fixture.session = name;
        start(&fixture.world);
        fixture
    }

    /// The name that a task session of this project has if its session id is `id`.
    pub fn session_name(&self, id: &str) -> String {
        let path = self.project.to_str().expect("UTF-8");
        let done = run(self.agtmux().args(["task", "session-name", path, id]));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.text().trim().to_owned()
    }

    pub fn agtmux(&self) -> Command {
        let mut command = self.world.agtmux();
        command.env("LANG", self.locale).env("AGTMUX_SESSION", &self.session).current_dir(&self.project);
        command
    }

    #[track_caller]
    pub fn task(&self, args: &[&str]) -> CommandResult {
        run(self.agtmux().arg("task").args(args))
    }

    #[track_caller]
    pub fn task_ok(&self, args: &[&str]) -> CommandResult {
        let done = self.task(args);
        assert_eq!(done.code, Some(0), "task {args:?}: {}", done.stderr);
        done
    }

    /// Starts a task. If a task with this name exists, replaces it.
    #[track_caller]
    pub fn run(&self, name: &str, command: &str) -> LaunchedTask {
        let started = self.task_ok(&["run", "--json", "--replace", name, "--", command]).json();
        let text = |name: &str| started[name].as_str().expect("a text").to_owned();
        LaunchedTask { window: text("window_id"), run: text("run_id"), pane: text("pane_id") }
    }

    #[track_caller]
    pub fn list(&self) -> Value {
        self.task_ok(&["list", "--json"]).json()
    }

    /// The entry of a window in `task list`.
    #[track_caller]
    pub fn entry(&self, window: &str) -> Option<Value> {
        let list = self.list();
        list["tasks"].as_array()?.iter().find(|task| task["window_id"] == window).cloned()
    }

    /// All events of the session.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let answer = self.task_ok(&["events", "--json", "--after", "0"]).json();
        answer["items"].as_array().expect("items").clone()
    }

    /// The messages of all events of one window. The prefix that all messages share is left out.
    #[track_caller]
    pub fn event_messages(&self, window: &str) -> Vec<String> {
        let events = self.events();
        events.iter().filter(|event| event["window_id"] == window).map(short_message).collect()
    }

    /// The first event of this kind in this window.
    #[track_caller]
    pub fn event(&self, window: &str, kind: &str) -> Value {
        self.nth_event(window, kind, 1)
    }

    #[track_caller]
    pub fn nth_event(&self, window: &str, kind: &str, nth: usize) -> Value {
        wait_for(&format!("event {nth} '{kind}' of {window}"), SOON, || {
            let events = self.events();
            let fits = |event: &&Value| event["window_id"] == window && event["type"] == kind;
            let found = events.iter().filter(fits).nth(nth - 1).cloned();
            found.ok_or_else(|| events.iter().map(short_message).collect::<Vec<_>>())
        })
    }

    /// Waits until `task list` of the session shows this task as dead.
    #[track_caller]
    pub fn wait_until_dead(&self, session: &str, task: &str) {
        wait_for(&format!("the end of {task} in {session}"), SOON, || {
            let list = self.task_ok(&["list", "--json", "--session", session]).json();
            let tasks = list["tasks"].as_array().cloned().unwrap_or_default();
            let is_it = |entry: &Value| entry["window_name"] == task && entry["dead"] == true;
            if tasks.iter().any(is_it) { Ok(()) } else { Err(list) }
        });
    }

    /// Runs a task that asks a question, rings the bell and exits, and waits until its events are stored. At that
    /// point, all earlier events are stored too.
    #[track_caller]
    pub fn run_marker_task(&self) {
        let name = format!("witness-{}", self.events().len());
        let marker = self.run(&name, "printf 'Go on? [y/N] '; read answer; printf '\\a'; exit 9");
        self.event(&marker.window, "input");
        self.tmux.run(&["send-keys", "-t", &marker.pane, "n", "Enter"]);
        self.event(&marker.window, "exited");
    }

    /// The window ids of the session, as tmux lists them.
    pub fn windows(&self) -> Vec<String> {
        let target = format!("={}", self.session);
        let all = self.tmux.try_run(&["list-windows", "-t", &target, "-F", "#{window_id}"]).unwrap_or_default();
        all.lines().map(str::to_owned).collect()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    /// Creates a window in the session by using tmux directly, not agtmux. Returns the window id.
    #[track_caller]
    pub fn unmanaged_window(&self, name: &str, command: &str) -> String {
        let target = format!("={}:", self.session);
        let make = ["new-window", "-d", "-P", "-F", "#{window_id}", "-t", &target, "-n", name, command];
        self.tmux.run(&make)
    }
}

pub fn short_message(event: &Value) -> String {
    let message = event["message"].as_str().unwrap_or_default();
    let words = message.split_once(") ").map_or(message, |(_, words)| words);
    words.to_owned()
}
