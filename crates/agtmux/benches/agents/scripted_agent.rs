//! A scripted agent in its own pane.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, wait_until};
use serde_json::Value;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// A change without a line within this time counts with this value.
const LAG_TIMEOUT: Duration = Duration::from_secs(10);

// Fields are dropped in order: `watch` would restart the daemon, so it ends first; then the world stops the daemon.
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
        let pipe = world.home().join("commands");
        let made = world.command("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo succeeds");
        let shell = world.shell_copy("claude");
        let script = format!("while read -r line; do eval \"$line\"; done <{}", pipe.display());
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
        // Opening the pipe blocks until the agent reads from it.
        let pipe = fs::OpenOptions::new().write(true).open(pipe).expect("the agent reads the pipe");
        Self { _watch: watch, world, command_pipe: pipe, lines, _tmux: tmux, _daemon: daemon }
    }

    fn run_in_agent(&self, command: &str) {
        (&self.command_pipe).write_all(format!("{command}\n").as_bytes()).expect("the agent reads the pipe");
    }

    /// Reports the state by a hook.
    pub(crate) fn send_hook(&self, state: &str) {
        let event = if state == "running" { "UserPromptSubmit" } else { "Stop" };
        self.run_in_agent(&format!("echo {{}} | {} hook claude {event}", binary()));
    }

    /// Draws a screen that shows the state. No hook reports it.
    pub(crate) fn draw_screen(&self, state: &str) {
        let name = if state == "idle" { "claude-idle-start" } else { "claude-parallel-approval" };
        let screens = concat!(env!("CARGO_MANIFEST_DIR"), "/../agtmux-agents/evidence/screens/claude");
        self.run_in_agent(&format!("printf \"\\033[2J\\033[H\"; cat {screens}/{name}.ansi"));
    }

    /// The time from just before the agent's action to the line that reports it.
    pub(crate) fn measure_lag(&self, state: &str, make: impl FnOnce()) -> Duration {
        while self.lines.try_recv().is_ok() {}
        let start = Instant::now();
        make();
        while let Ok((at, line)) = self.lines.recv_timeout(LAG_TIMEOUT.saturating_sub(start.elapsed())) {
            let reported = line["item"]["state"].as_str().unwrap_or_default();
            // An idle screen does not overrule that the turn was completed.
            if reported == state || (state == "idle" && reported == "completed") {
                return at - start;
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
    let out = watch.stdout.take().expect("stdout is piped");
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
