//! What a look at a session shows, and what it does not tell.

use std::fs;

use agtmux_testkit::wait_for;
use serde_json::json;

use crate::agtmux::{SOON, start, stop};
use crate::stage::Stage;

#[test]
fn a_missing_session_is_listed_as_such_and_tells_nothing() {
    let stage = Stage::new();
    let list = stage.list();
    assert_eq!(
        (&list["session_name"], &list["exists"], &list["tasks"]),
        (&json!(stage.session), &json!(false), &json!([]))
    );
    assert!(list["captured_at"].is_string(), "{list}");
    assert_eq!(stage.events(), Vec::<serde_json::Value>::new());
}

#[test]
fn each_window_is_one_task_with_its_fields() {
    let stage = Stage::new();
    let live = stage.run("api", "echo hello; exec sleep 1000");
    let dead = stage.run("tests", "echo bye; exit 3");
    stage.event(&dead.window, "exited");
    let entry =
        wait_for("the output", SOON, || stage.entry(&live.window).filter(|entry| entry["output_preview"] == "hello"));
    assert_eq!((&entry["window_name"], &entry["pane_id"]), (&json!("api"), &json!(live.pane)));
    assert_eq!((&entry["pane_state_known"], &entry["dead"]), (&json!(true), &json!(false)));
    assert_eq!(entry["current_command"], "echo hello; exec sleep 1000");
    assert_eq!(entry["task_cwd"].as_str(), stage.project.to_str());
    assert_eq!((&entry["exit_code"], &entry["signal"]), (&json!(null), &json!(null)));
    assert_eq!((&entry["bell"], &entry["bell_count"]), (&json!(false), &json!(0)));
    // tmux tells the code a moment after the death.
    wait_for("how the other one ended", SOON, || {
        let entry = stage.entry(&dead.window).expect("it stays");
        let seen = (entry["dead"].clone(), entry["exit_code"].clone(), entry["output_preview"].clone());
        if seen == (json!(true), json!(3), json!("bye")) { Ok(()) } else { Err(seen) }
    });
}

#[test]
fn what_was_there_before_the_first_look_is_not_replayed() {
    let stage = Stage::new();
    let live = stage.run("live", "printf '\\a'; until [ -e go ]; do sleep 0.05; done; exit 6");
    let dead = stage.run("dead", "exit 5");
    stage.event(&live.window, "notify");
    stage.event(&dead.window, "exited");
    stop(&stage.world);
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(stage.world.state_dir().join(name));
    }
    for file in fs::read_dir(stage.world.state_dir().join("tasks")).expect("there").flatten() {
        let _ = fs::remove_file(file.path());
    }
    start(&stage.world);
    stage.witness();
    assert_eq!(stage.told(&live.window), Vec::<String>::new());
    assert_eq!(stage.told(&dead.window), Vec::<String>::new());
    // What changes from there on counts.
    fs::write(stage.file("go"), "").expect("written");
    stage.event(&live.window, "exited");
    assert_eq!(stage.told(&live.window), ["exited with code 6"]);
}

#[test]
fn a_new_live_window_has_started_whoever_made_it() {
    let stage = Stage::new();
    stage.witness();
    let window = stage.foreign_window("mine", "exec sleep 1000");
    let started = stage.event(&window, "started");
    assert_eq!(
        (&started["run_id"], &started["task"], &started["level"]),
        (&json!(null), &json!("mine"), &json!("info"))
    );
    assert_eq!(started["message"], format!("tmux task {window} (mine) started"));
}

#[test]
fn a_window_that_is_dead_when_it_is_first_seen_has_exited() {
    let stage = Stage::new();
    stage.witness();
    // Made and dead before anybody can look: tmux does both before it answers others.
    let target = format!("={}:", stage.session);
    let window = stage.tmux.run(&[
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
        &format!("={}:gone", stage.session),
        "remain-on-exit",
        "on",
        ";",
        "respawn-window",
        "-k",
        "-t",
        &format!("={}:gone", stage.session),
        "exit 4",
    ]);
    let exited = stage.event(&window, "exited");
    assert_eq!(exited["exit_code"], 4);
}

#[test]
fn the_pane_of_the_launch_counts_in_a_window_with_several() {
    let stage = Stage::new();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; exit 8");
    // Before the pane of the task, so that it is no longer the first.
    stage.tmux.run(&["split-window", "-d", "-b", "-t", &task.pane, "printf 'Proceed? [y/N] '; exec sleep 1000"]);
    stage.witness();
    assert_eq!(stage.entry(&task.window).expect("listed")["pane_id"], json!(task.pane));
    assert_eq!(stage.told(&task.window), ["started"]);
    fs::write(stage.file("go"), "").expect("written");
    stage.event(&task.window, "exited");
    assert_eq!(stage.told(&task.window), ["started", "exited with code 8"]);
}

#[test]
fn a_pane_that_is_killed_in_a_window_with_others_has_disappeared() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    stage.tmux.run(&["split-window", "-d", "-t", &task.pane, "exec sleep 1000"]);
    stage.tmux.run(&["kill-pane", "-t", &task.pane]);
    stage.event(&task.window, "disappeared");
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started", "disappeared from session"]);
}

#[test]
fn without_a_utf8_locale_everything_is_the_same() {
    let stage = Stage::of("Ünïcode", "C");
    let task = stage.run("t", "printf 'grün §\\tend\\n'; printf 'Löschen? [j/N] '; read answer; exit 4");
    assert_eq!(stage.event(&task.window, "input")["prompt"], "Löschen? [j/N]");
    stage.tmux.run(&["send-keys", "-t", &task.pane, "n", "Enter"]);
    let exited = stage.event(&task.window, "exited");
    assert_eq!(exited["exit_code"], 4);
    assert!(exited["recent_output"].to_string().contains("grün §"), "{exited}");
    let entry = stage.entry(&task.window).expect("listed");
    assert_eq!(entry["task_cwd"].as_str(), stage.project.to_str());
}

#[test]
fn project_folders_of_any_name_have_a_session() {
    for (folder, session) in
        [("my.app", "pi-my-app-1"), ("a:b", "pi-a-b-1"), ("Ünïcode", "pi-n-code-1"), ("...x", "pi-x-1")]
    {
        let stage = Stage::of(folder, "C.UTF-8");
        assert_eq!(stage.session, session);
        let task = stage.run("t", "pwd; exit 0");
        let exited = stage.event(&task.window, "exited");
        assert_eq!(exited["session"], session);
        assert_eq!(exited["recent_output"], json!([stage.project.to_str()]));
        assert_eq!(stage.tmux.run(&["list-sessions", "-F", "#{session_name}"]), session);
    }
}

#[test]
fn what_a_user_has_beside_a_task_is_not_touched() {
    let stage = Stage::new();
    let task = stage.run("t", "exit 0");
    stage.event(&task.window, "exited");
    let pid_of = |target: &str| stage.tmux.run(&["display-message", "-p", "-t", target, "#{pane_pid} #{pane_dead}"]);
    let split = ["split-window", "-b", "-d", "-P", "-F", "#{pane_id}", "-t", &task.pane, "exec sleep 1000"];
    let beside = stage.tmux.run(&split).trim().to_owned();
    let window = stage.foreign_window("mine", "exec sleep 1000");
    let before = (pid_of(&beside), pid_of(&window));
    // The task is started again in its own pane, though another one comes first.
    let again = stage.run("t", "exec sleep 1000");
    assert_eq!((&again.window, &again.pane), (&task.window, &task.pane));
    // A window of the name that the user has made is not the task's.
    for args in [&["stop", "mine"][..], &["restart", "mine"], &["input", "mine", "--text", "x"]] {
        let done = stage.task(args);
        assert!(done.code == Some(5) && done.stderr.contains("was not started by agtmux"), "{args:?}: {done:?}");
    }
    let other = stage.run("mine", "exec sleep 1000");
    assert_ne!(other.window, window);
    stage.done(&["stop", "mine"]);
    assert_eq!(stage.event(&other.window, "exited")["signal"], "SIGTERM");
    assert_eq!((pid_of(&beside), pid_of(&window)), before);
    // Where the pane of the task is gone, the one that is left is the user's.
    stage.tmux.run(&["kill-pane", "-t", &again.pane]);
    assert_ne!(stage.run("t", "exit 0").window, task.window);
    assert_eq!(pid_of(&beside), before.0);
}

#[test]
fn a_window_that_somebody_made_stays_when_it_is_dead() {
    let stage = Stage::new();
    stage.witness();
    let go = stage.file("go");
    let window = stage.foreign_window("mine", &format!("until [ -e {} ]; do sleep 0.05; done; exit 4", go.display()));
    stage.event(&window, "started");
    let option = ["show-options", "-wv", "-t", &window, "remain-on-exit"];
    wait_for("its option", SOON, || Some(()).filter(|()| stage.tmux.run(&option) == "on"));
    fs::write(&go, "").expect("written");
    stage.event(&window, "exited");
    assert_eq!(stage.told(&window), ["started", "exited with code 4"]);
    let entry = stage.entry(&window).expect("it stays");
    assert_eq!((&entry["dead"], &entry["run_id"]), (&json!(true), &json!(null)));
}

#[test]
fn a_command_is_the_launched_one_else_the_title_else_what_the_pane_runs() {
    let stage = Stage::new();
    let task = stage.run("t", "printf '\\033]2;a title\\033\\\\'; exec sleep 1000");
    let window = stage.foreign_window("mine", "printf '\\033]2;my title\\033\\\\'; exec sleep 1000");
    let command = |window: &str, expected: &str| {
        wait_for(&format!("{window} runs '{expected}'"), SOON, || {
            let entry = stage.entry(window).unwrap_or_default();
            if entry["current_command"] == expected { Ok(()) } else { Err(entry) }
        });
    };
    command(&window, "my title");
    command(&task.window, "printf '\\033]2;a title\\033\\\\'; exec sleep 1000");
    stage.tmux.run(&["select-pane", "-t", &window, "-T", ""]);
    command(&window, "sleep");
    let entry = stage.entry(&window).expect("listed");
    assert_eq!((&entry["task_cwd"], &entry["pane_state_known"]), (&json!(null), &json!(true)));
}

#[test]
fn a_list_has_these_fields_and_no_others() {
    let stage = Stage::new();
    stage.run("t", "exec sleep 1000");
    let list = stage.list();
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
