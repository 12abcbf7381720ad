//! An agent may end the tasks that it started in its own session, and no others.

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::wait_for;

use super::agent_fixture::AgentFixture;

const PROGRAM: &str = env!("CARGO_BIN_EXE_agtmux");

/// The ways to end the task `t` of a session.
fn ends(session: &str) -> [String; 3] {
    let at = format!("--session {session}");
    [format!("task stop {at} t --window"), format!("task stop {at} t"), format!("task kill-all {at} --yes")]
}

fn agent_starts(fixture: &AgentFixture, session: &str, name: &str) {
    let started = fixture.agent_runs("start", &format!("task run --session {session} {name} -- 'exec sleep 1000'"));
    assert_eq!(started.code, 0, "{started:?}");
}

fn person_starts(fixture: &AgentFixture, session: &str) {
    let done = agtmux(&fixture.world, &["task", "run", "--session", session, "t", "--", "exec sleep 1000"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

fn is_live(fixture: &AgentFixture, session: &str) -> bool {
    let list = agtmux(&fixture.world, &["task", "list", "--session", session, "--json"]).json();
    let tasks = list["tasks"].as_array().cloned().unwrap_or_default();
    tasks.iter().any(|task| task["window_name"] == "t" && task["dead"] == false)
}

#[test]
fn an_agent_ends_the_tasks_of_its_own_session() {
    let fixture = AgentFixture::start("");
    for end in ends("pi-foo-a") {
        agent_starts(&fixture, "pi-foo-a", "t");
        let ended = fixture.agent_runs("end", &end);
        assert_eq!(ended.code, 0, "{end}: {ended:?}");
        assert!(!is_live(&fixture, "pi-foo-a"), "{end}");
    }
    let done = fixture.audit().iter().filter(|row| row["status"] == "done" && row["what"] == "stop a task").count();
    assert_eq!(done, 2, "each end is in the audit log");
}

#[test]
fn an_agent_may_not_type_into_its_own_tasks() {
    let fixture = AgentFixture::start("");
    agent_starts(&fixture, "pi-foo-a", "t");
    fixture.agent_runs("input", "task input --session pi-foo-a t --text yes").assert_refused();
}

#[test]
fn an_agent_does_not_end_tasks_of_a_person() {
    let fixture = AgentFixture::start("");
    person_starts(&fixture, "pi-foo-p");
    for end in ends("pi-foo-p") {
        fixture.agent_runs("end", &end).assert_refused();
    }
    // By starting a task the agent may become the owner of the session. The task of the person stays the person's.
    agent_starts(&fixture, "pi-foo-p", "mine");
    for end in ends("pi-foo-p") {
        fixture.agent_runs("end", &end).assert_refused();
    }
    assert!(is_live(&fixture, "pi-foo-p"));
}

#[test]
fn an_agent_does_not_end_tasks_in_a_session_of_another_owner() {
    let fixture = AgentFixture::start("");
    // The owner is this test, which lives.
    let owner = std::process::id();
    let line = format!("task run --session pi-foo-o --owner {owner} t -- 'exec sleep 1000'");
    let started = fixture.agent_runs("start", &line);
    assert_eq!(started.code, 0, "{started:?}");
    for end in ends("pi-foo-o") {
        fixture.agent_runs("end", &end).assert_refused();
    }
    assert!(is_live(&fixture, "pi-foo-o"));
}

#[test]
fn an_agent_does_not_take_over_the_session_of_a_live_owner() {
    let fixture = AgentFixture::start("");
    let owner = std::process::id();
    let line = format!("task run --session pi-foo-o --owner {owner} t -- 'exec sleep 1000'");
    assert_eq!(fixture.agent_runs("start", &line).code, 0);
    // `task startup` records the owner of the session that begins. Agents may call it for any session.
    let startup = fixture.agent_runs("startup", "task startup --session pi-foo-o --project /");
    assert_eq!(startup.code, 0, "{startup:?}");
    for end in ends("pi-foo-o") {
        fixture.agent_runs("end", &end).assert_refused();
    }
    assert!(is_live(&fixture, "pi-foo-o"));
}

#[test]
fn an_agent_does_not_close_a_pane_that_a_person_made_beside_its_task() {
    let fixture = AgentFixture::start("");
    agent_starts(&fixture, "pi-foo-a", "t");
    let split = ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=pi-foo-a:t", "exec sleep 1000"];
    let pane = fixture.server.run(&split).trim().to_owned();
    for end in ["task stop --session pi-foo-a t --window", "task kill-all --session pi-foo-a --yes"] {
        fixture.agent_runs("end", end).assert_refused();
    }
    let ended = fixture.agent_runs("end", "task stop --session pi-foo-a t");
    assert_eq!(ended.code, 0, "without the window only the task ends: {ended:?}");
    let panes = fixture.server.run(&["list-panes", "-t", "=pi-foo-a:t", "-F", "#{pane_id} #{pane_dead}"]);
    assert!(panes.contains(&format!("{pane} 0")), "{panes}");
}

#[test]
fn an_agent_does_not_end_a_task_that_a_key_binding_has_started() {
    let fixture = AgentFixture::start("");
    // tmux runs a key binding as its own child, so agtmux cannot tell who started the task.
    let name = fixture
        .write_script_with("binding", |_, _| format!("{PROGRAM} task run --session pi-foo-k t -- 'exec sleep 1000'"));
    fixture.server.run(&["run-shell", "-b", &format!("sh {}", fixture.script(&name))]);
    assert_eq!(fixture.result(&name).code, 0);
    agent_starts(&fixture, "pi-foo-k", "mine");
    for end in ends("pi-foo-k") {
        fixture.agent_runs("end", &end).assert_refused();
    }
    assert!(is_live(&fixture, "pi-foo-k"));
}

#[test]
fn the_event_of_a_closed_task_says_whether_the_user_closed_it() {
    let fixture = AgentFixture::start("");
    let text_of = |session: &str| {
        let events = ["task", "events", "--session", session, "--json", "--after", "0"];
        wait_for(&format!("the end of the task in {session}"), SOON, || {
            let events = agtmux(&fixture.world, &events).json().to_string();
            if events.contains("disappeared from session") { Ok(events) } else { Err(events) }
        })
    };
    let stop = |session: &str| format!("task stop --session {session} t --window");
    for (session, option, by_user) in [("pi-foo-a", "", false), ("pi-foo-b", " --by-user", true)] {
        agent_starts(&fixture, session, "t");
        let ended = fixture.agent_runs("end", &format!("{}{option}", stop(session)));
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(text_of(session).contains("the user manually killed it"), by_user, "{session}");
    }
    agent_starts(&fixture, "pi-foo-c", "t");
    let done = agtmux(&fixture.world, &["task", "stop", "--session", "pi-foo-c", "t", "--window"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(text_of("pi-foo-c").contains("the user manually killed it"), "a person did it");
}

#[test]
fn only_the_owner_itself_ends_its_tasks() {
    let fixture = AgentFixture::start("");
    agent_starts(&fixture, "pi-foo-a", "t");
    let nested = fixture.world.shell_copy("codex").display().to_string();
    for (label, line) in [
        ("nested-agent", format!("{nested} -c 'sh SCRIPT; true'")),
        ("setsid-env-i", "env -i setsid -f sh SCRIPT".to_owned()),
        ("double-fork", "env -i sh -c '(sh SCRIPT &) &'".to_owned()),
        ("task", "PROGRAM task run --session pi-foo-b NAME -- 'env -u AGTMUX_RUN_ID sh SCRIPT'".to_owned()),
        ("new-window", "tmux new-window -d 'sh SCRIPT'".to_owned()),
        ("run-shell", "tmux run-shell -b 'sh SCRIPT'".to_owned()),
    ] {
        for end in ends("pi-foo-a") {
            let name = fixture.write_script_with(label, |_, _| format!("{PROGRAM} {end}"));
            fixture.type_line(&fixture.agent, &fixture.fill_in(&name, &line));
            fixture.result(&name).assert_refused();
        }
    }
    assert!(is_live(&fixture, "pi-foo-a"));
}
