//! Background tasks of an agent.

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

use super::mcp_fixture::McpAgent;

#[test]
fn a_task_runs_in_the_background_and_its_end_is_reported() {
    let agent = McpAgent::start();
    let go = agent.world.dir().join("go");
    let command = format!("pwd; while [ ! -e {} ]; do sleep 0.1; done; echo finished; exit 3", go.display());
    let started = agent.call("run_task", &json!({"task": "build", "command": command}));
    assert_eq!((&started["status"], &started["session"]), (&json!("started"), &json!("agtmux-project")), "{started}");
    let waited = agent.call("wait_task", &json!({"task": "build", "timeout_s": 1}));
    assert_eq!((&waited["status"], &waited["end"]), (&json!("still_running"), &Value::Null), "{waited}");
    let listed = agent.call("list_tasks", &json!({}));
    assert_eq!(
        (&listed["tasks"][0]["task"], &listed["tasks"][0]["running"]),
        (&json!("build"), &json!(true)),
        "{listed}"
    );
    std::fs::write(go, "").expect("the world is writable");
    // Any result tells the agent about the end, once.
    let news = wait_for("the end of the task in a result", SOON, || {
        let listed = agent.call("list_agents", &json!({}));
        listed["task_news"][0].as_str().map(str::to_owned).ok_or(listed)
    });
    assert!(news.contains("build") && news.contains('3'), "{news}");
    let after = agent.call("list_agents", &json!({}));
    assert_eq!(after["task_news"], Value::Null, "{after}");
    let end = agent.call("wait_task", &json!({"task": "build"}));
    assert_eq!((&end["status"], &end["end"]["exit_code"]), (&json!("ended"), &json!(3)), "{end}");
    let output = end["end"]["output"]["parts"][0]["text"].as_str().expect("a text");
    assert!(output.contains("/project\n") && output.contains("finished\n"), "{output}");
    let rows = agent.audit();
    let run = rows.iter().find(|row| row["kind"] == "task").expect("the start is recorded");
    assert_eq!(run["caller"]["client"], "mcp test client", "{run}");
}

#[test]
fn a_short_task_can_be_waited_for_at_once() {
    let agent = McpAgent::start();
    // Some clients send every argument as text.
    let done = agent.call("run_task", &json!({"task": "quick", "command": "echo hello", "wait_s": "30"}));
    assert_eq!((&done["status"], &done["end"]["exit_code"]), (&json!("ended"), &json!(0)), "{done}");
    assert_eq!(done["end"]["output"]["parts"][0]["text"], "hello\n");
    let error = agent.error("run_task", &json!({"task": "no spaces", "command": "true"}));
    assert!(error.contains("letters, digits"), "{error}");
    let error = agent.error("wait_task", &json!({"task": "missing"}));
    assert!(error.contains("there is no task 'missing'") && error.contains("list_tasks"), "{error}");
}

#[test]
fn a_huge_output_is_cut_and_can_be_read_on() {
    let agent = McpAgent::start();
    let command = "seq -f 'line %.0f' 1 60000; printf 'end'";
    agent.call("run_task", &json!({"task": "huge", "command": command, "wait_s": 40}));
    let result = agent.result("task_output", &json!({"task": "huge"}));
    let (text, facts) = (result["content"][0]["text"].as_str().expect("a text"), &result["structuredContent"]);
    assert!(text.chars().count() <= 10_000 && facts.to_string().chars().count() <= 10_000, "{}", text.len());
    let parts = facts["output"]["parts"].as_array().expect("parts");
    let last = parts.last().expect("a part")["text"].as_str().expect("a text");
    assert!(parts.len() == 2 && last.ends_with("line 60000\nend\n"), "{facts}");
    assert!(text.contains("are not shown; call task_output with offset="), "{text}");
    let next = &facts["output"]["next_offset"];
    let more = agent.call("task_output", &json!({"task": "huge", "offset": next, "max_chars": 500}));
    let shown = more["output"]["parts"][0]["text"].as_str().expect("a text");
    let head_lines =
        parts[0]["text"].as_str().expect("a text").lines().filter(|line| line.starts_with("line ")).count();
    let joined = format!("{}{shown}", parts[0]["text"].as_str().expect("a text"));
    assert!(joined.contains(&format!("line {}\nline {}\n", head_lines, head_lines + 1)), "{joined}");
}
