//! `bash` and `read_terminal`: the terminal that the agent and the person share.

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

use super::mcp_fixture::McpAgent;

/// The pane of the shared terminal.
fn terminal(agent: &McpAgent) -> String {
    let status = agtmux(&agent.world, &["mirror", "status", "--json"]).json();
    status["items"][0]["pane_id"].as_str().unwrap_or_else(|| panic!("no terminal: {status}")).to_owned()
}

fn output(facts: &Value) -> String {
    facts["output"]["parts"].as_array().expect("parts").iter().filter_map(|part| part["text"].as_str()).collect()
}

#[test]
fn a_command_runs_where_the_person_sees_it_and_the_agent_sees_the_person() {
    let agent = McpAgent::start();
    let done = agent.call("bash", &json!({"command": "echo seen by both; cd /; (exit 3)"}));
    assert_eq!((&done["status"], &done["exit_code"]), (&json!("ended"), &json!(3)), "{done}");
    assert_eq!(output(&done), "seen by both\n", "{done}");
    let pane = terminal(&agent);
    assert!(agent.screen(&pane).contains("seen by both"), "{}", agent.screen(&pane));
    // The shell keeps its directory, and the person uses it, too.
    agent.server.run(&["send-keys", "-t", &pane, "-l", "echo typed-by-the-person; false"]);
    agent.server.run(&["send-keys", "-t", &pane, "Enter"]);
    wait_for("the command of the person", SOON, || {
        let activity = agtmux(&agent.world, &["mirror", "activity", "--pane", &pane, "--json"]);
        activity.text().contains("typed-by-the-person").then_some(())
    });
    let next = agent.call("bash", &json!({"command": "pwd"}));
    assert_eq!(output(&next), "/\n", "{next}");
    let person = &next["user_commands"][0];
    assert_eq!((&person["exit_code"], &person["output"]), (&json!(1), &json!("typed-by-the-person")), "{next}");
    // Each command is reported once.
    let text = agent.text("read_terminal", &json!({}));
    assert!(text.contains("pwd") && !text.contains("The user ran"), "{text}");
    let project = agent.call("bash", &json!({"command": "pwd", "cwd": "."}));
    assert!(output(&project).ends_with("/project\n"), "{project}");
    let error = agent.error("bash", &json!({"command": "pwd", "cwd": "missing"}));
    assert!(error.contains("is not a directory"), "{error}");
    let rows = agent.audit();
    let mut commands = rows.iter().filter(|row| row["kind"] == "mirror");
    assert!(commands.all(|row| row["caller"]["client"] == "mcp test client"), "{rows:?}");
}

#[test]
fn a_long_command_goes_on_and_is_read_later() {
    let agent = McpAgent::start();
    let go = agent.world.dir().join("go");
    let command = format!("echo first; while [ ! -e {} ]; do sleep 0.1; done; echo last", go.display());
    let begun = agent.call("bash", &json!({"command": command, "wait_s": 1}));
    assert_eq!((&begun["status"], &begun["exit_code"]), (&json!("still_running"), &Value::Null), "{begun}");
    assert_eq!(output(&begun), "first\n", "{begun}");
    std::fs::write(go, "").expect("the world is writable");
    let rest = json!({"command_id": begun["command_id"], "offset": begun["read_so_far"]});
    let read = agent.call("read_terminal", &rest)["command"].clone();
    assert_eq!((&read["status"], &read["exit_code"]), (&json!("ended"), &json!(0)), "{read}");
    assert_eq!(output(&read), "last\n", "{read}");
}

#[test]
fn a_silent_call_reports_progress() {
    let agent = McpAgent::start();
    let params = json!({"name": "bash", "arguments": {"command": "sleep 6"}, "_meta": {"progressToken": "t1"}});
    let answer = agent.request("tools/call", &params);
    assert_eq!(answer["result"]["structuredContent"]["exit_code"], 0, "{answer}");
    let progress = agent.take_notifications();
    assert_eq!(progress[0]["method"], "notifications/progress", "{progress:?}");
    assert_eq!(progress[0]["params"]["progressToken"], "t1");
}
