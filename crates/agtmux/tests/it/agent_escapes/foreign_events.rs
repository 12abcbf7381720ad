//! Events that one agent sends about another, and names that one agent takes from another.

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::wait_for;

use super::agent_fixture::AgentFixture;

/// Starts another agent. Returns its pane and its runtime id.
fn start_other_agent(fixture: &AgentFixture, command: &str) -> (String, String) {
    let pane = fixture.server.new_session("second", command);
    let runtime = wait_for("the other agent to be listed", SOON, || {
        let item = fixture.item(&pane);
        item["runtime_id"].as_str().map(str::to_owned).ok_or(item.to_string())
    });
    (pane, runtime)
}

fn explain(fixture: &AgentFixture, pane: &str) -> String {
    let done = agtmux(&fixture.world, &["explain", pane]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.text()
}

#[test]
fn an_agent_may_report_about_itself_and_not_about_other_agents() {
    let fixture = AgentFixture::start("");
    let (other, runtime) = start_other_agent(&fixture, &fixture.world.fake_agent_command("codex"));
    let event = "--source wrapper --event-type completed --dedupe-key";
    for (n, target) in [format!("--pane {other}"), format!("--runtime {runtime}")].iter().enumerate() {
        let attempt = fixture.agent_runs("other", &format!("emit {target} {event} other-{n}"));
        assert!(attempt.code != 0 && attempt.output.contains("is about another agent"), "{attempt:?}");
        assert!(attempt.output.contains("events.allow_from_other_agents"), "{attempt:?}");
    }
    let task = fixture.write_script_with("task", |_, _| {
        format!("{} emit --pane {other} {event} other-task", env!("CARGO_BIN_EXE_agtmux"))
    });
    let run = "PROGRAM task run --session pi-foo-e NAME -- 'env -i sh SCRIPT'";
    fixture.type_line(&fixture.agent, &fixture.fill_in(&task, run));
    let attempt = fixture.result(&task);
    assert!(attempt.code != 0 && attempt.output.contains("is about another agent"), "{attempt:?}");
    assert_ne!(fixture.item(&other)["state"], "completed");

    let own = fixture.agent_runs("own", "emit --source wrapper --event-type running --dedupe-key own");
    assert_eq!(own.code, 0, "{own:?}");
    let explained = explain(&fixture, &fixture.agent);
    let uid = rustix::process::geteuid().as_raw();
    let last = explained.lines().find(|line| line.starts_with("last event from wrapper: running")).unwrap_or_default();
    for words in ["sent by agtmux ", &format!("uid {uid}"), "a process of claude", "via unix"] {
        assert!(last.contains(words), "{words}: {explained}");
    }
    // A person may report about every agent.
    let args = format!("emit --pane {other} {event} person");
    let done = agtmux(&fixture.world, &args.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let explained = explain(&fixture, &other);
    let last = explained.lines().find(|line| line.starts_with("last event from wrapper: completed"));
    assert!(last.is_some_and(|line| line.contains("sent by agtmux ") && !line.contains("a process of")), "{explained}");
}

#[test]
fn the_settings_can_allow_events_about_other_agents() {
    let fixture = AgentFixture::start("events.allow_from_other_agents = true\n");
    let (other, _) = start_other_agent(&fixture, &fixture.world.fake_agent_command("codex"));
    let emit = format!("emit --pane {other} --source wrapper --event-type completed --dedupe-key x");
    let attempt = fixture.agent_runs("other", &emit);
    assert_eq!(attempt.code, 0, "{attempt:?}");
    assert!(explain(&fixture, &other).contains("a process of claude"));
}

#[test]
fn an_agent_may_not_take_the_name_of_another_agent() {
    let fixture = AgentFixture::start("");
    let program = env!("CARGO_BIN_EXE_agtmux");
    let agent = fixture.world.fake_agent_command("codex").replacen("exec ", "", 1);
    let (other, _) = start_other_agent(&fixture, &format!("{program} run --name reviewer -- {agent}"));
    wait_for("the name", SOON, || {
        let item = fixture.item(&other);
        if item.to_string().contains("reviewer") { Ok(()) } else { Err(item.to_string()) }
    });
    let take = |name: &str| {
        let payload = fixture.file("payload.json");
        std::fs::write(&payload, format!("{{\"name\": \"{name}\"}}")).expect("the world is writable");
        let key = format!("take-{name}");
        let event = "emit --source wrapper --event-type agent-started";
        fixture.agent_runs(&key, &format!("{event} --dedupe-key {key} --payload {}", payload.display()))
    };
    let attempt = take("reviewer");
    assert!(attempt.code != 0 && attempt.output.contains("another agent is already named 'reviewer'"), "{attempt:?}");
    assert_eq!(take("helper").code, 0);
    let audit = fixture.audit();
    let named: Vec<(&str, &str)> = audit
        .iter()
        .filter(|row| row["kind"] == "name")
        .map(|row| (row["ref"].as_str().unwrap_or_default(), row["status"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(named, [("reviewer", "done"), ("reviewer", "refused"), ("helper", "done")]);
}
