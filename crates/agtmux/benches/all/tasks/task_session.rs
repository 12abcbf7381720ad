//! A session with tasks, and a process that follows their events.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::Value;

use super::poller::TaskPoller;
use crate::harness::world::{self, TimedLines, follow, list_panes};

const SESSION: &str = "pi-bench-1";
/// The number of idle tasks that run at the same time.
const BACKGROUND_TASKS: usize = 10;
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct TaskSessionBench {
    pub(crate) poller: TaskPoller,
    events: TimedLines,
    _follower: ChildGuard,
    world: TestWorld,
}

impl TaskSessionBench {
    pub(crate) fn start() -> Self {
        let world = world::world();
        let made = world.command("mkfifo").arg(world.home().join("fifo")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo succeeds");
        for n in 0..BACKGROUND_TASKS {
            run(&world, &["run", &format!("idle-{n}"), "--", "exec sleep 100000"]);
        }
        let (follower, events) = follow(&mut task(&world, &["events", "--follow", "--json"]));
        let poller = TaskPoller::start(world.tmux("default"), SESSION);
        let bench = Self { poller, events, _follower: follower, world };
        bench.wait_for_follower();
        bench
    }

    /// Waits until the follower receives events.
    fn wait_for_follower(&self) {
        for n in 0.. {
            run(&self.world, &["run", &format!("first-{n}"), "--", "exit 0"]);
            if self.events.recv_timeout(Duration::from_secs(1)).is_ok() {
                return;
            }
            assert!(n < 20, "the follower received no event");
        }
    }

    /// Starts a task, waits until it runs, and returns its window id.
    pub(crate) fn launch(&self, name: &str, command: &str) -> String {
        let started: Value =
            serde_json::from_str(&run(&self.world, &["run", "--json", name, "--", command])).expect("JSON");
        let window = started["window_id"].as_str().expect("a window").to_owned();
        self.wait_for_event(&window, "started");
        // The work caused by the launch is done when the pane is listed as running.
        wait_for("the task to be listed as running", EVENT_TIMEOUT, || {
            let runs = |item: &Value| item["name"] == name && item["state"] == "running";
            list_panes(&self.world, &[]).iter().any(runs).then_some(())
        });
        window
    }

    pub(crate) fn write(&self, text: &str) {
        // Opening the fifo blocks until the task reads from it.
        let mut fifo = fs::OpenOptions::new().write(true).open(self.world.home().join("fifo")).expect("the fifo opens");
        fifo.write_all(text.as_bytes()).expect("the task reads the fifo");
    }

    /// Waits for an event of this window and type, and returns its time of arrival.
    pub(crate) fn wait_for_event(&self, window: &str, kind: &str) -> Instant {
        let until = Instant::now() + EVENT_TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (at, event) =
                self.events.recv_timeout(left).unwrap_or_else(|_| panic!("no '{kind}' event of {window} arrived"));
            if event["window_id"] == window && event["type"] == kind {
                return at;
            }
        }
    }

    pub(crate) fn stop_task(&self, window: &str) {
        run(&self.world, &["stop", window, "--window"]);
    }
}

fn task(world: &TestWorld, args: &[&str]) -> Command {
    let mut command = world.agtmux();
    command.arg("task").args(args).env("AGTMUX_SESSION", SESSION).current_dir(world.home());
    command
}

fn run(world: &TestWorld, args: &[&str]) -> String {
    let output = task(world, args).output().expect("agtmux runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
