//! `task startup`: cleanup of sessions that earlier harness sessions left behind.

use std::fs;

use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::wait_until;
use serde_json::{Value, json};

/// Runs a task whose owner is a process that has ended when this function returns.
#[track_caller]
fn run_task_and_end_owner(fixture: &TaskFixture, session: &str, name: &str, command: &str) {
    let mut shell = fixture.world.command("sh");
    shell.current_dir(&fixture.project).env("AGTMUX_SESSION", session).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    let done = run(shell.args([
        "-c",
        r#""$AGTMUX" task run --owner $$ "$1" -- "$2"; code=$?; exit $code"#,
        "sh",
        name,
        command,
    ]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[track_caller]
fn wait_for_exit(fixture: &TaskFixture, session: &str, task: &str) {
    wait_until(&format!("the end of {task} in {session}"), SOON, || {
        let events = fixture.task_ok(&["events", "--json", "--after", "0", "--session", session]).json();
        let events = events["items"].as_array().cloned().unwrap_or_default();
        events.iter().any(|event| event["task"] == task && event["type"] == "exited")
    });
    fixture.wait_until_dead(session, task);
}

#[track_caller]
fn startup(fixture: &TaskFixture) -> Value {
    fixture.task_ok(&["startup", "--json"]).json()
}

fn sessions(fixture: &TaskFixture) -> Vec<String> {
    let all = fixture.tmux.run(&["list-sessions", "-F", "#{session_name}"]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn startup_removes_inactive_sessions_and_lists_active_ones() {
    let fixture = TaskFixture::new();
    let (over, active) = (fixture.session_name("over"), fixture.session_name("active"));
    run_task_and_end_owner(&fixture, &over, "a", "exit 0");
    run_task_and_end_owner(&fixture, &active, "b", "exec sleep 1000");
    run_task_and_end_owner(&fixture, &active, "c", "exit 1");
    wait_for_exit(&fixture, &over, "a");
    wait_for_exit(&fixture, &active, "c");
    let report = startup(&fixture);
    assert_eq!(report["removed"], json!([over]));
    let named = format!("tmux session {active} still has 1 task running: b");
    assert_eq!(report["notices"], json!([format!("removed inactive tmux session {over}"), named]));
    assert_eq!(
        (&report["active"][0]["session"], &report["active"][0]["session_id"], &report["active"][0]["tasks"]),
        (&json!(active), &json!("active"), &json!(["b"]))
    );
    assert_eq!(report["delivery"], json!({"status": false, "notice": true, "message": false, "agent_turn": null}));
    assert_eq!(sessions(&fixture), std::slice::from_ref(&active));
    // The cleanup produces no task events.
    let events = fixture.task_ok(&["events", "--json", "--after", "0", "--session", &over]).json();
    let kinds: Vec<_> = events["items"].as_array().expect("items").iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["started", "exited"]);
    let again = fixture.task_ok(&["startup"]);
    assert_eq!(again.text().trim(), named);
}

#[test]
fn an_abandoned_session_is_shown_with_its_title() {
    let fixture = TaskFixture::new();
    let (titled, untitled) = (fixture.session_name("t-1"), fixture.session_name("s-1"));
    run_task_and_end_owner(&fixture, &titled, "a", "exec sleep 1000");
    run_task_and_end_owner(&fixture, &untitled, "a", "exec sleep 1000");
    let dir = fixture.world.home().join(".pi/agent/sessions/--home-foo--");
    fs::create_dir_all(&dir).expect("made");
    let message = |text: &str| json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}]}});
    let long = "please ".repeat(30);
    let title = json!({"type": "session_info", "name": "Fix the build"});
    fs::write(dir.join("2026-11-15_t-1.jsonl"), format!("{}\n{title}\n", message("hello"))).expect("written");
    fs::write(dir.join("2026-11-15_s-1.jsonl"), format!("{}\n{}\n", message(&long), message("later")))
        .expect("written");
    let report = startup(&fixture);
    let title_of = |session: &str| {
        let all = report["active"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|left| left["session"] == session).unwrap_or_default();
        one["title"].as_str().map(str::to_owned)
    };
    assert_eq!(title_of(&titled).as_deref(), Some("Fix the build"));
    let title = title_of(&untitled).expect("its first message");
    assert!(title.chars().count() == 80 && title.starts_with("please please") && title.ends_with('…'), "{title}");
    assert!(report["notices"].to_string().contains("(Fix the build) still has 1 task running: a"), "{report}");
}

#[test]
fn sessions_of_other_projects_with_the_same_prefix_are_kept() {
    let fixture = TaskFixture::with_project("foo", "C.UTF-8");
    // `pi-foo-bar-1` can be session `bar-1` of `foo` or session `1` of `foo-bar`.
    let other = TaskFixture { project: fixture.world.home().join("foo-bar"), ..fixture };
    fs::create_dir_all(&other.project).expect("made");
    run_task_and_end_owner(&other, "pi-foo-bar-1", "a", "exit 0");
    wait_for_exit(&other, "pi-foo-bar-1", "a");
    let twin = TaskFixture { project: other.world.home().join("elsewhere/foo"), ..other };
    fs::create_dir_all(&twin.project).expect("made");
    run_task_and_end_owner(&twin, "pi-foo-2", "a", "exit 0");
    wait_for_exit(&twin, "pi-foo-2", "a");
    let fixture = TaskFixture { project: twin.world.home().join("foo"), ..twin };
    run_task_and_end_owner(&fixture, "pi-foo-bar-2", "a", "exit 0");
    wait_for_exit(&fixture, "pi-foo-bar-2", "a");
    let report = startup(&fixture);
    assert_eq!((&report["removed"], &report["active"]), (&json!(["pi-foo-bar-2"]), &json!([])));
    assert_eq!(sessions(&fixture), ["pi-foo-2", "pi-foo-bar-1"]);
}

#[test]
fn sessions_in_use_or_made_without_agtmux_are_kept() {
    let mut fixture = TaskFixture::new();
    let (used, own) = (fixture.session_name("used"), fixture.session.clone());
    // The owner is this test process, which is alive.
    fixture.session = used.clone();
    let task = fixture.run("a", "exit 0");
    fixture.event(&task.window, "exited");
    run_task_and_end_owner(&fixture, &own, "a", "exit 0");
    wait_for_exit(&fixture, &own, "a");
    fixture.tmux.new_session("pi-foo-users", "exit 0");
    fixture.tmux.new_session("pi-foo-users", "exec sleep 1000");
    fixture.session = own.clone();
    assert_eq!(startup(&fixture)["removed"], json!([]));
    assert_eq!(sessions(&fixture), [own, used, "pi-foo-users".into()]);
}

#[test]
fn a_resumed_session_is_in_use() {
    let mut fixture = TaskFixture::new();
    let resumed = fixture.session_name("resumed");
    run_task_and_end_owner(&fixture, &resumed, "a", "exit 0");
    wait_for_exit(&fixture, &resumed, "a");
    let own = std::mem::replace(&mut fixture.session, resumed.clone());
    let report = fixture.task_ok(&["startup", "--json", "--owner", &std::process::id().to_string()]).json();
    assert_eq!(report["removed"], json!([]), "a session does not clean up after itself");
    fixture.session = own;
    assert_eq!(startup(&fixture)["removed"], json!([]));
    assert_eq!(sessions(&fixture), [resumed]);
}

#[test]
fn a_users_pane_beside_an_ended_task_keeps_the_session() {
    let fixture = TaskFixture::new();
    let left = fixture.session_name("left");
    run_task_and_end_owner(&fixture, &left, "a", "exit 0");
    wait_for_exit(&fixture, &left, "a");
    let target = format!("={left}:a");
    let own = fixture.tmux.run(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", &target, "exec sleep 1000"]);
    let report = startup(&fixture);
    assert_eq!((&report["removed"], &report["active"][0]["tasks"]), (&json!([]), &json!(["a"])));
    fixture.tmux.run(&["kill-pane", "-t", own.trim()]);
    assert_eq!(startup(&fixture)["removed"], json!([left]));
}

#[test]
fn a_session_with_an_unknown_owner_is_kept() {
    let fixture = TaskFixture::new();
    let wrapped = fixture.session_name("wrapped");
    let mut shell = fixture.world.command("sh");
    shell.current_dir(&fixture.project).env("AGTMUX_SESSION", &wrapped).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    // The wrapper has ended; the harness that called it may still run.
    let done = run(shell.args(["-c", r#""$AGTMUX" task run a -- 'exit 0'; code=$?; exit $code"#]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for_exit(&fixture, &wrapped, "a");
    assert_eq!(startup(&fixture)["removed"], json!([]));
    assert_eq!(sessions(&fixture), [wrapped]);
}

#[test]
fn the_project_variable_sets_the_project_of_a_session() {
    let fixture = TaskFixture::new();
    let below = fixture.session_name("below");
    fs::create_dir_all(fixture.file("sub")).expect("made");
    let mut shell = fixture.world.command("sh");
    shell.current_dir(fixture.file("sub")).env("AGTMUX_SESSION", &below).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    shell.env("AGTMUX_PROJECT", &fixture.project);
    let line = r#"AGTMUX_KEEPER=$$ "$AGTMUX" task run a -- 'exit 0'; code=$?; exit $code"#;
    let done = run(shell.args(["-c", line]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for_exit(&fixture, &below, "a");
    assert_eq!(startup(&fixture)["removed"], json!([below]));
}
