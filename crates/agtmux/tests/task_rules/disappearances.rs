//! What is no longer there.

use std::fs;

use agtmux_testkit::wait_until;
use serde_json::json;

use crate::agtmux::SOON;
use crate::stage::Stage;

#[test]
fn a_window_that_is_killed_has_disappeared() {
    let stage = Stage::new();
    stage.run("other", "exec sleep 1000");
    let task = stage.run("t", "exec sleep 1000");
    stage.tmux.run(&["kill-window", "-t", &task.window]);
    let gone = stage.event(&task.window, "disappeared");
    assert_eq!(gone["message"], format!("tmux task {} (t) disappeared from session", task.window));
    assert_eq!((&gone["level"], &gone["run_id"]), (&json!("warning"), &json!(task.run)));
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started", "disappeared from session"]);
}

#[test]
fn what_the_user_killed_is_told_so() {
    let stage = Stage::new();
    stage.run("other", "exec sleep 1000");
    let task = stage.run("t", "exec sleep 1000");
    stage.done(&["stop", "t", "--window"]);
    stage.event(&task.window, "disappeared");
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started", "disappeared from session after the user manually killed it"]);
}

#[test]
fn dead_window_cleanup_is_no_disappearance() {
    let stage = Stage::new();
    let (pruned, closed, live) =
        (stage.run("a", "exit 0"), stage.run("b", "exit 1"), stage.run("c", "exec sleep 1000"));
    stage.event(&pruned.window, "exited");
    stage.event(&closed.window, "exited");
    stage.dead(&stage.session, "a");
    stage.dead(&stage.session, "b");
    stage.tmux.run(&["kill-window", "-t", &closed.window]);
    stage.done(&["prune-dead"]);
    stage.witness();
    assert_eq!(stage.told(&pruned.window), ["started", "exited with code 0"]);
    assert_eq!(stage.told(&closed.window), ["started", "exited with code 1"]);
    assert_eq!(stage.told(&live.window), ["started"]);
    let left = stage.windows();
    assert!(left.contains(&live.window) && !left.contains(&pruned.window), "{left:?}");
}

#[test]
fn kill_all_is_no_disappearance() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    // The server goes on, or the next one would begin with the same ids.
    stage.tmux.new_session("users-own", "exec sleep 1000");
    stage.done(&["kill-all", "--yes"]);
    assert_eq!(stage.windows(), Vec::<String>::new());
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started"]);
}

#[test]
fn a_slot_that_is_used_again_is_no_disappearance() {
    let stage = Stage::new();
    let first = stage.run("t", "exec sleep 1000");
    let second = stage.run("t", "exec sleep 1000");
    assert_eq!((&first.window, first.run != second.run), (&second.window, true));
    stage.witness();
    assert_eq!(stage.told(&first.window), ["started", "started"]);
    let runs: Vec<_> = stage.events().iter().filter(|e| e["task"] == "t").map(|e| e["run_id"].clone()).collect();
    assert_eq!(runs, [json!(first.run), json!(second.run)]);
}

#[test]
fn live_tasks_of_a_session_that_is_gone_disappear_once() {
    let stage = Stage::new();
    let (live, dead) = (stage.run("live", "exec sleep 1000"), stage.run("dead", "exit 0"));
    stage.event(&dead.window, "exited");
    // The server goes on, or it would be another one with the same ids.
    stage.tmux.new_session("users-own", "exec sleep 1000");
    stage.tmux.run(&["kill-session", "-t", &format!("={}", stage.session)]);
    stage.event(&live.window, "disappeared");
    assert_eq!(stage.list()["exists"], false);
    stage.witness();
    assert_eq!(stage.told(&live.window), ["started", "disappeared from session"]);
    assert_eq!(stage.told(&dead.window), ["started", "exited with code 0"]);
}

#[test]
fn tasks_of_a_server_that_was_killed_disappear_and_the_same_ids_are_others() {
    let stage = Stage::new();
    let first = stage.run("t", "exec sleep 1000");
    stage.tmux.kill_server();
    stage.event(&first.window, "disappeared");
    let second = stage.run("t", "exit 2");
    assert_eq!(first.window, second.window, "a new server begins anew");
    stage.event(&second.window, "exited");
    assert_eq!(stage.told(&first.window), ["started", "disappeared from session", "started", "exited with code 2"]);
}

#[test]
fn the_same_name_in_another_window_is_another_task() {
    let stage = Stage::new();
    stage.run("other", "exec sleep 1000");
    let first = stage.run("t", "exec sleep 1000");
    stage.tmux.run(&["kill-window", "-t", &first.window]);
    stage.event(&first.window, "disappeared");
    let second = stage.run("t", "exit 3");
    assert_ne!(first.window, second.window);
    stage.event(&second.window, "exited");
    assert_eq!(stage.told(&first.window), ["started", "disappeared from session"]);
    assert_eq!(stage.told(&second.window), ["started", "exited with code 3"]);
}

#[test]
fn tasks_of_a_server_that_cannot_be_reached_have_not_disappeared() {
    let stage = Stage::new();
    let wait = |name: &str, then: &str| format!("until [ -e {name} ]; do sleep 0.05; done; {then}");
    let asks = stage.run("asks", &wait("ask", "printf 'Go on? [y/N] '; read answer"));
    let ends = stage.run("ends", &wait("end", "exit 3"));
    let hidden = stage.tmux.socket().with_extension("hidden");
    fs::rename(stage.tmux.socket(), &hidden).expect("moved");
    // It is to be looked at, and cannot be; that it was tried is over by the time at which another end is told.
    fs::write(stage.file("ask"), "").expect("written");
    let status = stage.world.state_dir().join("tasks").join(format!("{}.out", asks.run));
    wait_until("it has stopped in the middle of a line", SOON, || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        status.split_whitespace().nth(2) == Some("1")
    });
    fs::write(stage.file("end"), "").expect("written");
    assert_eq!(stage.event(&ends.window, "exited")["exit_code"], 3);
    assert_eq!(stage.told(&asks.window), ["started"]);
    fs::rename(&hidden, stage.tmux.socket()).expect("moved back");
    stage.event(&asks.window, "input");
    assert_eq!(stage.told(&asks.window), ["started", "is waiting for input: Go on? [y/N]"]);
}

#[test]
fn what_an_ended_task_wrote_goes_with_its_window() {
    let stage = Stage::new();
    stage.run("other", "exec sleep 1000");
    let task = stage.run("t", "echo hello");
    stage.event(&task.window, "exited");
    let log = stage.world.state_dir().join(format!("tasks/logs/{}.log", task.run));
    assert!(log.exists(), "{}", log.display());
    stage.tmux.run(&["kill-window", "-t", &task.window]);
    wait_until("its log is gone", SOON, || !log.exists());
}

#[test]
fn cleanup_touches_its_own_session_only() {
    let stage = Stage::new();
    let other = stage.named("2");
    let run =
        |name: &str, command: &str| stage.done(&["run", "--json", "--session", &other, name, "--", command]).json();
    let (live, dead) = (run("live", "exec sleep 1000"), run("dead", "exit 0"));
    let ours = stage.run("dead", "exit 0");
    stage.event(&ours.window, "exited");
    stage.dead(&stage.session, "dead");
    let of_other = || {
        let listed = stage.done(&["list", "--json", "--session", &other]).json();
        let tasks = listed["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().map(|task| (task["window_id"].clone(), task["dead"].clone())).collect::<Vec<_>>()
    };
    let expected = [(live["window_id"].clone(), json!(false)), (dead["window_id"].clone(), json!(true))];
    wait_until("the end in the other session", SOON, || of_other() == expected);
    stage.done(&["prune-dead"]);
    assert_eq!(stage.windows(), Vec::<String>::new());
    stage.run("live", "exec sleep 1000");
    stage.done(&["kill-all", "--yes"]);
    assert_eq!((stage.list()["exists"].clone(), of_other()), (json!(false), expected.to_vec()));
}

#[test]
fn kill_all_asks_first() {
    let stage = Stage::new();
    let task = stage.run("t", "exec sleep 1000");
    let asked = stage.task(&["kill-all"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("agtmux task kill-all --yes"), "{asked:?}");
    assert_eq!(stage.windows(), std::slice::from_ref(&task.window));
    // Where somebody is there to answer, by that answer.
    let terminal = stage.world.tmux("terminal");
    let (binary, session) = (env!("CARGO_BIN_EXE_agtmux"), &stage.session);
    let ask = |answer: &str, code: &str| {
        let socket = stage.tmux.socket().display();
        let line = format!("TMUX={socket},1,0 AGTMUX_SESSION={session} {binary} task kill-all; echo code $?; exec cat");
        terminal.new_session(answer, &line);
        let pane = format!("={answer}:");
        let shows = |text: &str| terminal.run(&["capture-pane", "-p", "-t", &pane]).contains(text);
        wait_until("the question", SOON, || shows("and the session? [y/N]"));
        terminal.run(&["send-keys", "-t", &pane, answer, "Enter"]);
        wait_until("its end", SOON, || shows(code));
    };
    ask("n", "code 1");
    assert_eq!(stage.windows(), [task.window]);
    ask("y", "code 0");
    assert_eq!(stage.windows(), Vec::<String>::new());
}
