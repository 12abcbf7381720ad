//! From a change in tmux to a line of `agtmux watch`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{Pane, Running, process, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::plan::Plan;
use crate::room::Room;
use crate::stats::millis;
use crate::writers::open_terminal;

/// A change that is not told by then counts with this.
const LATEST: Duration = Duration::from_secs(4);
const SHORTEST_GAP: u64 = 250;
const LONGEST_GAP: u64 = 750;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    WindowRenamed,
    TitlePrinted,
    DirectoryChanged,
    PaneSplit,
    AgentStarted,
    PaneKilled,
    AgentEnded,
}

impl Change {
    pub(crate) const ROUND: [Self; 7] = [
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
pub(crate) struct Lag {
    pub(crate) change: Change,
    pub(crate) millis: f64,
}

pub(crate) fn measure(room: &Room, plan: &Plan) -> Vec<Lag> {
    let mut stage = Stage::set(room);
    let mut lags = Vec::new();
    for round in 0..plan.lag_rounds {
        for change in Change::ROUND {
            thread::sleep(gap(round * 7 + change as usize));
            let millis = stage.time(change, round);
            lags.push(Lag { change, millis });
        }
    }
    lags
}

/// Different each time, so that no rhythm of the daemon is met or missed by habit.
fn gap(n: usize) -> Duration {
    let spread = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(SHORTEST_GAP + spread % (LONGEST_GAP - SHORTEST_GAP))
}

struct Stage<'a> {
    room: &'a Room,
    keyboard: ChildStdin,
    lines: Receiver<(Instant, Value)>,
    known: HashSet<String>,
    split_off: Option<String>,
    agent: String,
    titled: Vec<(String, File)>,
    _user: Running,
    _watch: Running,
}

impl<'a> Stage<'a> {
    fn set(room: &'a Room) -> Self {
        let (user, keyboard) = control_client(room);
        let (watch, lines) = watch(room);
        let agent = format!("{} -c 'while read -r line; do :; done'", room.world.shell_named("codex").display());
        let titled = room.spare_panes().iter().rev().take(15).map(|pane| (pane.pane_id.clone(), open_terminal(pane)));
        Self {
            room,
            keyboard,
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
    fn time(&mut self, change: Change, round: usize) -> f64 {
        while self.lines.try_recv().is_ok() {}
        let (begun, expected) = self.make(change, round);
        let seen = self.wait(begun, &expected);
        if seen.is_none() {
            eprintln!("{} panes: no line for '{}' within {LATEST:?}", self.room.size, change.name());
        }
        millis(seen.map_or(LATEST, |at| at - begun))
    }

    fn make(&mut self, change: Change, round: usize) -> (Instant, Expected) {
        let [typist, host] = [&self.room.panes[0], &self.room.panes[1]];
        match change {
            Change::WindowRenamed => {
                let window = self.some_pane(round).window_id.clone();
                (self.order(&format!("rename-window -t {window} n{round}")), Expected::InWindow(window))
            }
            Change::TitlePrinted => self.print_title(round),
            Change::DirectoryChanged => {
                let dir = self.room.world.home().join(format!("d{round}"));
                fs::create_dir_all(&dir).expect("the world is writable");
                let dir = dir.display().to_string();
                let begun = self.order(&format!("send-keys -t {} 'cd {dir}' Enter", typist.pane_id));
                (begun, Expected::Has(typist.pane_id.clone(), "cwd", dir))
            }
            Change::PaneSplit => {
                let pane = &self.some_pane(round + 3).pane_id;
                (self.order(&format!("split-window -d -t {pane} -l 2 'exec sleep 1000000'")), Expected::New)
            }
            Change::PaneKilled => {
                let pane = self.split_off.take().unwrap_or_default();
                (self.order(&format!("kill-pane -t {pane}")), Expected::Gone(pane))
            }
            Change::AgentStarted => {
                let begun = self.order(&format!(
                    "send-keys -t {} -l \"{}\"; send-keys -t {} Enter",
                    host.pane_id, self.agent, host.pane_id
                ));
                (begun, Expected::Has(host.pane_id.clone(), "agent_type", "codex".into()))
            }
            Change::AgentEnded => {
                let agent = wait_for("the agent's process", LATEST, || process::children(host.pid).into_iter().next());
                let begun = Instant::now();
                process::signal(agent, Signal::KILL);
                (begun, Expected::Has(host.pane_id.clone(), "command", "sh".into()))
            }
        }
    }

    fn some_pane(&self, n: usize) -> &'a Pane {
        let spare = self.room.spare_panes();
        &spare[n * 7 % spare.len()]
    }

    fn print_title(&mut self, round: usize) -> (Instant, Expected) {
        let count = self.titled.len();
        let (pane, terminal) = &mut self.titled[round % count];
        let begun = Instant::now();
        write!(terminal, "\x1b]2;title {round}\x07").expect("a terminal takes output");
        (begun, Expected::Has(pane.clone(), "title", format!("title {round}")))
    }

    fn order(&self, command: &str) -> Instant {
        let begun = Instant::now();
        writeln!(&self.keyboard, "{command}").expect("the control client lives");
        begun
    }

    fn wait(&mut self, begun: Instant, expected: &Expected) -> Option<Instant> {
        while let Some(left) = LATEST.checked_sub(begun.elapsed()) {
            let (at, line) = self.lines.recv_timeout(left).ok()?;
            if expected.is_met(&line, &self.known) {
                self.remember(&line, expected);
                return Some(at);
            }
        }
        None
    }

    fn remember(&mut self, line: &Value, expected: &Expected) {
        if matches!(expected, Expected::New) {
            let pane = text(line, "/item/identity/pane_id").to_owned();
            self.split_off = Some(pane.clone());
            self.known.insert(pane);
        }
    }
}

/// What the line says that tells of a change.
enum Expected {
    InWindow(String),
    Has(String, &'static str, String),
    New,
    Gone(String),
}

impl Expected {
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
fn control_client(room: &Room) -> (Running, ChildStdin) {
    let mut command = room.tmux.command();
    command.args(["-C", "attach-session", "-f", "no-output,ignore-size", "-t", "=s0"]);
    let mut client = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let keyboard = client.stdin.take().expect("it is a pipe");
    let answers = client.stdout.take().expect("it is a pipe");
    // Read to the end, or the server would have to keep it all.
    thread::spawn(move || BufReader::new(answers).lines().map_while(Result::ok).for_each(drop));
    (client, keyboard)
}

fn watch(room: &Room) -> (Running, Receiver<(Instant, Value)>) {
    let mut command = room.world.agtmux();
    command.args(["watch", "--format", "jsonl", "--all"]);
    let mut watch = Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
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
        lines.recv_timeout(LATEST).expect("the snapshot comes first");
    }
    (watch, lines)
}
