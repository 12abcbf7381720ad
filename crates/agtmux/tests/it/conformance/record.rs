//! Saves screens, titles and hook payloads, so that rules can be tested without the agent.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use agtmux_testkit::model::ModelRequest;
use agtmux_testkit::real_agents::options::PaneSize;
use agtmux_testkit::real_agents::states::EvidenceMode;
use serde_json::{Value, json};

use super::driver::ScenarioDriver;
use super::scenario::{Scenario, ScenarioStep};

#[derive(Debug, Clone)]
pub(crate) struct EvidenceRecorder {
    pub(crate) dir: PathBuf,
    pub(crate) size: PaneSize,
    pub(crate) version: String,
}

impl EvidenceRecorder {
    /// Writes `<agent>/<scenario>-<step>-<size>.{ansi,txt,meta}` and adds a row to `cases.tsv`.
    pub(crate) fn record(&self, driver: &ScenarioDriver<'_>, scenario: &Scenario, step: &ScenarioStep, when: &str) {
        let agent = driver.agent.name();
        let mut case = format!("{agent}-{}-{}", scenario.name, step.name);
        if driver.mode == EvidenceMode::NoHooks {
            case += "-bare";
        }
        if !when.is_empty() {
            case += &format!("-{when}");
        }
        case += &format!("-{}x{}", self.size.0, self.size.1);
        let capture = driver.sandbox.capture();
        let mut accepted = step.accepted(EvidenceMode::NoHooks);
        if !when.is_empty() {
            // The screen may lag behind the actual state.
            accepted.extend(&step.allowed_before);
        }
        let mut accept: Vec<&str> = Vec::new();
        accepted.iter().map(|state| state.as_str()).for_each(|word| {
            if !accept.contains(&word) {
                accept.push(word);
            }
        });
        let meta = json!({
            "agent": agent, "version": self.version, "scenario": scenario.name, "step": step.name,
            "mode": driver.mode.as_str(), "pane_title": capture.title, "pane_current_command": capture.command,
            "accept": accept, "hooks": self.hook_payloads(driver), "model": describe_model_requests(driver),
            "watch": driver.sandbox.watch.lines().last(),
        });
        let dir = self.dir.join(agent);
        fs::create_dir_all(&dir).expect("the recording directory is writable");
        let write = |ending: &str, bytes: &[u8]| {
            fs::write(dir.join(format!("{case}.{ending}")), bytes).expect("the recording directory is writable");
        };
        write("ansi", &driver.sandbox.capture_with_colours());
        write("txt", capture.screen.as_bytes());
        write("meta", format!("{meta:#}\n").as_bytes());
        let row = [agent, &case, &capture.command, &capture.title, &accept.join("|")].join("\t");
        let table = OpenOptions::new().create(true).append(true).open(self.dir.join("cases.tsv"));
        let mut table = table.expect("the recording directory is writable");
        writeln!(table, "{row}").expect("the recording directory is writable");
    }

    /// The payloads that the agent's hooks received so far, in the order of arrival.
    fn hook_payloads(&self, driver: &ScenarioDriver<'_>) -> Vec<Value> {
        let Some(dir) = &driver.sandbox.hook_payload_dir else { return Vec::new() };
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        files.iter().filter_map(read).collect()
    }
}

/// Describes the requests to the model, and the tools that the last main request offers.
fn describe_model_requests(driver: &ScenarioDriver<'_>) -> Value {
    let requests = driver.sandbox.model.requests();
    let tools = requests.iter().rev().find(|request| !request.is_side_request).map(|request| request.tools.clone());
    let line =
        |request: &ModelRequest| json!({"path": request.path, "act": request.action, "side": request.is_side_request});
    json!({"tools": tools, "requests": requests.iter().map(line).collect::<Vec<_>>()})
}
