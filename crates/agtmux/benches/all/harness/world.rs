//! Sets up worlds that run the measured executable, and their panes and daemons.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::agtmux_program;
use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld};
use serde_json::Value;

pub(crate) const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
const PANES_PER_WINDOW: usize = 10;
const PANES_PER_SESSION: usize = 100;

/// The executable to measure. `AGTMUX_BENCH_BINARY` selects another build for comparison.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("AGTMUX_BENCH_BINARY").map_or_else(agtmux_program, PathBuf::from)
}

pub(crate) fn world() -> TestWorld {
    let mut world = TestWorld::with_agtmux(program());
    // Hundreds of processes need more time to end.
    world.set_shutdown_timeout(STARTUP_TIMEOUT);
    world
}

pub(crate) fn start_daemon(world: &TestWorld) -> ChildGuard {
    let mut command = world.agtmux();
    command.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ChildGuard::start(&mut command)
}

/// The items of `agtmux list panes --json` with these arguments; none if the daemon does not answer yet.
pub(crate) fn list_panes(world: &TestWorld, args: &[&str]) -> Vec<Value> {
    let mut command = world.agtmux();
    command.args(["list", "panes", "--json"]).args(args).env("AGTMUX_NO_AUTOSTART", "1");
    let output = command.output().expect("agtmux runs");
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    listing["items"].as_array().cloned().unwrap_or_default()
}

/// Starts a pane for each of these programs, in the sessions `s0`, `s1` and so on.
pub(crate) fn add_panes(tmux: &TestTmuxServer, programs: &[String]) {
    for (n, programs) in programs.chunks(PANES_PER_WINDOW).enumerate() {
        let first = n * PANES_PER_WINDOW;
        let (name, session) = (format!("w{n}"), format!("s{}", first / PANES_PER_SESSION));
        let (inside, beside) = (format!("={session}:"), format!("={session}:{name}.0"));
        let mut words: Vec<&str> = if first.is_multiple_of(PANES_PER_SESSION) {
            ["new-session", "-d", "-x", "200", "-y", "200", "-s", &session, "-n", &name].into()
        } else {
            ["new-window", "-d", "-t", &inside, "-n", &name].into()
        };
        words.push(&programs[0]);
        for program in &programs[1..] {
            words.extend([";", "split-window", "-d", "-l", "10", "-t", &beside, program]);
        }
        tmux.run(&words);
    }
}

/// The JSON lines of a process, each with its time of arrival.
pub(crate) type TimedLines = Receiver<(Instant, Value)>;

/// Starts a process that prints JSON lines.
pub(crate) fn follow(command: &mut Command) -> (ChildGuard, TimedLines) {
    let mut process = ChildGuard::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
    let output = process.stdout.take().expect("stdout is piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let at = Instant::now();
            let value = serde_json::from_str(&line).expect("each line is JSON");
            if sender.send((at, value)).is_err() {
                return;
            }
        }
    });
    (process, lines)
}

/// Starts `agtmux watch` with these arguments.
pub(crate) fn watch(world: &TestWorld, args: &[&str]) -> (ChildGuard, TimedLines) {
    follow(world.agtmux().args(["watch", "--format", "jsonl"]).args(args))
}
