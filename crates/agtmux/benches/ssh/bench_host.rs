//! A host with fifteen panes, in one of which an agent does what it is told.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use agtmux_testkit::TestWorld;
use serde_json::Value;

/// A change that is not told by then counts with this.
const LAG_TIMEOUT: Duration = Duration::from_secs(10);
const PANES: usize = 15;

pub(crate) struct BenchHost {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    /// Its agents can tell of themselves.
    pub(crate) has_agtmux: bool,
    command_pipe: File,
    pub(crate) socket: PathBuf,
    pub(crate) pane: String,
}

impl BenchHost {
    /// The agent that is measured, one that is told of all the time, and panes without any.
    pub(crate) fn create(what: &'static str, target: &'static str, tells: bool, world: &TestWorld) -> Self {
        let tmux = world.tmux("default");
        let orders = world.home().join("orders");
        let made = world.command("mkfifo").arg(&orders).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe can be made");
        let script = format!("while read -r order; do eval \"$order\"; done <{}", orders.display());
        let pane = tmux.new_session("work", &format!("exec {} -c '{script}'", world.shell_copy("claude").display()));
        tmux.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        tmux.new_session("load", &world.fake_agent_command("claude"));
        for n in 2..PANES {
            tmux.new_session(&format!("rest{n}"), "cat");
        }
        let orders = fs::OpenOptions::new().write(true).open(orders).expect("the agent reads its orders");
        Self { label: what, target, has_agtmux: tells, command_pipe: orders, socket: world.socket(), pane }
    }

    fn run_in_agent(&self, order: &str) {
        (&self.command_pipe).write_all(format!("{order}\n").as_bytes()).expect("the agent reads its orders");
    }

    /// A hook tells of it.
    pub(crate) fn send_hook(&self, state: &str) {
        let event = if state == "running" { "UserPromptSubmit" } else { "Stop" };
        self.run_in_agent(&format!("echo {{}} | {} hook claude {event}", env!("CARGO_BIN_EXE_agtmux")));
    }

    /// Its screen shows it, and nothing else tells of it.
    pub(crate) fn draw_screen(&self, state: &str) {
        let name = if state == "idle" { "claude-idle-start" } else { "claude-parallel-approval" };
        let screens = concat!(env!("CARGO_MANIFEST_DIR"), "/../agtmux-agents/evidence/screens/claude");
        self.run_in_agent(&format!("printf \"\\033[2J\\033[H\"; cat {screens}/{name}.ansi"));
    }

    pub(crate) fn measure_lags(
        &self,
        lines: &Receiver<(Instant, Value)>,
        rounds: usize,
        states: &[&str],
        make: fn(&Self, &str),
    ) -> Vec<Duration> {
        let one = |round: usize| {
            // Different each time, so that no rhythm of anybody is met or missed by habit.
            let spread = (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            std::thread::sleep(Duration::from_millis(700 + spread % 600));
            let state = states[round % states.len()];
            self.measure_lag(lines, state, || make(self, state))
        };
        (0..rounds * states.len()).map(one).collect()
    }

    /// From just before it does something to the line that tells of it.
    fn measure_lag(&self, lines: &Receiver<(Instant, Value)>, state: &str, make: impl FnOnce()) -> Duration {
        while lines.try_recv().is_ok() {}
        let begun = Instant::now();
        make();
        while let Ok((at, line)) = lines.recv_timeout(LAG_TIMEOUT.saturating_sub(begun.elapsed())) {
            let (identity, told) = (&line["item"]["identity"], line["item"]["state"].as_str().unwrap_or_default());
            let mine = identity["target"] == self.target && identity["pane_id"] == self.pane.as_str();
            // A screen at rest does not take back that a turn was completed.
            if mine && (told == state || (state == "idle" && told == "completed")) {
                return at - begun;
            }
        }
        eprintln!("no line for '{state}' on {} within {LAG_TIMEOUT:?}", self.target);
        LAG_TIMEOUT
    }
}
