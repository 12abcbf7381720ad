//! A scripted agent in its own pane.

use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestTmuxServer, TestWorld};

use super::spread;
use super::world::{TimedLines, program};

/// How long to wait for the line that reports a change. If the line has not come by then, this value is recorded as the
/// lag.
const LAG_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_GAP: Duration = Duration::from_millis(700);
const MAX_EXTRA_GAP: Duration = Duration::from_millis(600);

pub(crate) struct BenchAgent {
    target: &'static str,
    pane: String,
    command_pipe: File,
}

impl BenchAgent {
    /// Starts the agent in its own session on the tmux server of this target.
    pub(crate) fn start(target: &'static str, world: &TestWorld, tmux: &TestTmuxServer) -> Self {
        let pipe = world.home().join("commands");
        let made = world.command("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo succeeds");
        let script = format!("while read -r line; do eval \"$line\"; done <{}", pipe.display());
        let pane = tmux.new_session("work", &format!("exec {} -c '{script}'", world.shell_copy("claude").display()));
        tmux.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        // Opening the pipe blocks until the agent reads from it.
        let command_pipe = fs::OpenOptions::new().write(true).open(pipe).expect("the agent reads the pipe");
        Self { target, pane, command_pipe }
    }

    fn run_in_agent(&self, command: &str) {
        (&self.command_pipe).write_all(format!("{command}\n").as_bytes()).expect("the agent reads the pipe");
    }

    /// Reports the state by a hook.
    fn send_hook(&self, state: &str) {
        let event = if state == "running" { "UserPromptSubmit" } else { "Stop" };
        self.run_in_agent(&format!("echo {{}} | {} hook claude {event}", program().display()));
    }

    /// Draws a screen that shows the state. No hook reports this state.
    fn draw_screen(&self, state: &str) {
        let name = if state == "idle" { "claude-idle-start" } else { "claude-parallel-approval" };
        let screens = concat!(env!("CARGO_MANIFEST_DIR"), "/../agtmux-agents/evidence/screens/claude");
        self.run_in_agent(&format!("printf \"\\033[2J\\033[H\"; cat {screens}/{name}.ansi"));
    }

    pub(crate) fn measure_hook_lags(&self, lines: &TimedLines, rounds: usize) -> Vec<Duration> {
        self.measure_lags(lines, rounds, ["running", "completed"], Self::send_hook)
    }

    pub(crate) fn measure_screen_lags(&self, lines: &TimedLines, rounds: usize) -> Vec<Duration> {
        self.measure_lags(lines, rounds, ["waiting_approval", "idle"], Self::draw_screen)
    }

    fn measure_lags(
        &self,
        lines: &TimedLines,
        rounds: usize,
        states: [&str; 2],
        make: fn(&Self, &str),
    ) -> Vec<Duration> {
        let one = |round: usize| {
            thread::sleep(MIN_GAP + spread(round, MAX_EXTRA_GAP));
            let state = states[round % states.len()];
            self.measure_lag(lines, state, || make(self, state))
        };
        (0..rounds * states.len()).map(one).collect()
    }

    /// The time from just before the agent's action to the line that reports it.
    fn measure_lag(&self, lines: &TimedLines, state: &str, make: impl FnOnce()) -> Duration {
        while lines.try_recv().is_ok() {}
        let start = Instant::now();
        make();
        while let Ok((at, line)) = lines.recv_timeout(LAG_TIMEOUT.saturating_sub(start.elapsed())) {
            let (identity, reported) = (&line["item"]["identity"], line["item"]["state"].as_str().unwrap_or_default());
            let is_own_pane = identity["target"] == self.target && identity["pane_id"] == self.pane.as_str();
            // agtmux keeps reporting `completed` when the screen looks idle.
            if is_own_pane && (reported == state || (state == "idle" && reported == "completed")) {
                return at - start;
            }
        }
        eprintln!("no line for '{state}' on {} within {LAG_TIMEOUT:?}", self.target);
        LAG_TIMEOUT
    }
}
