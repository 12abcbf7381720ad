//! `task list`, and the events that a listing causes.

use std::fs;

use agtmux_testkit::agtmux::{SOON, start, stop};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::wait_for;
use serde_json::json;

#[test]
fn a_missing_session_is_listed_and_produces_no_events() {
    let fixture = TaskFixture::new();
    let list = fixture.list();
    assert_eq!(
        (&list["session_name"], &list["exists"], &list["tasks"]),
        (&json!(fixture.session), &json!(false), &json!([]))
    );
    assert!(list["captured_at"].is_string(), "{list}");
    assert_eq!(fixture.events(), Vec::<serde_json::Value>::new());
}

#[test]
fn each_window_is_one_task_with_its_fields() {
    let fixture = TaskFixture::new();
    let live = fixture.run("api", "echo hello; exec sleep 1000");
    let dead = fixture.run("tests", "echo bye; exit 3");
    fixture.event(&dead.window, "exited");
    let entry =
        wait_for("the output", SOON, || fixture.entry(&live.window).filter(|entry| entry["output_preview"] == "hello"));
    assert_eq!((&entry["window_name"], &entry["pane_id"]), (&json!("api"), &json!(live.pane)));
    assert_eq!((&entry["pane_state_known"], &entry["dead"]), (&json!(true), &json!(false)));
    assert_eq!(entry["current_command"], "echo hello; exec sleep 1000");
    assert_eq!(entry["task_cwd"].as_str(), fixture.project.to_str());
    assert_eq!((&entry["exit_code"], &entry["signal"]), (&json!(null), &json!(null)));
    assert_eq!((&entry["bell"], &entry["bell_count"]), (&json!(false), &json!(0)));
    // tmux reports the code slightly after the death.
    wait_for("the exit code of the dead task", SOON, || {
        let entry = fixture.entry(&dead.window).expect("the window stays");
        let entry_fields = (entry["dead"].clone(), entry["exit_code"].clone(), entry["output_preview"].clone());
        if entry_fields == (json!(true), json!(3), json!("bye")) { Ok(()) } else { Err(entry_fields) }
    });
}

#[test]
fn windows_from_before_the_first_listing_produce_no_events() {
    let fixture = TaskFixture::new();
    let live = fixture.run("live", "printf '\\a'; until [ -e go ]; do sleep 0.05; done; exit 6");
    let dead = fixture.run("dead", "exit 5");
    fixture.event(&live.window, "notify");
    fixture.event(&dead.window, "exited");
    stop(&fixture.world);
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(fixture.world.state_dir().join(name));
    }
    for file in fs::read_dir(fixture.world.state_dir().join("tasks")).expect("there").flatten() {
        let _ = fs::remove_file(file.path());
    }
    start(&fixture.world);
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&live.window), Vec::<String>::new());
    assert_eq!(fixture.event_messages(&dead.window), Vec::<String>::new());
    // Later changes are reported.
    fs::write(fixture.file("go"), "").expect("written");
    fixture.event(&live.window, "exited");
    assert_eq!(fixture.event_messages(&live.window), ["exited with code 6"]);
}

#[test]
fn a_new_live_window_is_reported_as_started() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    let window = fixture.unmanaged_window("mine", "exec sleep 1000");
    let started = fixture.event(&window, "started");
    assert_eq!(
        (&started["run_id"], &started["task"], &started["level"]),
        (&json!(null), &json!("mine"), &json!("info"))
    );
    assert_eq!(started["message"], format!("tmux task {window} (mine) started"));
}

#[test]
fn a_window_dead_at_the_first_listing_is_reported_as_exited() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    // One tmux command creates the window and starts the program that exits, so that no listing can come between.
    let target = format!("={}:", fixture.session);
    let window = fixture.tmux.run(&[
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{window_id}",
        "-t",
        &target,
        "-n",
        "gone",
        "exec sleep 1000",
        ";",
        "set-option",
        "-w",
        "-t",
        &format!("={}:gone", fixture.session),
        "remain-on-exit",
        "on",
        ";",
        "respawn-window",
        "-k",
        "-t",
        &format!("={}:gone", fixture.session),
        "exit 4",
    ]);
    let exited = fixture.event(&window, "exited");
    assert_eq!(exited["exit_code"], 4);
}

#[test]
fn in_a_window_with_several_panes_the_launched_pane_is_the_task() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; exit 8");
    // Insert a pane before the task's pane, so that the task is not the first one.
    fixture.tmux.run(&["split-window", "-d", "-b", "-t", &task.pane, "printf 'Proceed? [y/N] '; exec sleep 1000"]);
    fixture.run_marker_task();
    assert_eq!(fixture.entry(&task.window).expect("listed")["pane_id"], json!(task.pane));
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
    fs::write(fixture.file("go"), "").expect("written");
    fixture.event(&task.window, "exited");
    assert_eq!(fixture.event_messages(&task.window), ["started", "exited with code 8"]);
}

#[test]
fn a_task_pane_killed_beside_other_panes_is_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    fixture.tmux.run(&["split-window", "-d", "-t", &task.pane, "exec sleep 1000"]);
    fixture.tmux.run(&["kill-pane", "-t", &task.pane]);
    fixture.event(&task.window, "disappeared");
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started", "disappeared from session"]);
}

#[test]
fn tasks_work_without_a_utf8_locale() {
    let fixture = TaskFixture::with_project("Ünïcode", "C");
    let task = fixture.run("t", "printf 'grün §\\tend\\n'; printf 'Löschen? [j/N] '; read answer; exit 4");
    assert_eq!(fixture.event(&task.window, "input")["prompt"], "Löschen? [j/N]");
    fixture.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    let exited = fixture.event(&task.window, "exited");
    assert_eq!(exited["exit_code"], 4);
    assert!(exited["recent_output"].to_string().contains("grün §"), "{exited}");
    let entry = fixture.entry(&task.window).expect("listed");
    assert_eq!(entry["task_cwd"].as_str(), fixture.project.to_str());
}

#[test]
fn projects_with_awkward_names_get_valid_session_names() {
    for (folder, session) in
        [("my.app", "pi-my-app-1"), ("a:b", "pi-a-b-1"), ("Ünïcode", "pi-n-code-1"), ("...x", "pi-x-1")]
    {
        let fixture = TaskFixture::with_project(folder, "C.UTF-8");
        assert_eq!(fixture.session, session);
        let task = fixture.run("t", "pwd; exit 0");
        let exited = fixture.event(&task.window, "exited");
        assert_eq!(exited["session"], session);
        assert_eq!(exited["recent_output"], json!([fixture.project.to_str()]));
        assert_eq!(fixture.tmux.run(&["list-sessions", "-F", "#{session_name}"]), session);
    }
}

#[test]
fn panes_and_windows_of_the_user_are_not_touched() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exit 0");
    fixture.event(&task.window, "exited");
    let pid_of = |target: &str| fixture.tmux.run(&["display-message", "-p", "-t", target, "#{pane_pid} #{pane_dead}"]);
    let split = ["split-window", "-b", "-d", "-P", "-F", "#{pane_id}", "-t", &task.pane, "exec sleep 1000"];
    let beside = fixture.tmux.run(&split).trim().to_owned();
    let window = fixture.unmanaged_window("mine", "exec sleep 1000");
    let before = (pid_of(&beside), pid_of(&window));
    // The task restarts in its own pane, although another pane comes first.
    let again = fixture.run("t", "exec sleep 1000");
    assert_eq!((&again.window, &again.pane), (&task.window, &task.pane));
    // A window with the same name that the user made is not the task.
    for args in [&["stop", "mine"][..], &["restart", "mine"], &["input", "mine", "--text", "x"]] {
        let done = fixture.task(args);
        assert!(done.code == Some(5) && done.stderr.contains("was not started by agtmux"), "{args:?}: {done:?}");
    }
    let other = fixture.run("mine", "exec sleep 1000");
    assert_ne!(other.window, window);
    fixture.task_ok(&["stop", "mine"]);
    assert_eq!(fixture.event(&other.window, "exited")["signal"], "SIGTERM");
    assert_eq!((pid_of(&beside), pid_of(&window)), before);
    // After the task's pane is killed, the remaining pane belongs to the user.
    fixture.tmux.run(&["kill-pane", "-t", &again.pane]);
    assert_ne!(fixture.run("t", "exit 0").window, task.window);
    assert_eq!(pid_of(&beside), before.0);
}

#[test]
fn a_window_made_by_the_user_stays_when_it_is_dead() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    let go = fixture.file("go");
    let window =
        fixture.unmanaged_window("mine", &format!("until [ -e {} ]; do sleep 0.05; done; exit 4", go.display()));
    fixture.event(&window, "started");
    let option = ["show-options", "-wv", "-t", &window, "remain-on-exit"];
    wait_for("remain-on-exit of the window", SOON, || Some(()).filter(|()| fixture.tmux.run(&option) == "on"));
    fs::write(&go, "").expect("written");
    fixture.event(&window, "exited");
    assert_eq!(fixture.event_messages(&window), ["started", "exited with code 4"]);
    let entry = fixture.entry(&window).expect("the window stays");
    assert_eq!((&entry["dead"], &entry["run_id"]), (&json!(true), &json!(null)));
}

#[test]
fn the_listed_command_is_the_launched_one_or_the_title_or_the_program() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "printf '\\033]2;a title\\033\\\\'; exec sleep 1000");
    let window = fixture.unmanaged_window("mine", "printf '\\033]2;my title\\033\\\\'; exec sleep 1000");
    let command = |window: &str, expected: &str| {
        wait_for(&format!("{window} runs '{expected}'"), SOON, || {
            let entry = fixture.entry(window).unwrap_or_default();
            if entry["current_command"] == expected { Ok(()) } else { Err(entry) }
        });
    };
    command(&window, "my title");
    command(&task.window, "printf '\\033]2;a title\\033\\\\'; exec sleep 1000");
    fixture.tmux.run(&["select-pane", "-t", &window, "-T", ""]);
    command(&window, "sleep");
    let entry = fixture.entry(&window).expect("listed");
    assert_eq!((&entry["task_cwd"], &entry["pane_state_known"]), (&json!(null), &json!(true)));
}

#[test]
fn a_list_has_exactly_the_documented_fields() {
    let fixture = TaskFixture::new();
    fixture.run("t", "exec sleep 1000");
    let list = fixture.list();
    let names = |value: &serde_json::Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&list), ["captured_at", "exists", "session_name", "tasks"]);
    let of_task = [
        "bell",
        "bell_count",
        "current_command",
        "dead",
        "exit_code",
        "output_preview",
        "pane_id",
        "pane_state_known",
        "run_id",
        "signal",
        "task_cwd",
        "window_id",
        "window_name",
    ];
    assert_eq!(names(&list["tasks"][0]), of_task);
}
