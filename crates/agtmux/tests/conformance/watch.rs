//! What `agtmux watch` said about one pane, and when it said so.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use agtmux_testkit::{Running, World};
use serde_json::Value;

use super::words::Shown;

/// One line in which the state of the pane's agent was another.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) at: Instant,
    pub(crate) shown: Shown,
    pub(crate) reason: Option<String>,
}

/// Follows a pane for as long as it lives.
#[derive(Debug)]
pub(crate) struct WatchLog {
    _watch: Running,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    told: Vec<Told>,
    lines: Vec<String>,
}

impl WatchLog {
    pub(crate) fn start(world: &World, pane: &str) -> Self {
        let mut watch = world.agtmux();
        watch.args(["watch", "--all", "--scope", "panes", "--format", "jsonl"]);
        watch.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut watch = Running::start(&mut watch);
        let lines = watch.stdout.take().expect("it was piped");
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (for_reader, pane) = (Arc::clone(&heard), pane.to_owned());
        thread::spawn(move || listen(lines, &pane, &for_reader));
        Self { _watch: watch, heard }
    }

    /// All that was told so far, the oldest first.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.heard().told.clone()
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.heard().lines.is_empty()
    }

    /// As they came, the newest of them.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.heard().lines.clone()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen(lines: ChildStdout, pane: &str, heard: &Mutex<Heard>) {
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let at = Instant::now();
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let item = &event["item"];
        if item["identity"]["pane_id"] != pane {
            continue;
        }
        let told = read(&event, at);
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.lines.push(line);
        let is_news = heard.told.last().is_none_or(|last| (last.shown, &last.reason) != (told.shown, &told.reason));
        if is_news {
            heard.told.push(told);
        }
    }
}

fn read(event: &Value, at: Instant) -> Told {
    let item = &event["item"];
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    let is_gone = event["type"] == "remove" || item["agent_type"].is_null();
    let shown = if is_gone { Shown::Gone } else { Shown::read(item["state"].as_str().unwrap_or_default()) };
    Told { at, shown, reason: text("reason_code") }
}
