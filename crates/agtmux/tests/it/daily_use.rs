//! What people use every day: lists, times, references, and what commands tell them.

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{SOON, agtmux, items, run, world};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::Value;

#[test]
fn status_says_off_when_no_daemon_runs() {
    let world = world();
    let done = agtmux(&world, &["status"]);
    assert_eq!((done.code, done.text().as_str()), (Some(3), "off\n"), "{done:?}");
    let done = agtmux(&world, &["status", "--json"]);
    let json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((done.code, &json["daemon"]), (Some(3), &"off".into()));
    assert!(world.daemons().is_empty(), "status starts no daemon");
}

#[test]
fn emit_needs_no_dedupe_key_and_warns_about_unknown_types() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let emit = |event_type: &str| {
        let args = ["emit", "--pane", &agent.pane, "--source", "wrapper", "--event-type", event_type];
        agtmux(&fixture.world, &args)
    };
    for event_type in ["running", "running", "Stop"] {
        let done = emit(event_type);
        assert!(done.text().contains("accepted for"), "each event counts: {done:?}");
        assert!(done.stderr.is_empty(), "{event_type}: {done:?}");
    }
    let typo = emit("complete");
    assert!(typo.code == Some(0) && typo.text().contains("accepted for"), "{typo:?}");
    for words in ["'complete' is unknown", "does not change the state", "try: agtmux emit --help"] {
        assert!(typo.stderr.contains(words), "{words}: {typo:?}");
    }
}

#[test]
fn history_and_audit_accept_an_agent_that_has_ended() {
    let fixture = ActionFixture::new("");
    let (agent, other) = (fixture.agent("work"), fixture.agent("other"));
    for pane in [&agent.pane, &other.pane] {
        assert_eq!(agtmux(&fixture.world, &["view-output", pane]).code, Some(0));
    }
    fixture.server.run(&["set-option", "-t", "=work:", "remain-on-exit", "on"]);
    fixture.server.run(&["respawn-pane", "-k", "-t", &agent.pane, "exec cat"]);
    wait_until("the agent to end", SOON, || fixture.item(&agent).is_some_and(|item| item["runtime_id"].is_null()));
    let runtime = agent.runtime.strip_prefix("runtime:").expect("a runtime");
    for reference in [agent.pane.as_str(), "work", &agent.runtime] {
        let history = agtmux(&fixture.world, &["history", reference, "--json"]).json();
        assert_eq!(history["runtime_id"], runtime, "{reference}");
        let audit = agtmux(&fixture.world, &["audit", reference, "--json"]).json();
        let panes: Vec<&Value> = items(&audit).iter().map(|item| &item["pane_id"]).collect();
        assert_eq!(panes, [agent.pane.as_str()], "{reference}: {audit}");
    }
    assert_eq!(items(&agtmux(&fixture.world, &["audit", "--json"]).json()).len(), 2);
    fixture.server.run(&["kill-session", "-t", "=work"]);
    wait_until("the pane to close", SOON, || fixture.item(&agent).is_none());
    let history = agtmux(&fixture.world, &["history", &agent.pane, "--json"]).json();
    assert_eq!(history["runtime_id"], runtime, "the pane is closed");
    let missing = agtmux(&fixture.world, &["history", "nothing"]);
    assert!(missing.code == Some(5) && missing.stderr.contains("no agent matches"), "{missing:?}");
}

#[test]
fn people_see_local_times_and_programs_utc() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let history = agtmux(&fixture.world, &["history", &agent.pane, "--json"]).json();
    let at: jiff::Timestamp = serde_json::from_value(items(&history)[0]["at"].clone()).expect("a time in UTC");
    // A zone that no test machine uses: 5 hours and 45 minutes ahead.
    let shown = |command: &str| {
        let done = run(fixture.world.agtmux().env("TZ", "AGT-5:45").args([command, &agent.pane]));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.text()
    };
    let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds((5 * 60 + 45) * 60).expect("in range"));
    let local = at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string();
    assert!(shown("history").starts_with(&local), "{local}: {}", shown("history"));
    assert!(!shown("explain").contains("Z\n"), "{}", shown("explain"));
}

#[test]
fn a_list_can_be_printed_in_a_format() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let list = |what: &str, format: &str| agtmux(&fixture.world, &["list", what, "-F", format]);
    let panes = list("panes", "#{session_name}:#{window_index} #{pane_id}\t#{agtmux_agent} #{agtmux_state}");
    assert_eq!(panes.text(), format!("work:0 {}\tclaude idle\n", agent.pane));
    assert_eq!(list("windows", "#{window_index} #{agtmux_agents}").text(), "0 1\n");
    assert_eq!(list("sessions", "#{session_name}=#{agtmux_state}").text(), "work=idle\n");
    let wrong = list("panes", "#{agtmux_stat}");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("unknown variable 'agtmux_stat'; known variables: session_name,"), "{wrong:?}");
    let windows = agtmux(&fixture.world, &["list", "windows", "--json"]).json();
    assert_eq!(items(&windows)[0]["window_index"], 0);
}

#[test]
fn watch_prints_plain_lines_on_a_dumb_terminal() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    let (program, printed) = (env!("CARGO_BIN_EXE_agtmux"), fixture.world.home().join("printed"));
    let pane = fixture.server.new_session("dumb", &format!("read -r go; TERM=dumb exec {program} watch"));
    fixture.server.run(&["pipe-pane", "-t", &pane, &format!("cat >{}", printed.display())]);
    fixture.server.run(&["send-keys", "-t", &pane, "Enter"]);
    let text = wait_for("the table", SOON, || {
        let text = std::fs::read_to_string(&printed).unwrap_or_default();
        if text.contains("1 agent: 1 idle") { Ok(text) } else { Err(text) }
    });
    assert!(text.contains("STATE") && !text.contains('\x1b'), "{text:?}");
}
