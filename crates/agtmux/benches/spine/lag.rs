//! From a change in tmux to a line of `agtmux watch`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, TestPane, process, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::plan::SpineBenchPlan;
use crate::setup::SpineBench;
use crate::stats::millis;
use crate::writers::open_terminal;

/// A change that is not told by then counts with this.
const LAG_TIMEOUT: Duration = Duration::from_secs(4);
const MIN_GAP_MS: u64 = 250;
const MAX_GAP_MS: u64 = 750;

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

pub(crate) fn measure(room: &SpineBench, plan: &SpineBenchPlan) -> Vec<ChangeLag> {
    let mut stage = LagBench::start(room);
    let mut lags = Vec::new();
    for round in 0..plan.lag_rounds {
        for change in TmuxChange::ALL {
            thread::sleep(gap(round * 7 + change as usize));
            let millis = stage.measure_change(change, round);
            lags.push(ChangeLag { change, millis });
        }
    }
    lags
}

/// Different each time, so that no rhythm of the daemon is met or missed by habit.
fn gap(n: usize) -> Duration {
    let spread = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(MIN_GAP_MS + spread % (MAX_GAP_MS - MIN_GAP_MS))
}

struct LagBench<'a> {
    room: &'a SpineBench,
    control_input: ChildStdin,
    lines: Receiver<(Instant, Value)>,
    known: HashSet<String>,
    split_off: Option<String>,
    agent: String,
    titled: Vec<(String, File)>,
    _user: ChildGuard,
    _watch: ChildGuard,
}

impl<'a> LagBench<'a> {
    fn start(room: &'a SpineBench) -> Self {
        let (user, keyboard) = control_client(room);
        let (watch, lines) = start_watch(room);
        let agent = format!("{} -c 'while read -r line; do :; done'", room.world.shell_copy("codex").display());
        let titled = room.spare_panes().iter().rev().take(15).map(|pane| (pane.pane_id.clone(), open_terminal(pane)));
        Self {
            room,
            control_input: keyboard,
            lines,
            known: room.panes.iter().map(|pane| pane.pane_id.clone()).collect(),
            split_off: None,
            agent,
            titled: titled.collect(),
            _user: user,
            _watch: watch,
        }
    }

    /// Milliseconds from just before the change to its line.
    fn measure_change(&mut self, change: TmuxChange, round: usize) -> f64 {
        while self.lines.try_recv().is_ok() {}
        let (begun, expected) = self.make(change, round);
        let seen = self.wait(begun, &expected);
        if seen.is_none() {
            eprintln!("{} panes: no line for '{}' within {LAG_TIMEOUT:?}", self.room.size, change.name());
        }
        millis(seen.map_or(LAG_TIMEOUT, |at| at - begun))
    }

    fn make(&mut self, change: TmuxChange, round: usize) -> (Instant, ExpectedLine) {
        let [typist, host] = [&self.room.panes[0], &self.room.panes[1]];
        match change {
            TmuxChange::WindowRenamed => {
                let window = self.some_pane(round).window_id.clone();
                (self.run_command(&format!("rename-window -t {window} n{round}")), ExpectedLine::InWindow(window))
            }
            TmuxChange::TitlePrinted => self.print_title(round),
            TmuxChange::DirectoryChanged => {
                let dir = self.room.world.home().join(format!("d{round}"));
                fs::create_dir_all(&dir).expect("the world is writable");
                let dir = dir.display().to_string();
                let begun = self.run_command(&format!("send-keys -t {} 'cd {dir}' Enter", typist.pane_id));
                (begun, ExpectedLine::Has(typist.pane_id.clone(), "cwd", dir))
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
                let begun = self.run_command(&format!(
                    "send-keys -t {} -l \"{}\"; send-keys -t {} Enter",
                    host.pane_id, self.agent, host.pane_id
                ));
                (begun, ExpectedLine::Has(host.pane_id.clone(), "agent_type", "codex".into()))
            }
            TmuxChange::AgentEnded => {
                let agent =
                    wait_for("the agent's process", LAG_TIMEOUT, || process::children(host.pid).into_iter().next());
                let begun = Instant::now();
                process::signal(agent, Signal::KILL);
                (begun, ExpectedLine::Has(host.pane_id.clone(), "command", "sh".into()))
            }
        }
    }

    fn some_pane(&self, n: usize) -> &'a TestPane {
        let spare = self.room.spare_panes();
        &spare[n * 7 % spare.len()]
    }

    fn print_title(&mut self, round: usize) -> (Instant, ExpectedLine) {
        let count = self.titled.len();
        let (pane, terminal) = &mut self.titled[round % count];
        let begun = Instant::now();
        write!(terminal, "\x1b]2;title {round}\x07").expect("a terminal takes output");
        (begun, ExpectedLine::Has(pane.clone(), "title", format!("title {round}")))
    }

    fn run_command(&self, command: &str) -> Instant {
        let begun = Instant::now();
        writeln!(&self.control_input, "{command}").expect("the control client lives");
        begun
    }

    fn wait(&mut self, begun: Instant, expected: &ExpectedLine) -> Option<Instant> {
        while let Some(left) = LAG_TIMEOUT.checked_sub(begun.elapsed()) {
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

/// What the line says that tells of a change.
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

/// A user who is quick: no process has to be started to give an order.
fn control_client(room: &SpineBench) -> (ChildGuard, ChildStdin) {
    let mut command = room.tmux.command();
    command.args(["-C", "attach-session", "-f", "no-output,ignore-size", "-t", "=s0"]);
    let mut client = ChildGuard::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let keyboard = client.stdin.take().expect("it is a pipe");
    let answers = client.stdout.take().expect("it is a pipe");
    // Read to the end, or the server would have to keep it all.
    thread::spawn(move || BufReader::new(answers).lines().map_while(Result::ok).for_each(drop));
    (client, keyboard)
}

fn start_watch(room: &SpineBench) -> (ChildGuard, Receiver<(Instant, Value)>) {
    let mut command = room.world.agtmux();
    command.args(["watch", "--format", "jsonl", "--all"]);
    let mut watch = ChildGuard::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let output = BufReader::new(watch.stdout.take().expect("it is a pipe"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let at = Instant::now();
            let value = serde_json::from_str(&line).expect("each line is JSON");
            if sender.send((at, value)).is_err() {
                return;
            }
        }
    });
    for _ in 0..room.size {
        lines.recv_timeout(LAG_TIMEOUT).expect("the snapshot comes first");
    }
    (watch, lines)
}
