//! An agent may end the tasks that it started in its own session, and no others.

use agtmux_testkit::agtmux::agtmux;

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
