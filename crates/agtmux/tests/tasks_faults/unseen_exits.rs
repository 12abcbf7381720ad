//! Ends that nobody has written down, or that tmux does not show yet, when windows are taken away.

use std::io::Read;
use std::process::Stdio;

use agtmux_testkit::{ChildGuard, process, wait_until};
use rustix::process::Signal;

use crate::agtmux::SOON;
use crate::faulty_tmux::{clear_fault, set_fault, start_with_faulty_tmux as faulty, wait_for_more_lines};
use crate::stage::{Launched, Stage};

/// A task whose watcher was killed, so that only tmux can tell of its end; and no look of the daemon's has shown that.
fn kill_watcher_unseen(stage: &Stage, name: &str) -> Launched {
    let task = stage.run(name, "echo up; exec sleep 1000");
    wait_until("it is up", SOON, || stage.done(&["logs", name]).text() == "up\n");
    set_fault(stage, "undead", "");
    let shown = |format: &str| stage.tmux.run(&["display-message", "-p", "-t", &task.pane, format]);
    let watcher: u32 = shown("#{pane_pid}").trim().parse().expect("a process");
    assert!(process::signal(watcher, Signal::KILL));
    wait_until("tmux has its end", SOON, || shown("#{pane_dead} #{pane_dead_signal}").trim() == "1 9");
    assert_eq!(stage.told(&task.window), ["started"]);
    task
}

#[test]
fn an_end_that_only_tmux_can_tell_of_is_told_before_its_window_goes() {
    let stage = faulty();
    stage.run("stays", "exec sleep 1000");
    let died = "exited with signal SIGKILL";
    let pruned = kill_watcher_unseen(&stage, "pruned");
    assert!(clear_fault(&stage, "undead"));
    stage.done(&["prune-dead"]);
    assert!(!stage.windows().contains(&pruned.window));
    assert_eq!(stage.told(&pruned.window), ["started", died]);
    let again = kill_watcher_unseen(&stage, "again");
    assert!(clear_fault(&stage, "undead"));
    stage.run("again", "exec sleep 1000");
    assert_eq!(stage.told(&again.window), ["started", died, "started"]);
    let last = kill_watcher_unseen(&stage, "last");
    assert!(clear_fault(&stage, "undead"));
    stage.done(&["kill-all", "--yes"]);
    assert_eq!(stage.told(&last.window), ["started", died]);
}

#[test]
fn what_was_told_to_have_ended_is_pruned_though_tmux_shows_that_a_moment_later() {
    let stage = faulty();
    stage.run("stays", "exec sleep 1000");
    set_fault(&stage, "undead", "");
    let task = stage.run("t", "exit 0");
    stage.event(&task.window, "exited");
    let mut command = stage.agtmux();
    command.args(["task", "prune-dead", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut prunes = ChildGuard::start(&mut command);
    wait_for_more_lines(&stage, "shown", 2);
    assert!(clear_fault(&stage, "undead"));
    let mut said = String::new();
    prunes.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(prunes.wait().expect("it has ended").code(), Some(0));
    let pruned: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&pruned["tasks"][0]["task"], &pruned["tasks"][0]["exit_code"]), (&"t".into(), &0.into()), "{said}");
    assert!(!stage.windows().contains(&task.window));
}

#[test]
fn a_session_that_could_not_be_seen_is_used_when_it_turns_out_to_be_there() {
    let stage = faulty();
    let first = stage.run("first", "exit 0");
    stage.event(&first.window, "exited");
    set_fault(&stage, "lost", "");
    let second = stage.run("second", "exit 3");
    stage.event(&second.window, "exited");
    assert!(stage.windows().contains(&second.window), "beside the first one");
    assert_ne!(first.window, second.window);
}
