//! The lines that `agtmux watch` prints about one pane, with the times of their arrival.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::states::ReportedState;
use crate::{ChildGuard, TestWorld};

/// A line of `agtmux watch` that reports a new state of the pane's agent, or a new reason for its state.
#[derive(Debug, Clone)]
pub struct StateReport {
    pub at: Instant,
    pub state: ReportedState,
    pub reason: Option<String>,
}

/// Runs `agtmux watch` and collects its lines about one pane.
#[derive(Debug)]
pub struct WatchLog {
    _watch: ChildGuard,
    contents: Arc<Mutex<WatchLogContents>>,
}

#[derive(Debug, Default)]
struct WatchLogContents {
    reports: Vec<StateReport>,
    lines: Vec<String>,
}

impl WatchLog {
    pub fn start(world: &TestWorld, pane: &str) -> Self {
        let mut watch = world.agtmux();
        watch.args(["watch", "--all", "--scope", "panes", "--format", "jsonl"]);
        watch.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut watch = ChildGuard::start(&mut watch);
        let lines = watch.stdout.take().expect("stdout is a pipe");
        let contents = Arc::new(Mutex::new(WatchLogContents::default()));
        let (for_reader, pane) = (Arc::clone(&contents), pane.to_owned());
        thread::spawn(move || collect_lines(lines, &pane, &for_reader));
        Self { _watch: watch, contents }
    }

    /// All state changes so far, the oldest first.
    pub fn state_reports(&self) -> Vec<StateReport> {
        self.lock_contents().reports.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.lock_contents().lines.is_empty()
    }

    /// All lines about the pane so far, unparsed.
    pub fn lines(&self) -> Vec<String> {
        self.lock_contents().lines.clone()
    }

    fn lock_contents(&self) -> MutexGuard<'_, WatchLogContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn collect_lines(lines: ChildStdout, pane: &str, contents: &Mutex<WatchLogContents>) {
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let at = Instant::now();
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let item = &event["item"];
        if item["identity"]["pane_id"] != pane {
            continue;
        }
        let report = parse_report(&event, at);
        let mut contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.lines.push(line);
        let has_changed =
            contents.reports.last().is_none_or(|last| (last.state, &last.reason) != (report.state, &report.reason));
        if has_changed {
            contents.reports.push(report);
        }
    }
}

fn parse_report(event: &Value, at: Instant) -> StateReport {
    let item = &event["item"];
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    let has_no_agent = event["type"] == "remove" || item["agent_type"].is_null();
    let state = if has_no_agent {
        ReportedState::NoAgent
    } else {
        ReportedState::parse(item["state"].as_str().unwrap_or_default())
    };
    StateReport { at, state, reason: text("reason_code") }
}
