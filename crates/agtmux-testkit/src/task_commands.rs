//! Runs `agtmux task` commands in a project of the world.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::agtmux::{CommandResult, SOON, run};
use crate::{TestWorld, wait_for};

pub const SESSION: &str = "pi-proj-1";

pub fn project(world: &TestWorld) -> PathBuf {
    let dir = world.home().join("proj");
    std::fs::create_dir_all(&dir).expect("the world is writable");
    dir
}

/// An `agtmux task` command. It runs in the directory of the project, and its environment names the project's session.
pub fn command(world: &TestWorld, args: &[&str]) -> Command {
    let mut command = world.agtmux();
    command.env("AGTMUX_SESSION", SESSION).current_dir(project(world)).arg("task").args(args);
    command
}

#[track_caller]
pub fn task(world: &TestWorld, args: &[&str]) -> CommandResult {
    let done = run(&mut command(world, args));
    assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
    done
}

/// Starts a task and returns its `--json` output.
#[track_caller]
pub fn launch(world: &TestWorld, name: &str, shell: &str) -> Value {
    task(world, &["run", "--json", name, "--", shell]).json()
}

/// All task events of the world, oldest first.
#[track_caller]
pub fn events(world: &TestWorld) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event["seq"].as_u64().expect("a number")).to_string();
        let page = task(world, &["events", "--all", "--json", "--after", &after]).json();
        let items = page["items"].as_array().expect("a list").clone();
        if items.is_empty() {
            return all;
        }
        all.extend(items);
    }
}

/// The event types of one run, in order.
pub fn event_types(events: &[Value], run: &Value) -> Vec<String> {
    let of_run = events.iter().filter(|event| event["run_id"] == run["run_id"]);
    of_run.map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until the run has an event of this type, and returns the event.
#[track_caller]
pub fn wait_for_event(world: &TestWorld, run: &Value, kind: &str) -> Value {
    wait_for(&format!("'{kind}' of {}", run["task"]), SOON, || {
        let events = events(world);
        let found = events.iter().find(|event| event["run_id"] == run["run_id"] && event["type"] == kind);
        found.cloned().ok_or(events)
    })
}
