//! The owner process of a session, and what other processes may do in it.

use agtmux_testkit::task_fixture::TaskFixture;
use serde_json::json;

use super::scripted_agent::ScriptedAgent;

fn owner_option(fixture: &TaskFixture, session: &str) -> String {
    let format = "#{@agtmux_owner_pid}";
    fixture.tmux.run(&["display-message", "-p", "-t", &format!("={session}:"), format]).trim().to_owned()
}

fn owner_pid(fixture: &TaskFixture, session: &str) -> Option<u32> {
    owner_option(fixture, session).split_once('.').and_then(|(pid, _)| pid.parse().ok())
}

#[track_caller]
fn wait_for_exit(fixture: &TaskFixture, session: &str, task: &str) {
    fixture.wait_until_dead(session, task);
}

#[test]
fn a_session_keeps_its_live_owner_when_others_start_tasks_in_it() {
    let fixture = TaskFixture::new();
    let own = fixture.session_name("own");
    let agent = ScriptedAgent::start(&fixture, &own);
    agent.task_ok(&["run", "--replace", "a", "--", "exit 0"]);
    assert_eq!(owner_pid(&fixture, &own), Some(agent.pid()));
    // Neither a user without a known process nor another agent becomes the owner.
    fixture.task_ok(&["run", "--replace", "--session", &own, "b", "--", "exit 0"]);
    fixture.task_ok(&["restart", "--session", &own, "a"]);
    assert_eq!(owner_pid(&fixture, &own), Some(agent.pid()), "after a user started a task");
    let other = ScriptedAgent::start(&fixture, "pi-foo-other");
    other.task_ok(&["run", "--replace", "--session", &own, "c", "--", "exit 0"]);
    assert_eq!(owner_pid(&fixture, &own), Some(agent.pid()), "after another agent started a task");
    for task in ["a", "b", "c"] {
        wait_for_exit(&fixture, &own, task);
    }
    let report = other.task_ok(&["startup", "--json"]).json();
    assert_eq!((&report["removed"], &report["active"]), (&json!([]), &json!([])), "the session is in use");
    // After the owner dies, startup removes the session. The next agent that runs a task owns the new session.
    drop(agent);
    fixture.task_ok(&["run", "--replace", "--session", &own, "b", "--", "exit 0"]);
    wait_for_exit(&fixture, &own, "b");
    let report = other.task_ok(&["startup", "--json"]).json();
    assert_eq!(report["removed"], json!([own]));
    other.task_ok(&["run", "--replace", "--session", &own, "a", "--", "exec sleep 1000"]);
    assert_eq!(owner_pid(&fixture, &own), Some(other.pid()));
}

#[test]
fn restart_with_an_owner_sets_the_session_owner() {
    let fixture = TaskFixture::new();
    let left = fixture.session_name("left");
    let agent = ScriptedAgent::start(&fixture, &left);
    agent.task_ok(&["run", "--replace", "a", "--", "exit 0"]);
    drop(agent);
    fixture.task_ok(&["restart", "--session", &left, "a"]);
    let me = std::process::id();
    assert_ne!(owner_pid(&fixture, &left), Some(me), "restart without an owner option sets no owner");
    // The old name of --owner still works.
    fixture.task_ok(&["restart", "--session", &left, "--keeper", &me.to_string(), "a"]);
    assert_eq!(owner_pid(&fixture, &left), Some(me));
    let done = fixture.task(&["restart", "--session", &left, "--owner", "1", "a"]);
    assert!(done.code == Some(2) && done.stderr.contains("2.."), "{done:?}");
}

#[test]
fn a_session_resumed_by_an_unknown_owner_is_kept() {
    let fixture = TaskFixture::new();
    let (taken, left) = (fixture.session_name("taken"), fixture.session_name("left"));
    for session in [&taken, &left] {
        let agent = ScriptedAgent::start(&fixture, session);
        agent.task_ok(&["run", "--replace", "a", "--", "exit 0"]);
        wait_for_exit(&fixture, session, "a");
    }
    // The caller is a harness that agtmux does not recognise as an agent. It names no owner process.
    let report = fixture.task_ok(&["startup", "--json", "--session", &taken]).json();
    assert_eq!((&report["removed"], &report["active"]), (&json!([left]), &json!([])));
    assert_eq!(owner_option(&fixture, &taken), "", "the stored owner is dead and is removed");
    let report = fixture.task_ok(&["startup", "--json"]).json();
    assert_eq!(
        (&report["removed"], &report["active"]),
        (&json!([]), &json!([])),
        "the session is in use by an unknown owner"
    );
    assert_eq!(fixture.tmux.run(&["list-sessions", "-F", "#{session_name}"]), taken);
    // A caller without a known process does not replace a live owner.
    let live_session = fixture.session_name("lives");
    let agent = ScriptedAgent::start(&fixture, &live_session);
    agent.task_ok(&["run", "--replace", "a", "--", "exit 0"]);
    fixture.task_ok(&["startup", "--session", &live_session]);
    assert_eq!(owner_pid(&fixture, &live_session), Some(agent.pid()));
}

#[test]
fn an_agent_cannot_replace_a_live_task_in_another_session() {
    let fixture = TaskFixture::new();
    let (own, persons) = (fixture.session_name("own"), fixture.session_name("persons"));
    let (agent, other) = (ScriptedAgent::start(&fixture, &own), ScriptedAgent::start(&fixture, "pi-foo-other"));
    agent.task_ok(&["run", "live", "--", "exec sleep 1000"]);
    agent.task_ok(&["run", "over", "--", "exit 3"]);
    fixture.task_ok(&["run", "--session", &persons, "live", "--", "exec sleep 1000"]);
    wait_for_exit(&fixture, &own, "over");
    let pane = |session: &str| {
        fixture.tmux.run(&["display-message", "-p", "-t", &format!("={session}:live"), "#{pane_pid} #{pane_dead}"])
    };
    let before = (pane(&own), pane(&persons));
    let mut refused = 0;
    for (session, whose) in
        [(&own, format!("owned by process {}", agent.pid())), (&persons, "not owned by an agent".into())]
    {
        // The --owner option does not prove that the caller is the owner.
        let named = agent.pid().to_string();
        for args in [
            &["run", "--session", session.as_str(), "live", "--", "true"][..],
            &["run", "--session", session, "--owner", &named, "live", "--", "true"],
            &["restart", "--session", session, "live"],
            &["restart", "--session", session, "--owner", &named, "live"],
        ] {
            let done = other.task(args);
            assert_eq!(done.code, Some(5), "{args:?}: {done:?}");
            for words in ["agents may not replace 'live'", &whose, "try: choose another task name"] {
                assert!(done.stderr.contains(words), "{args:?}: {words}: {}", done.stderr);
            }
            refused += 1;
        }
    }
    assert_eq!((refused, (pane(&own), pane(&persons))), (8, before), "the tasks are unchanged");
    // Another agent may replace ended tasks and use new names. The owner may replace its own tasks.
    other.task_ok(&["run", "--session", &own, "over", "--", "exit 4"]);
    other.task_ok(&["run", "--session", &own, "new", "--", "true"]);
    agent.task_ok(&["run", "--replace", "live", "--", "exec sleep 1000"]);
    agent.task_ok(&["restart", "live"]);
    // A user may replace tasks.
    fixture.task_ok(&["run", "--replace", "--session", &own, "live", "--", "exec sleep 1000"]);
    // Tasks of a dead owner may be replaced.
    drop(agent);
    other.task_ok(&["run", "--replace", "--session", &own, "live", "--", "exec sleep 1000"]);
    let audit = fixture.world.agtmux().args(["audit", "--json"]).output().expect("agtmux starts");
    let refusals = String::from_utf8_lossy(&audit.stdout).matches("E_CALLER_IS_AGENT").count();
    assert_eq!(refusals, refused, "each refusal is in the audit log");
}
