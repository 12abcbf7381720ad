//! A task has ended and its window is removed, but agtmux has not seen the exit: no exit file was written, or tmux does
//! not show the exit yet.

use std::io::Read;
use std::process::Stdio;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::task_fixture::{LaunchedTask, TaskFixture};
use agtmux_testkit::{ChildGuard, process, wait_until};
use rustix::process::Signal;

use super::faulty_tmux::{clear_fault, set_fault, start_with_faulty_tmux, wait_for_more_lines};

/// Runs a task and kills its `task-exec`, so that the exit has no record. Only tmux knows the exit, and the faulty tmux
/// hides it from listings.
fn kill_watcher_unseen(fixture: &TaskFixture, name: &str) -> LaunchedTask {
    let task = fixture.run(name, "echo up; exec sleep 1000");
    wait_until("the first output", SOON, || fixture.task_ok(&["logs", name]).text() == "up\n");
    set_fault(fixture, "undead", "");
    let pane_value = |format: &str| fixture.tmux.run(&["display-message", "-p", "-t", &task.pane, format]);
    let watcher: u32 = pane_value("#{pane_pid}").trim().parse().expect("a process");
    assert!(process::signal(watcher, Signal::KILL));
    wait_until("tmux to record the exit", SOON, || pane_value("#{pane_dead} #{pane_dead_signal}").trim() == "1 9");
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
    task
}

#[test]
fn an_exit_known_only_to_tmux_is_reported_before_its_window_closes() {
    let fixture = start_with_faulty_tmux();
    fixture.run("stays", "exec sleep 1000");
    let died = "exited with signal SIGKILL";
    let pruned = kill_watcher_unseen(&fixture, "pruned");
    assert!(clear_fault(&fixture, "undead"));
    fixture.task_ok(&["prune-dead"]);
    assert!(!fixture.windows().contains(&pruned.window));
    assert_eq!(fixture.event_messages(&pruned.window), ["started", died]);
    let again = kill_watcher_unseen(&fixture, "again");
    assert!(clear_fault(&fixture, "undead"));
    fixture.run("again", "exec sleep 1000");
    assert_eq!(fixture.event_messages(&again.window), ["started", died, "started"]);
    let last = kill_watcher_unseen(&fixture, "last");
    assert!(clear_fault(&fixture, "undead"));
    fixture.task_ok(&["kill-all", "--yes"]);
    assert_eq!(fixture.event_messages(&last.window), ["started", died]);
}

#[test]
fn prune_dead_removes_an_exited_task_that_tmux_shows_dead_later() {
    let fixture = start_with_faulty_tmux();
    fixture.run("stays", "exec sleep 1000");
    set_fault(&fixture, "undead", "");
    let task = fixture.run("t", "exit 0");
    fixture.event(&task.window, "exited");
    let mut command = fixture.agtmux();
    command.args(["task", "prune-dead", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut prunes = ChildGuard::start(&mut command);
    wait_for_more_lines(&fixture, "shown", 2);
    assert!(clear_fault(&fixture, "undead"));
    let mut output = String::new();
    prunes.stdout.take().expect("a pipe").read_to_string(&mut output).expect("text");
    assert_eq!(prunes.wait().expect("prune-dead ended").code(), Some(0));
    let pruned: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((&pruned["tasks"][0]["task"], &pruned["tasks"][0]["exit_code"]), (&"t".into(), &0.into()), "{output}");
    assert!(!fixture.windows().contains(&task.window));
}

#[test]
fn a_session_that_tmux_failed_to_list_is_reused() {
    let fixture = start_with_faulty_tmux();
    let first = fixture.run("first", "exit 0");
    fixture.event(&first.window, "exited");
    set_fault(&fixture, "lost", "");
    let second = fixture.run("second", "exit 3");
    fixture.event(&second.window, "exited");
    assert!(fixture.windows().contains(&second.window), "the second task is in the same session");
    assert_ne!(first.window, second.window);
}
