//! Fuzzes the API with schemathesis: the daemon answers every request as the committed OpenAPI document describes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agtmux_testkit::agtmux::{SOON, health, items, list, soak, world};
use agtmux_testkit::bridge::{hook, session_start};
use agtmux_testkit::web::start_with_web;
use agtmux_testkit::{skip, wait_until};

/// The exit code of `scripts/schemathesis` when schemathesis is not installed.
const SKIP_EXIT_CODE: i32 = 77;
/// Operations whose responses never end.
const STREAMS: [&str; 4] = ["get_events", "get_stream", "follow_task_events", "follow_screen"];
/// How long the soak run sends requests, in seconds.
const SOAK_SECONDS: &str = "240";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn fuzzed_requests_get_only_documented_responses() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", &world.fake_agent_command("claude"));
    let web = start_with_web(&world);
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let amount = if soak() { ["--max-time", SOAK_SECONDS] } else { ["--max-examples", "12"] };
    let streams = STREAMS.iter().flat_map(|name| ["--exclude-operation-id", name]);
    let mut fuzzer = Command::new(repository_root().join("scripts/schemathesis"));
    fuzzer
        .arg("run")
        .arg(repository_root().join("crates/agtmux-api/schema/openapi.json"))
        .args(["--url", &format!("http://{}", web.address)])
        .args(["--header", &web.bearer(), "--header", "x-agtmux: 1"])
        .args(streams)
        .args(["--checks", CHECKS])
        .args(amount)
        .args(["--suppress-health-check", "all", "--no-color"])
        // schemathesis stores its findings in the working directory.
        .current_dir(world.dir())
        .stdin(Stdio::null());
    let done = fuzzer.output().expect("the script can be started");
    let output = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.code() == Some(SKIP_EXIT_CODE) {
        return skip(&output);
    }
    assert!(done.status.success(), "{output}");
    println!("{}", output.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert_eq!(health(&world)["store"]["error"], serde_json::Value::Null, "the store is healthy after fuzzing");
}
