//! The tools that look at agents.

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

use super::mcp_fixture::McpAgent;

#[test]
fn an_agent_sees_itself_and_the_others_without_tmux_variables() {
    let agent = McpAgent::start();
    let (other, _) = agent.other_agent("other");
    agent.ask_permission(&other, "touch a");
    let listed = agent.call("list_agents", &json!({}));
    let agents = listed["agents"].as_array().expect("agents");
    assert_eq!((agents.len(), &listed["total"]), (2, &json!(2)), "{listed}");
    // The agent that waits comes first.
    assert!(agents[0]["where"].as_str().expect("a place").contains(&other), "{listed}");
    assert_eq!(agents[0]["state"], "waiting_approval");
    assert_eq!((&agents[0]["you"], &agents[1]["you"]), (&Value::Null, &json!(true)), "{listed}");
    let text = agent.text("list_agents", &json!({"state": "waiting_approval"}));
    assert!(text.contains("1 agents") && text.contains("Do you want to proceed?"), "{text}");

    let reference = agents[0]["ref"].as_str().expect("a ref");
    let details = agent.call("get_agent", &json!({"ref": reference}));
    assert_eq!(details["dialog"]["options"][0], json!({"number": 1, "label": "Yes"}), "{details}");
    assert!(details["dialog"]["subject"].as_str().expect("a subject").contains("touch a"), "{details}");
    assert!(details["why"].as_array().is_some_and(|why| why.iter().any(|why| why["source"] == "screen")), "{details}");

    let output = agent.call("read_output", &json!({"ref": reference}));
    let shown = output["output"]["parts"][0]["text"].as_str().expect("a text");
    assert!(shown.contains("touch a") && shown.contains("3. No"), "{output}");
    let rows = agent.audit();
    let row = rows.iter().find(|row| row["kind"] == "view-output").expect("the read is recorded");
    assert_eq!(row["caller"]["client"], "mcp test client", "{row}");

    let error = agent.error("get_agent", &json!({"ref": "missing"}));
    assert!(error.contains("E_REF_NOT_FOUND") && error.contains("What to do"), "{error}");
    let error = agent.error("read_output", &json!({"reff": "x"}));
    assert!(error.contains("unknown field `reff`"), "{error}");
}

#[test]
fn a_wait_ends_in_time_and_goes_on_with_its_position() {
    let agent = McpAgent::start();
    let (other, _) = agent.other_agent("other");
    let waits = json!({"refs": [other], "states": ["waiting_approval"], "timeout_s": 1});
    let first = agent.call("wait_for", &waits);
    assert_eq!(first["outcome"], "still_running", "{first}");
    let position = first["position"].as_str().expect("a position").to_owned();
    agent.ask_permission(&other, "touch a");
    let again = json!({"refs": [other], "states": ["waiting_approval"], "position": position});
    assert_eq!(agent.call("wait_for", &again)["outcome"], "reached");
    let finished = agent.call("wait_for", &json!({"refs": [other]}));
    assert_eq!(finished["outcome"], "asks", "{finished}");
    let reference = finished["agents"][0]["ref"].clone();
    agent.server.run(&["kill-pane", "-t", &other]);
    wait_for("the end of the agent", SOON, || {
        let waited = agent.call("wait_for", &json!({"refs": [reference]}));
        if waited["agents"][0]["gone"] == true { Ok(()) } else { Err(waited.to_string()) }
    });
}

#[test]
fn the_server_starts_without_a_daemon_and_ends_with_its_client() {
    let agent = McpAgent::start();
    let tools = agent.request("tools/list", &json!({}));
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = [
        "list_agents",
        "get_agent",
        "read_output",
        "wait_for",
        "run_task",
        "list_tasks",
        "task_output",
        "wait_task",
        "bash",
        "read_terminal",
        "send",
        "respond",
        "stop_task",
    ];
    assert_eq!(names, expected);
    let unknown = agent.request("tools/call", &json!({"name": "launch_missiles", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // The daemon may stop and start between two calls.
    agtmux(&agent.world, &["daemon", "stop"]);
    assert_eq!(agent.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(agent.call("list_agents", &json!({}))["total"], 1);
}

#[test]
fn agents_and_tasks_are_resources_and_changes_are_notified() {
    let agent = McpAgent::start();
    let (other, _) = agent.other_agent("other");
    let listed = agent.request("resources/list", &json!({}));
    let uris: Vec<String> = listed["result"]["resources"]
        .as_array()
        .unwrap_or_else(|| panic!("no resources: {listed}"))
        .iter()
        .filter_map(|resource| resource["uri"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(uris.len(), 4, "{uris:?}");
    for uri in &uris {
        let read = agent.request("resources/read", &json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {read}"));
        assert!(text.contains("agents") || text.contains("do not follow") || text.contains("tasks"), "{uri}: {text}");
    }
    let missing = agent.request("resources/read", &json!({"uri": "file:///etc/passwd"}));
    assert!(missing["error"]["message"].as_str().is_some_and(|why| why.contains("no resource")), "{missing}");
    let subscribed = agent.request("resources/subscribe", &json!({"uri": "agtmux://agents"}));
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    agent.ask_permission(&other, "touch a");
    wait_for("the notification", SOON, || {
        agent.request("ping", &json!({}));
        let seen = agent.take_notifications();
        let is_update = |message: &Value| message["method"] == "notifications/resources/updated";
        if seen.iter().any(is_update) { Ok(()) } else { Err(seen) }
    });
    let prompts = agent.request("prompts/list", &json!({}));
    let names: Vec<&Value> =
        prompts["result"]["prompts"].as_array().expect("prompts").iter().map(|p| &p["name"]).collect();
    assert_eq!(names, ["review-agents", "hand-over"]);
    let prompt = agent.request("prompts/get", &json!({"name": "hand-over", "arguments": {"task": "fix it"}}));
    assert!(
        prompt["result"]["messages"][0]["content"]["text"].as_str().expect("a text").contains("fix it"),
        "{prompt}"
    );
}
