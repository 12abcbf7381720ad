//! The API as its description has it: whatever a fuzzer makes of the committed document, the daemon answers as it says there.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_web.rs"]
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agtmux::{SOON, health, items, list, soak, world};
use agtmux_testkit::wait_until;
use bridge::{hook, session_start};
use web::open;

/// How `scripts/schemathesis` says that there is none.
const SKIP_EXIT_CODE: i32 = 77;
/// These do not end: a fuzzer would wait for them.
const STREAMS: [&str; 3] = ["get_events", "get_stream", "follow_task_events"];
/// The long form makes as many requests as fit into this many seconds.
const SOAK_SECONDS: &str = "240";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn no_request_meets_a_server_error_or_an_answer_that_is_not_described() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", &world.fake_agent_command("claude"));
    let web = open(&world);
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
        // It keeps what it has found in the directory that it is started in.
        .current_dir(world.dir())
        .stdin(Stdio::null());
    let done = fuzzer.output().expect("the script can be started");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.code() == Some(SKIP_EXIT_CODE) {
        return println!("skipped 1 test: {}", said.trim());
    }
    assert!(done.status.success(), "{said}");
    println!("{}", said.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert_eq!(health(&world)["store"]["error"], serde_json::Value::Null, "it is well after all that");
}
