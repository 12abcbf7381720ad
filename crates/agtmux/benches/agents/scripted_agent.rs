//! A stand-in for an agent, in a pane of its own, that does what it is told.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, wait_until};
use serde_json::Value;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// A change that is not told by then counts with this.
const LAG_TIMEOUT: Duration = Duration::from_secs(10);

// The order counts: `watch` would start the daemon anew, so it ends first; then the world takes the daemon down.
pub(crate) struct BenchAgent {
    _watch: ChildGuard,
    pub(crate) world: TestWorld,
    command_pipe: File,
    lines: Receiver<(Instant, Value)>,
    _tmux: TestTmuxServer,
    _daemon: ChildGuard,
}

impl BenchAgent {
    pub(crate) fn start() -> Self {
        let world = TestWorld::with_agtmux(binary());
        let tmux = world.tmux("bench");
        let orders = world.home().join("orders");
        let made = world.command("mkfifo").arg(&orders).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe can be made");
        let shell = world.shell_copy("claude");
        let script = format!("while read -r order; do eval \"$order\"; done <{}", orders.display());
        tmux.new_session("work", &format!("exec {} -c '{script}'", shell.display()));
        tmux.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        let mut daemon = world.agtmux();
        daemon.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = ChildGuard::start(&mut daemon);
        wait_until("the agent in the list", STARTUP_TIMEOUT, || {
            let listed = world.agtmux().args(["list", "panes", "--json"]).env("AGTMUX_NO_AUTOSTART", "1").output();
            listed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("\"claude\""))
        });
        let (watch, lines) = start_watch(&world);
        // Opening waits until the agent reads.
        let orders = fs::OpenOptions::new().write(true).open(orders).expect("the agent reads its orders");
        Self { _watch: watch, world, command_pipe: orders, lines, _tmux: tmux, _daemon: daemon }
    }

    fn run_in_agent(&self, order: &str) {
        (&self.command_pipe).write_all(format!("{order}\n").as_bytes()).expect("the agent reads its orders");
    }

    /// A hook tells of it.
    pub(crate) fn send_hook(&self, state: &str) {
        let event = if state == "running" { "UserPromptSubmit" } else { "Stop" };
        self.run_in_agent(&format!("echo {{}} | {} hook claude {event}", binary()));
    }

    /// Its screen shows it, and nothing else tells of it.
    pub(crate) fn draw_screen(&self, state: &str) {
        let name = if state == "idle" { "claude-idle-start" } else { "claude-parallel-approval" };
        let screens = concat!(env!("CARGO_MANIFEST_DIR"), "/../agtmux-agents/evidence/screens/claude");
        self.run_in_agent(&format!("printf \"\\033[2J\\033[H\"; cat {screens}/{name}.ansi"));
    }

    /// From just before it does something to the line that tells of it.
    pub(crate) fn measure_lag(&self, state: &str, make: impl FnOnce()) -> Duration {
        while self.lines.try_recv().is_ok() {}
        let begun = Instant::now();
        make();
        while let Ok((at, line)) = self.lines.recv_timeout(LAG_TIMEOUT.saturating_sub(begun.elapsed())) {
            let told = line["item"]["state"].as_str().unwrap_or_default();
            // A screen at rest does not take back that a turn was completed.
            if told == state || (state == "idle" && told == "completed") {
                return at - begun;
            }
        }
        eprintln!("no line for '{state}' within {LAG_TIMEOUT:?}");
        LAG_TIMEOUT
    }
}

fn start_watch(world: &TestWorld) -> (ChildGuard, Receiver<(Instant, Value)>) {
    let mut command = world.agtmux();
    command.args(["watch", "--format", "jsonl"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = ChildGuard::start(&mut command);
    let out = watch.stdout.take().expect("its output is piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let at = Instant::now();
            let Ok(line) = serde_json::from_str(&line) else { continue };
            if sender.send((at, line)).is_err() {
                return;
            }
        }
    });
    (watch, lines)
}

pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_agtmux")
}
