//! `agtmux watch` learns of an outage from the event stream.

use std::fs::{self, File};
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, world};
use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::Value;

use super::{server_with_agent, wait_for_agent, wait_for_error, wait_for_health};

/// `agtmux watch` with its output.
struct WatchOutput {
    _watch: ChildGuard,
    file: std::path::PathBuf,
}

impl WatchOutput {
    fn start(world: &TestWorld, format: &str) -> Self {
        let file = world.dir().join(format!("watch-{format}"));
        let out = File::create(&file).expect("the world is writable");
        let mut watch = world.agtmux();
        watch.args(["watch", "--format", format]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
        Self { _watch: ChildGuard::start(&mut watch), file }
    }

    #[track_caller]
    fn wait_for(&self, what: &str, fits: impl Fn(&str) -> bool) {
        wait_for(what, SOON, || {
            let text = fs::read_to_string(&self.file).unwrap_or_default();
            if fits(&text) { Ok(()) } else { Err(text) }
        });
    }
}

/// The outages of the last `target_errors` event.
fn last_outages(lines: &str) -> Option<Value> {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut outages = events.filter(|event| event["type"] == "target_errors");
    outages.next_back().map(|event| event["target_errors"].clone())
}

#[test]
fn an_outage_appears_in_the_table_and_in_the_lines_and_ends_there() {
    let world = world();
    let server = server_with_agent(&world, "default");
    wait_for_agent(&world, "default", "unsupported_signal");
    let (table, lines) = (WatchOutput::start(&world, "table"), WatchOutput::start(&world, "jsonl"));
    let last_table = |text: &str| text.rsplit("STATE").next().unwrap_or_default().to_owned();
    table.wait_for("the first table", |text| text.contains("unsupported_signal"));
    lines.wait_for("the first line", |text| text.contains("unsupported_signal"));

    let stopped = server.stop();
    let listed = wait_for_error(&world, "server_not_responding", Some("default"))["target_errors"].clone();
    table.wait_for("the outage", |text| {
        let shown = last_table(text);
        shown.contains("host@default") && shown.contains("target_unreachable")
    });
    lines.wait_for("the outage", |text| last_outages(text).as_ref() == Some(&listed));

    server.cont(stopped);
    wait_for_health(&world);
    table.wait_for("a table without the outage", |text| !last_table(text).contains("host@default"));
    lines.wait_for("the end of the outage", |text| last_outages(text) == Some(Value::Array(Vec::new())));
}
