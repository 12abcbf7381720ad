//! Keeps what a scene looked like, so that rules can be tried on it without the agent.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use agtmux_testkit::model::Request;
use serde_json::{Value, json};

use super::drive::Driver;
use super::options::Size;
use super::scenario::{Scenario, Step};
use super::words::Mode;

#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    pub(crate) dir: PathBuf,
    pub(crate) size: Size,
    pub(crate) version: String,
}

impl Recorder {
    /// `<agent>/<scenario>-<step>-<size>.{ansi,txt,meta}`, and a row in `cases.tsv`.
    pub(crate) fn keep(&self, driver: &Driver<'_>, scenario: &Scenario, step: &Step, when: &str) {
        let agent = driver.agent.name();
        let mut case = format!("{agent}-{}-{}", scenario.name, step.name);
        if driver.mode == Mode::Bare {
            case += "-bare";
        }
        if !when.is_empty() {
            case += &format!("-{when}");
        }
        case += &format!("-{}x{}", self.size.0, self.size.1);
        let look = driver.room.look();
        let mut accepted = step.accepted(Mode::Bare);
        if !when.is_empty() {
            // What is true already need not have been drawn yet.
            accepted.extend(&step.way);
        }
        let mut accept: Vec<&str> = Vec::new();
        accepted.iter().map(|shown| shown.word()).for_each(|word| {
            if !accept.contains(&word) {
                accept.push(word);
            }
        });
        let meta = json!({
            "agent": agent, "version": self.version, "scenario": scenario.name, "step": step.name,
            "mode": driver.mode.word(), "pane_title": look.title, "pane_current_command": look.command,
            "accept": accept, "hooks": self.hooks(driver), "model": asked(driver),
            "watch": driver.room.watch.lines().last(),
        });
        let dir = self.dir.join(agent);
        fs::create_dir_all(&dir).expect("the place for recordings is writable");
        let write = |ending: &str, bytes: &[u8]| {
            fs::write(dir.join(format!("{case}.{ending}")), bytes).expect("the place for recordings is writable");
        };
        write("ansi", &driver.room.coloured());
        write("txt", look.screen.as_bytes());
        write("meta", format!("{meta:#}\n").as_bytes());
        let row = [agent, &case, &look.command, &look.title, &accept.join("|")].join("\t");
        let table = OpenOptions::new().create(true).append(true).open(self.dir.join("cases.tsv"));
        let mut table = table.expect("the place for recordings is writable");
        writeln!(table, "{row}").expect("the place for recordings is writable");
    }

    /// What the agent's hooks were given so far, in the order of their coming.
    fn hooks(&self, driver: &Driver<'_>) -> Vec<Value> {
        let Some(dir) = &driver.room.kept_hooks else { return Vec::new() };
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        files.iter().filter_map(read).collect()
    }
}

/// What the model was asked, and which tools it was offered last.
fn asked(driver: &Driver<'_>) -> Value {
    let requests = driver.room.model.requests();
    let tools = requests.iter().rev().find(|request| !request.side).map(|request| request.tools.clone());
    let line = |request: &Request| json!({"path": request.path, "act": request.act, "side": request.side});
    json!({"tools": tools, "requests": requests.iter().map(line).collect::<Vec<_>>()})
}
