//! Agents are started on other hosts by the agtmux of the host.

use std::fs;

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::fake_agent::{FAKE_AGENT_SCRIPT, FakeAgent};
use agtmux_testkit::hub_fixture::HubFixture;
use agtmux_testkit::{skip_without_hosts, wait_for};
use serde_json::json;

#[test]
fn an_agent_starts_on_a_host_with_its_prompt_and_answers_from_there() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let server = host.tmux("default");
    server.new_session("there", "exec cat");
    let programs = host.world().shell_copy("claude").parent().expect("a directory").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").expect("PATH is set"));
    server.run(&["set-environment", "-g", "PATH", &path]);
    server.run(&["set-option", "-g", "default-command", "PS1='ready> ' exec sh -i"]);
    let dir = FakeAgent::fresh_dir(host.world());
    let (dir_text, home) = (dir.display().to_string(), host.world().home());
    let started = hub.agtmux(&[
        "new",
        "claude",
        "--target",
        "vm1",
        "--session",
        "there",
        "--name",
        "far",
        "--prompt",
        "two\nlines",
        "--json",
        "--",
        FAKE_AGENT_SCRIPT,
        &dir_text,
    ]);
    let outcome = started.json();
    let found = (&outcome["target"], &outcome["prompt"]["status"], outcome["cwd"].as_str());
    assert_eq!(found, (&json!("vm1"), &json!("sent"), home.to_str()), "{outcome}");
    let agent = FakeAgent::wait_for_start(&server, outcome["pane_id"].as_str().expect("a pane").to_owned(), dir);
    assert_eq!(agent.submitted_texts(), ["two\nlines"]);
    let item = wait_for("the name of the agent on the hub", SOON, || {
        let item = hub.item("vm1", &agent).unwrap_or_default();
        if item["name"] == "far" { Ok(item) } else { Err(item.to_string()) }
    });
    assert!(outcome["runtime_id"].is_null() || outcome["runtime_id"] == item["runtime_id"], "{outcome} {item}");
    // The host reads the conversation of its agent.
    let payload = home.join("payload");
    fs::write(&payload, r#"{"session_id": "s-1"}"#).expect("the world is writable");
    let args = ["emit", "--pane", &agent.pane, "--agent", "claude", "--source", "hook", "--event-type", "SessionStart"];
    let payload = payload.display().to_string();
    let emitted = agtmux(host.world(), &[&args[..], &["--dedupe-key", "1", "--payload", &payload]].concat());
    assert_eq!(emitted.code, Some(0), "{emitted:?}");
    let file = home.join(".claude/projects/p/s-1.jsonl");
    fs::create_dir_all(file.parent().expect("a directory")).expect("the world is writable");
    let text = format!("tab\there\n{}", "é".repeat(20_000));
    let record = json!({"type": "assistant", "message": {"id": "1", "content": [{"type": "text", "text": text}]}});
    fs::write(file, format!("{record}\n")).expect("the world is writable");
    let last = hub.agtmux(&["last", "far"]);
    assert_eq!((last.code, last.text()), (Some(0), format!("{text}\n")), "{}", last.stderr);
    let renamed = hub.agtmux(&["rename", "far", "near"]);
    assert!(renamed.code == Some(0) && renamed.text().contains("(before: far)"), "{renamed:?}");
}

#[test]
fn a_host_without_agtmux_cannot_start_agents() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let _host = hub.hosts.agentless("bare1");
    hub.agtmux(&["target", "add", "bare1"]);
    let refused = hub.agtmux(&["new", "claude", "--target", "bare1", "--in", "/tmp"]);
    let why = refused.stderr.contains("agtmux does not run there") && refused.stderr.contains("agtmux target doctor");
    assert!(refused.code == Some(5) && why, "{refused:?}");
    let relative = hub.agtmux(&["new", "claude", "--target", "bare1", "--in", "src"]);
    assert!(relative.code == Some(2) && relative.stderr.contains("absolute path"), "{relative:?}");
}
