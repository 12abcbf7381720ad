//! Measures the time from a change in tmux to a line of `agtmux watch`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, TestPane, process, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::plan::SpineBenchPlan;
use super::setup::SpineBench;
use super::writers::open_terminal;
use crate::harness::spread;
use crate::harness::stats::millis;
use crate::harness::world::{self, TimedLines};

/// How long to wait for the line that reports a change. If the line has not come by then, this value is recorded as the
/// lag.
const LAG_TIMEOUT: Duration = Duration::from_secs(4);
const MIN_GAP: Duration = Duration::from_millis(250);
const MAX_EXTRA_GAP: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TmuxChange {
    WindowRenamed,
    TitlePrinted,
    DirectoryChanged,
    PaneSplit,
    AgentStarted,
    PaneKilled,
    AgentEnded,
}

impl TmuxChange {
    pub(crate) const ALL: [Self; 7] = [
        Self::WindowRenamed,
        Self::TitlePrinted,
        Self::DirectoryChanged,
        Self::PaneSplit,
        Self::AgentStarted,
        Self::PaneKilled,
        Self::AgentEnded,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WindowRenamed => "window renamed",
            Self::TitlePrinted => "title printed by a program",
            Self::DirectoryChanged => "`cd` typed into a shell",
            Self::PaneSplit => "pane split",
            Self::AgentStarted => "agent started from a shell",
            Self::PaneKilled => "pane killed",
            Self::AgentEnded => "agent ended",
        }
    }
}

#[derive(Debug)]
pub(crate) struct ChangeLag {
    pub(crate) change: TmuxChange,
    pub(crate) millis: f64,
}

pub(crate) fn measure(bench: &SpineBench, plan: &SpineBenchPlan) -> Vec<ChangeLag> {
    let mut lag_bench = LagBench::start(bench);
    let mut lags = Vec::new();
    for round in 0..plan.lag_rounds {
        for change in TmuxChange::ALL {
            thread::sleep(MIN_GAP + spread(round * 7 + change as usize, MAX_EXTRA_GAP));
            let millis = lag_bench.measure_change(change, round);
            lags.push(ChangeLag { change, millis });
        }
    }
    lags
}

struct LagBench<'a> {
    bench: &'a SpineBench,
    control_input: ChildStdin,
    lines: TimedLines,
    known: HashSet<String>,
    split_off: Option<String>,
    agent: String,
    titled: Vec<(String, File)>,
    _user: ChildGuard,
    _watch: ChildGuard,
}

impl<'a> LagBench<'a> {
    fn start(bench: &'a SpineBench) -> Self {
        let (user, control_input) = control_client(bench);
        let (watch, lines) = start_watch(bench);
        let agent = format!("{} -c 'while read -r line; do :; done'", bench.world.shell_copy("codex").display());
        let titled = bench.spare_panes().iter().rev().take(15).map(|pane| (pane.pane_id.clone(), open_terminal(pane)));
        Self {
            bench,
            control_input,
            lines,
            known: bench.panes.iter().map(|pane| pane.pane_id.clone()).collect(),
            split_off: None,
            agent,
            titled: titled.collect(),
            _user: user,
            _watch: watch,
        }
    }

    /// The time from just before the change to its line, in milliseconds.
    fn measure_change(&mut self, change: TmuxChange, round: usize) -> f64 {
        while self.lines.try_recv().is_ok() {}
        let (start, expected) = self.make(change, round);
        let arrival = self.wait(start, &expected);
        if arrival.is_none() {
            eprintln!("{} panes: no line for '{}' within {LAG_TIMEOUT:?}", self.bench.size, change.name());
        }
        millis(arrival.map_or(LAG_TIMEOUT, |at| at - start))
    }

    fn make(&mut self, change: TmuxChange, round: usize) -> (Instant, ExpectedLine) {
        let [shell_pane, agent_pane] = [&self.bench.panes[0], &self.bench.panes[1]];
        match change {
            TmuxChange::WindowRenamed => {
                let window = self.some_pane(round).window_id.clone();
                (self.run_command(&format!("rename-window -t {window} n{round}")), ExpectedLine::InWindow(window))
            }
            TmuxChange::TitlePrinted => self.print_title(round),
            TmuxChange::DirectoryChanged => {
                let dir = self.bench.world.home().join(format!("d{round}"));
                fs::create_dir_all(&dir).expect("the directory is writable");
                let dir = dir.display().to_string();
                let start = self.run_command(&format!("send-keys -t {} 'cd {dir}' Enter", shell_pane.pane_id));
                (start, ExpectedLine::Has(shell_pane.pane_id.clone(), "cwd", dir))
            }
            TmuxChange::PaneSplit => {
                let pane = &self.some_pane(round + 3).pane_id;
                (self.run_command(&format!("split-window -d -t {pane} -l 2 'exec sleep 1000000'")), ExpectedLine::New)
            }
            TmuxChange::PaneKilled => {
                let pane = self.split_off.take().unwrap_or_default();
                (self.run_command(&format!("kill-pane -t {pane}")), ExpectedLine::Gone(pane))
            }
            TmuxChange::AgentStarted => {
                let start = self.run_command(&format!(
                    "send-keys -t {} -l \"{}\"; send-keys -t {} Enter",
                    agent_pane.pane_id, self.agent, agent_pane.pane_id
                ));
                (start, ExpectedLine::Has(agent_pane.pane_id.clone(), "agent_type", "codex".into()))
            }
            TmuxChange::AgentEnded => {
                let agent = wait_for("the agent's process", LAG_TIMEOUT, || {
                    process::children(agent_pane.pid).into_iter().next()
                });
                let start = Instant::now();
                process::signal(agent, Signal::KILL);
                (start, ExpectedLine::Has(agent_pane.pane_id.clone(), "command", "sh".into()))
            }
        }
    }

    fn some_pane(&self, n: usize) -> &'a TestPane {
        let spare = self.bench.spare_panes();
        &spare[n * 7 % spare.len()]
    }

    fn print_title(&mut self, round: usize) -> (Instant, ExpectedLine) {
        let count = self.titled.len();
        let (pane, terminal) = &mut self.titled[round % count];
        let start = Instant::now();
        write!(terminal, "\x1b]2;title {round}\x07").expect("the terminal accepts output");
        (start, ExpectedLine::Has(pane.clone(), "title", format!("title {round}")))
    }

    fn run_command(&self, command: &str) -> Instant {
        let start = Instant::now();
        writeln!(&self.control_input, "{command}").expect("the control client is running");
        start
    }

    fn wait(&mut self, start: Instant, expected: &ExpectedLine) -> Option<Instant> {
        while let Some(left) = LAG_TIMEOUT.checked_sub(start.elapsed()) {
            let (at, line) = self.lines.recv_timeout(left).ok()?;
            if expected.is_met(&line, &self.known) {
                self.remember(&line, expected);
                return Some(at);
            }
        }
        None
    }

    fn remember(&mut self, line: &Value, expected: &ExpectedLine) {
        if matches!(expected, ExpectedLine::New) {
            let pane = text(line, "/item/identity/pane_id").to_owned();
            self.split_off = Some(pane.clone());
            self.known.insert(pane);
        }
    }
}

/// The expected line for a change.
enum ExpectedLine {
    InWindow(String),
    Has(String, &'static str, String),
    New,
    Gone(String),
}

impl ExpectedLine {
    fn is_met(&self, line: &Value, known: &HashSet<String>) -> bool {
        let (kind, pane) = (text(line, "/type"), text(line, "/item/identity/pane_id"));
        match self {
            Self::InWindow(window) => kind == "upsert" && text(line, "/item/identity/window_id") == window,
            Self::Has(id, field, value) => {
                kind == "upsert" && pane == id && text(line, &format!("/item/{field}")) == value
            }
            Self::New => kind == "upsert" && !known.contains(pane),
            Self::Gone(id) => kind == "remove" && pane == id,
        }
    }
}

fn text<'v>(line: &'v Value, pointer: &str) -> &'v str {
    line.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A control-mode client: it runs commands without starting a process for each.
fn control_client(bench: &SpineBench) -> (ChildGuard, ChildStdin) {
    let mut command = bench.tmux.command();
    command.args(["-C", "attach-session", "-f", "no-output,ignore-size", "-t", "=s0"]);
    let mut client = ChildGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let control_input = client.stdin.take().expect("the stream is piped");
    let answers = client.stdout.take().expect("the stream is piped");
    // Read all output, because the server would buffer unread output.
    thread::spawn(move || BufReader::new(answers).lines().map_while(Result::ok).for_each(drop));
    (client, control_input)
}

fn start_watch(bench: &SpineBench) -> (ChildGuard, TimedLines) {
    let (watch, lines) = world::watch(&bench.world, &["--all"]);
    for _ in 0..bench.size {
        lines.recv_timeout(LAG_TIMEOUT).expect("the snapshot comes first");
    }
    (watch, lines)
}
