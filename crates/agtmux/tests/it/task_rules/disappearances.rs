//! Tasks whose window or session is gone.

use std::fs;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::wait_until;
use serde_json::json;

#[test]
fn a_killed_window_is_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    fixture.run("other", "exec sleep 1000");
    let task = fixture.run("t", "exec sleep 1000");
    fixture.tmux.run(&["kill-window", "-t", &task.window]);
    let gone = fixture.event(&task.window, "disappeared");
    assert_eq!(gone["message"], format!("tmux task {} (t) disappeared from session", task.window));
    assert_eq!((&gone["level"], &gone["run_id"]), (&json!("warning"), &json!(task.run)));
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started", "disappeared from session"]);
}

#[test]
fn a_window_killed_by_the_user_is_reported_as_such() {
    let fixture = TaskFixture::new();
    fixture.run("other", "exec sleep 1000");
    let task = fixture.run("t", "exec sleep 1000");
    fixture.task_ok(&["stop", "t", "--window"]);
    fixture.event(&task.window, "disappeared");
    fixture.run_marker_task();
    assert_eq!(
        fixture.event_messages(&task.window),
        ["started", "disappeared from session after the user manually killed it"]
    );
}

#[test]
fn dead_window_cleanup_is_not_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    let (pruned, closed, live) =
        (fixture.run("a", "exit 0"), fixture.run("b", "exit 1"), fixture.run("c", "exec sleep 1000"));
    fixture.event(&pruned.window, "exited");
    fixture.event(&closed.window, "exited");
    fixture.wait_until_dead(&fixture.session, "a");
    fixture.wait_until_dead(&fixture.session, "b");
    fixture.tmux.run(&["kill-window", "-t", &closed.window]);
    fixture.task_ok(&["prune-dead"]);
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&pruned.window), ["started", "exited with code 0"]);
    assert_eq!(fixture.event_messages(&closed.window), ["started", "exited with code 1"]);
    assert_eq!(fixture.event_messages(&live.window), ["started"]);
    let left = fixture.windows();
    assert!(left.contains(&live.window) && !left.contains(&pruned.window), "{left:?}");
}

#[test]
fn kill_all_is_not_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    // Keep the server running, because a new server would reuse the ids.
    fixture.tmux.new_session("users-own", "exec sleep 1000");
    fixture.task_ok(&["kill-all", "--yes"]);
    assert_eq!(fixture.windows(), Vec::<String>::new());
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
}

#[test]
fn a_reused_window_is_not_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    let first = fixture.run("t", "exec sleep 1000");
    let second = fixture.run("t", "exec sleep 1000");
    assert_eq!((&first.window, first.run != second.run), (&second.window, true));
    fixture.run_marker_task();
    let messages = ["started", "exited with signal SIGHUP", "started"];
    assert_eq!(fixture.event_messages(&first.window), messages);
    let runs: Vec<_> = fixture.events().iter().filter(|e| e["task"] == "t").map(|e| e["run_id"].clone()).collect();
    assert_eq!(runs, [json!(first.run), json!(first.run), json!(second.run)]);
}

#[test]
fn live_tasks_of_a_killed_session_disappear_once() {
    let fixture = TaskFixture::new();
    let (live, dead) = (fixture.run("live", "exec sleep 1000"), fixture.run("dead", "exit 0"));
    fixture.event(&dead.window, "exited");
    // Keep the server running, because a new server would reuse the same ids.
    fixture.tmux.new_session("users-own", "exec sleep 1000");
    fixture.tmux.run(&["kill-session", "-t", &format!("={}", fixture.session)]);
    fixture.event(&live.window, "disappeared");
    assert_eq!(fixture.list()["exists"], false);
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&live.window), ["started", "disappeared from session"]);
    assert_eq!(fixture.event_messages(&dead.window), ["started", "exited with code 0"]);
}

#[test]
fn tasks_of_a_killed_server_disappear_and_reused_ids_are_new_tasks() {
    let fixture = TaskFixture::new();
    let first = fixture.run("t", "exec sleep 1000");
    fixture.tmux.kill_server();
    fixture.event(&first.window, "disappeared");
    let second = fixture.run("t", "exit 2");
    assert_eq!(first.window, second.window, "a new server reuses the window ids");
    fixture.event(&second.window, "exited");
    assert_eq!(
        fixture.event_messages(&first.window),
        ["started", "disappeared from session", "started", "exited with code 2"]
    );
}

#[test]
fn the_same_name_in_another_window_is_another_task() {
    let fixture = TaskFixture::new();
    fixture.run("other", "exec sleep 1000");
    let first = fixture.run("t", "exec sleep 1000");
    fixture.tmux.run(&["kill-window", "-t", &first.window]);
    fixture.event(&first.window, "disappeared");
    let second = fixture.run("t", "exit 3");
    assert_ne!(first.window, second.window);
    fixture.event(&second.window, "exited");
    assert_eq!(fixture.event_messages(&first.window), ["started", "disappeared from session"]);
    assert_eq!(fixture.event_messages(&second.window), ["started", "exited with code 3"]);
}

#[test]
fn tasks_of_an_unreachable_server_are_not_reported_as_disappeared() {
    let fixture = TaskFixture::new();
    let wait = |name: &str, then: &str| format!("until [ -e {name} ]; do sleep 0.05; done; {then}");
    let asks = fixture.run("asks", &wait("ask", "printf 'Go on? [y/N] '; read answer"));
    let ends = fixture.run("ends", &wait("end", "exit 3"));
    let hidden = fixture.tmux.socket().with_extension("hidden");
    fs::rename(fixture.tmux.socket(), &hidden).expect("moved");
    // The daemon tries to capture this pane and fails. The attempt is over when the exit of the other task is reported.
    fs::write(fixture.file("ask"), "").expect("written");
    let status = fixture.world.state_dir().join("tasks").join(format!("{}.out", asks.run));
    wait_until("the output to stop in the middle of a line", SOON, || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        status.split_whitespace().nth(2) == Some("1")
    });
    fs::write(fixture.file("end"), "").expect("written");
    assert_eq!(fixture.event(&ends.window, "exited")["exit_code"], 3);
    assert_eq!(fixture.event_messages(&asks.window), ["started"]);
    fs::rename(&hidden, fixture.tmux.socket()).expect("moved back");
    fixture.event(&asks.window, "input");
    assert_eq!(fixture.event_messages(&asks.window), ["started", "is waiting for input: Go on? [y/N]"]);
}

#[test]
fn the_log_of_an_ended_task_is_deleted_with_its_window() {
    let fixture = TaskFixture::new();
    fixture.run("other", "exec sleep 1000");
    let task = fixture.run("t", "echo hello");
    fixture.event(&task.window, "exited");
    let log = fixture.world.state_dir().join(format!("tasks/logs/{}.log", task.run));
    assert!(log.exists(), "{}", log.display());
    fixture.tmux.run(&["kill-window", "-t", &task.window]);
    wait_until("the deletion of the log", SOON, || !log.exists());
}

#[test]
fn cleanup_touches_its_own_session_only() {
    let fixture = TaskFixture::new();
    let other = fixture.session_name("2");
    let run = |name: &str, command: &str| {
        fixture.task_ok(&["run", "--json", "--session", &other, name, "--", command]).json()
    };
    let (live, dead) = (run("live", "exec sleep 1000"), run("dead", "exit 0"));
    let ours = fixture.run("dead", "exit 0");
    fixture.event(&ours.window, "exited");
    fixture.wait_until_dead(&fixture.session, "dead");
    let of_other = || {
        let listed = fixture.task_ok(&["list", "--json", "--session", &other]).json();
        let tasks = listed["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().map(|task| (task["window_id"].clone(), task["dead"].clone())).collect::<Vec<_>>()
    };
    let expected = [(live["window_id"].clone(), json!(false)), (dead["window_id"].clone(), json!(true))];
    wait_until("the end in the other session", SOON, || of_other() == expected);
    fixture.task_ok(&["prune-dead"]);
    assert_eq!(fixture.windows(), Vec::<String>::new());
    fixture.run("live", "exec sleep 1000");
    fixture.task_ok(&["kill-all", "--yes"]);
    assert_eq!((fixture.list()["exists"].clone(), of_other()), (json!(false), expected.to_vec()));
}

#[test]
fn kill_all_asks_first() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exec sleep 1000");
    let asked = fixture.task(&["kill-all"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("agtmux task kill-all --yes"), "{asked:?}");
    assert_eq!(fixture.windows(), std::slice::from_ref(&task.window));
    // In a terminal kill-all asks and follows the answer.
    let terminal = fixture.world.tmux("terminal");
    let (binary, session) = (env!("CARGO_BIN_EXE_agtmux"), &fixture.session);
    let ask = |answer: &str, code: &str| {
        let socket = fixture.tmux.socket().display();
        let line = format!("TMUX={socket},1,0 AGTMUX_SESSION={session} {binary} task kill-all; echo code $?; exec cat");
        terminal.new_session(answer, &line);
        let pane = format!("={answer}:");
        let shows = |text: &str| terminal.run(&["capture-pane", "-p", "-t", &pane]).contains(text);
        wait_until("the question", SOON, || shows("and the session? [y/N]"));
        terminal.run(&["send-keys", "-t", &pane, answer, "Enter"]);
        wait_until("the end of kill-all", SOON, || shows(code));
    };
    ask("n", "code 1");
    assert_eq!(fixture.windows(), [task.window]);
    ask("y", "code 0");
    assert_eq!(fixture.windows(), Vec::<String>::new());
}
