//! What an agent may do only with permission, and what it may never do.

use agtmux_testkit::agtmux::{SOON, items, list};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::wait_for;
use serde_json::json;

use super::mcp_fixture::McpAgent;

fn respond(pane: &str, fingerprint: &str) -> serde_json::Value {
    json!({"ref": pane, "fingerprint": fingerprint, "answer": "approve"})
}

#[test]
fn an_mcp_client_without_permission_is_refused_with_a_reason() {
    let agent = McpAgent::start();
    let (other, keys) = agent.other_agent("other");
    let fingerprint = agent.ask_permission(&other, "touch a");
    for (tool, arguments) in [
        ("respond", respond(&other, &fingerprint)),
        ("send", json!({"ref": other, "text": "hello"})),
        ("stop_task", json!({"task": "build"})),
    ] {
        let error = agent.error(tool, &arguments);
        assert!(error.contains("permission") && error.contains(&format!("--allow {tool}")), "{error}");
        assert!(error.contains("Nothing was done"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(keys).expect("read"), "", "nothing was typed");
}

#[test]
fn an_agent_that_gives_itself_the_permission_is_refused_by_the_daemon() {
    let agent = McpAgent::with("--allow respond,send,stop_task", "");
    let (other, keys) = agent.other_agent("other");
    let fingerprint = agent.ask_permission(&other, "touch a");
    let error = agent.error("respond", &respond(&other, &fingerprint));
    assert!(error.contains("E_CALLER_IS_AGENT") && error.contains("actions.allow_from_agents"), "{error}");
    let error = agent.error("send", &json!({"ref": other, "text": "hello"}));
    assert!(error.contains("E_CALLER_IS_AGENT"), "{error}");
    assert_eq!(std::fs::read_to_string(keys).expect("read"), "", "nothing was typed");
    let rows = agent.audit();
    let refused = rows.iter().filter(|row| row["code"] == "E_CALLER_IS_AGENT");
    let names: Vec<_> = refused.map(|row| row["caller"]["client"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(names, ["mcp test client", "mcp test client"], "{rows:?}");
}

#[test]
fn the_settings_allow_an_agent_to_answer_others_but_never_itself() {
    let agent = McpAgent::with("", "actions.allow_from_agents = ['respond']\n");
    let other = FakeAgent::start(&agent.world, "other");
    other.draw_scene("permission");
    let fingerprint = wait_for("the dialog of the other agent", SOON, || {
        let listing = list(&agent.world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == other.pane.as_str());
        item.and_then(|item| item["dialog"]["fingerprint"].as_str().map(str::to_owned))
    });
    let answered = agent.call("respond", &respond(&other.pane, &fingerprint));
    assert_eq!((&answered["answered"], &answered["verified"]), (&json!("1. Yes"), &json!("confirmed")), "{answered}");
    assert_own_dialog_stays_open(&agent);
    let error = agent.error("send", &json!({"ref": other.pane, "text": "hello"}));
    assert!(error.contains("--allow send"), "only respond is allowed: {error}");
}

#[test]
fn an_agent_that_may_do_everything_cannot_answer_itself() {
    let agent = McpAgent::with("", "actions.allow_from_agents = true\n");
    assert_own_dialog_stays_open(&agent);
}

#[track_caller]
fn assert_own_dialog_stays_open(agent: &McpAgent) {
    let own = agent.ask_permission(&agent.pane, "rm -rf own");
    let error = agent.error("respond", &respond(&agent.pane, &own));
    assert!(error.contains("an agent cannot answer its own dialog"), "{error}");
    let typed = std::fs::read_to_string(agent.world.dir().join("keys")).expect("read");
    assert_eq!(typed, "", "nothing was typed into the agent's own pane");
    let rows = agent.audit();
    assert!(rows.iter().any(|row| row["status"] == "refused" && row["pane_id"] == agent.pane.as_str()), "{rows:?}");
}

#[test]
fn an_agent_stops_its_own_tasks_when_the_server_allows_it() {
    let agent = McpAgent::with("--allow stop_task", "");
    agent.call("run_task", &json!({"task": "server", "command": "sleep 1000"}));
    let stopped = agent.call("stop_task", &json!({"task": "server"}));
    assert!(stopped["result"].as_str().expect("a result").contains("SIGTERM"), "{stopped}");
}

#[test]
fn a_read_only_server_shows_only_tools_that_read() {
    let agent = McpAgent::with("--read-only", "actions.allow_from_agents = true\n");
    let tools = agent.request("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().expect("tools");
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools:?}");
    assert_eq!(tools.len(), 8);
    let error = agent.error("bash", &json!({"command": "touch /tmp/x"}));
    assert!(error.contains("--read-only"), "{error}");
}
