//! A host with 15 panes. One pane runs a scripted agent.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use agtmux_testkit::TestWorld;
use serde_json::Value;

/// A change without a line within this time counts with this value.
const LAG_TIMEOUT: Duration = Duration::from_secs(10);
const PANES: usize = 15;

pub(crate) struct BenchHost {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    /// Whether agtmux runs on the host, so that hooks can report events.
    pub(crate) has_agtmux: bool,
    command_pipe: File,
    pub(crate) socket: PathBuf,
    pub(crate) pane: String,
}

impl BenchHost {
    /// Creates the measured agent, an agent for the background load, and panes without agents.
    pub(crate) fn create(label: &'static str, target: &'static str, has_agtmux: bool, world: &TestWorld) -> Self {
        let tmux = world.tmux("default");
        let pipe = world.home().join("commands");
        let made = world.command("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo succeeds");
        let script = format!("while read -r line; do eval \"$line\"; done <{}", pipe.display());
        let pane = tmux.new_session("work", &format!("exec {} -c '{script}'", world.shell_copy("claude").display()));
        tmux.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        tmux.new_session("load", &world.fake_agent_command("claude"));
        for n in 2..PANES {
            tmux.new_session(&format!("rest{n}"), "cat");
        }
        let pipe = fs::OpenOptions::new().write(true).open(pipe).expect("the agent reads the pipe");
        Self { label, target, has_agtmux, command_pipe: pipe, socket: world.socket(), pane }
    }

    fn run_in_agent(&self, command: &str) {
        (&self.command_pipe).write_all(format!("{command}\n").as_bytes()).expect("the agent reads the pipe");
    }

    /// Reports the state by a hook.
    pub(crate) fn send_hook(&self, state: &str) {
        let event = if state == "running" { "UserPromptSubmit" } else { "Stop" };
        self.run_in_agent(&format!("echo {{}} | {} hook claude {event}", env!("CARGO_BIN_EXE_agtmux")));
    }

    /// Draws a screen that shows the state. No hook reports it.
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
            // A different delay each time, so that the measurement does not synchronize with a timer.
            let spread = (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            std::thread::sleep(Duration::from_millis(700 + spread % 600));
            let state = states[round % states.len()];
            self.measure_lag(lines, state, || make(self, state))
        };
        (0..rounds * states.len()).map(one).collect()
    }

    /// The time from just before the agent's action to the line that reports it.
    fn measure_lag(&self, lines: &Receiver<(Instant, Value)>, state: &str, make: impl FnOnce()) -> Duration {
        while lines.try_recv().is_ok() {}
        let start = Instant::now();
        make();
        while let Ok((at, line)) = lines.recv_timeout(LAG_TIMEOUT.saturating_sub(start.elapsed())) {
            let (identity, reported) = (&line["item"]["identity"], line["item"]["state"].as_str().unwrap_or_default());
            let is_own_pane = identity["target"] == self.target && identity["pane_id"] == self.pane.as_str();
            // An idle screen does not overrule that the turn was completed.
            if is_own_pane && (reported == state || (state == "idle" && reported == "completed")) {
                return at - start;
            }
        }
        eprintln!("no line for '{state}' on {} within {LAG_TIMEOUT:?}", self.target);
        LAG_TIMEOUT
    }
}
