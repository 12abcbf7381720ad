//! What becomes of sessions that earlier sessions of a harness have left.

use std::fs;

use agtmux_testkit::wait_until;
use serde_json::{Value, json};

use crate::agtmux::{SOON, run};
use crate::stage::Stage;

/// Runs a task from a program that has ended when this returns: the harness whose session it was.
#[track_caller]
fn run_task_and_end_owner(stage: &Stage, session: &str, name: &str, command: &str) {
    let mut shell = stage.world.command("sh");
    shell.current_dir(&stage.project).env("AGTMUX_SESSION", session).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    let done = run(shell.args([
        "-c",
        r#""$AGTMUX" task run --keeper $$ "$1" -- "$2"; code=$?; exit $code"#,
        "sh",
        name,
        command,
    ]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[track_caller]
fn wait_for_exit(stage: &Stage, session: &str, task: &str) {
    wait_until(&format!("the end of {task} in {session}"), SOON, || {
        let events = stage.done(&["events", "--json", "--after", "0", "--session", session]).json();
        let events = events["items"].as_array().cloned().unwrap_or_default();
        events.iter().any(|event| event["task"] == task && event["type"] == "exited")
    });
    stage.dead(session, task);
}

#[track_caller]
fn startup(stage: &Stage) -> Value {
    stage.done(&["startup", "--json"]).json()
}

fn sessions(stage: &Stage) -> Vec<String> {
    let all = stage.tmux.run(&["list-sessions", "-F", "#{session_name}"]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn sessions_in_which_nothing_runs_are_removed_and_others_named() {
    let stage = Stage::new();
    let (over, active) = (stage.named("over"), stage.named("active"));
    run_task_and_end_owner(&stage, &over, "a", "exit 0");
    run_task_and_end_owner(&stage, &active, "b", "exec sleep 1000");
    run_task_and_end_owner(&stage, &active, "c", "exit 1");
    wait_for_exit(&stage, &over, "a");
    wait_for_exit(&stage, &active, "c");
    let report = startup(&stage);
    assert_eq!(report["removed"], json!([over]));
    let named = format!("tmux session {active} still has 1 task running: b");
    assert_eq!(report["notices"], json!([format!("removed inactive tmux session {over}"), named]));
    assert_eq!(
        (&report["active"][0]["session"], &report["active"][0]["session_id"], &report["active"][0]["tasks"]),
        (&json!(active), &json!("active"), &json!(["b"]))
    );
    assert_eq!(report["delivery"], json!({"status": false, "notice": true, "message": false, "agent_turn": null}));
    assert_eq!(sessions(&stage), std::slice::from_ref(&active));
    // Nothing of it is told as if something had happened to a task.
    let events = stage.done(&["events", "--json", "--after", "0", "--session", &over]).json();
    let kinds: Vec<_> = events["items"].as_array().expect("items").iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["started", "exited"]);
    let again = stage.done(&["startup"]);
    assert_eq!(again.text().trim(), named);
}

#[test]
fn a_session_that_is_left_is_called_by_its_title() {
    let stage = Stage::new();
    let (titled, said) = (stage.named("t-1"), stage.named("s-1"));
    run_task_and_end_owner(&stage, &titled, "a", "exec sleep 1000");
    run_task_and_end_owner(&stage, &said, "a", "exec sleep 1000");
    let dir = stage.world.home().join(".pi/agent/sessions/--home-foo--");
    fs::create_dir_all(&dir).expect("made");
    let message = |text: &str| json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}]}});
    let long = "please ".repeat(30);
    let title = json!({"type": "session_info", "name": "Fix the build"});
    fs::write(dir.join("2026-11-15_t-1.jsonl"), format!("{}\n{title}\n", message("hello"))).expect("written");
    fs::write(dir.join("2026-11-15_s-1.jsonl"), format!("{}\n{}\n", message(&long), message("later")))
        .expect("written");
    let report = startup(&stage);
    let title_of = |session: &str| {
        let all = report["active"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|left| left["session"] == session).unwrap_or_default();
        one["title"].as_str().map(str::to_owned)
    };
    assert_eq!(title_of(&titled).as_deref(), Some("Fix the build"));
    let title = title_of(&said).expect("its first message");
    assert!(title.chars().count() == 80 && title.starts_with("please please") && title.ends_with('…'), "{title}");
    assert!(report["notices"].to_string().contains("(Fix the build) still has 1 task running: a"), "{report}");
}

#[test]
fn sessions_of_another_project_are_not_touched_though_their_names_begin_alike() {
    let stage = Stage::of("foo", "C.UTF-8");
    // `pi-foo-bar-1` may be session `bar-1` of `foo`, or session `1` of `foo-bar`.
    let other = Stage { project: stage.world.home().join("foo-bar"), ..stage };
    fs::create_dir_all(&other.project).expect("made");
    run_task_and_end_owner(&other, "pi-foo-bar-1", "a", "exit 0");
    wait_for_exit(&other, "pi-foo-bar-1", "a");
    let twin = Stage { project: other.world.home().join("elsewhere/foo"), ..other };
    fs::create_dir_all(&twin.project).expect("made");
    run_task_and_end_owner(&twin, "pi-foo-2", "a", "exit 0");
    wait_for_exit(&twin, "pi-foo-2", "a");
    let stage = Stage { project: twin.world.home().join("foo"), ..twin };
    run_task_and_end_owner(&stage, "pi-foo-bar-2", "a", "exit 0");
    wait_for_exit(&stage, "pi-foo-bar-2", "a");
    let report = startup(&stage);
    assert_eq!((&report["removed"], &report["active"]), (&json!(["pi-foo-bar-2"]), &json!([])));
    assert_eq!(sessions(&stage), ["pi-foo-2", "pi-foo-bar-1"]);
}

#[test]
fn sessions_that_somebody_uses_or_made_without_us_are_not_touched() {
    let mut stage = Stage::new();
    let (used, own) = (stage.named("used"), stage.session.clone());
    // Run by this test, which lives.
    stage.session = used.clone();
    let task = stage.run("a", "exit 0");
    stage.event(&task.window, "exited");
    run_task_and_end_owner(&stage, &own, "a", "exit 0");
    wait_for_exit(&stage, &own, "a");
    stage.tmux.new_session("pi-foo-users", "exit 0");
    stage.tmux.new_session("pi-foo-users", "exec sleep 1000");
    stage.session = own.clone();
    assert_eq!(startup(&stage)["removed"], json!([]));
    assert_eq!(sessions(&stage), [own, used, "pi-foo-users".into()]);
}

#[test]
fn a_session_that_was_taken_up_again_is_in_use() {
    let mut stage = Stage::new();
    let resumed = stage.named("resumed");
    run_task_and_end_owner(&stage, &resumed, "a", "exit 0");
    wait_for_exit(&stage, &resumed, "a");
    let own = std::mem::replace(&mut stage.session, resumed.clone());
    let report = stage.done(&["startup", "--json", "--keeper", &std::process::id().to_string()]).json();
    assert_eq!(report["removed"], json!([]), "a session does not clean up after itself");
    stage.session = own;
    assert_eq!(startup(&stage)["removed"], json!([]));
    assert_eq!(sessions(&stage), [resumed]);
}

#[test]
fn what_a_user_runs_beside_an_ended_task_is_not_taken_away() {
    let stage = Stage::new();
    let left = stage.named("left");
    run_task_and_end_owner(&stage, &left, "a", "exit 0");
    wait_for_exit(&stage, &left, "a");
    let target = format!("={left}:a");
    let own = stage.tmux.run(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", &target, "exec sleep 1000"]);
    let report = startup(&stage);
    assert_eq!((&report["removed"], &report["active"][0]["tasks"]), (&json!([]), &json!(["a"])));
    stage.tmux.run(&["kill-pane", "-t", own.trim()]);
    assert_eq!(startup(&stage)["removed"], json!([left]));
}

#[test]
fn a_session_of_nobody_knows_whom_is_left_alone() {
    let stage = Stage::new();
    let wrapped = stage.named("wrapped");
    let mut shell = stage.world.command("sh");
    shell.current_dir(&stage.project).env("AGTMUX_SESSION", &wrapped).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    // The wrapper is gone when this returns; the harness that called it may live.
    let done = run(shell.args(["-c", r#""$AGTMUX" task run a -- 'exit 0'; code=$?; exit $code"#]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for_exit(&stage, &wrapped, "a");
    assert_eq!(startup(&stage)["removed"], json!([]));
    assert_eq!(sessions(&stage), [wrapped]);
}

#[test]
fn the_project_is_the_one_that_the_harness_names() {
    let stage = Stage::new();
    let below = stage.named("below");
    fs::create_dir_all(stage.file("sub")).expect("made");
    let mut shell = stage.world.command("sh");
    shell.current_dir(stage.file("sub")).env("AGTMUX_SESSION", &below).env("AGTMUX", env!("CARGO_BIN_EXE_agtmux"));
    shell.env("AGTMUX_PROJECT", &stage.project);
    let line = r#"AGTMUX_KEEPER=$$ "$AGTMUX" task run a -- 'exit 0'; code=$?; exit $code"#;
    let done = run(shell.args(["-c", line]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for_exit(&stage, &below, "a");
    assert_eq!(startup(&stage)["removed"], json!([below]));
}
