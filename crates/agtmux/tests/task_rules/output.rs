//! What a task has written, and those who read it.

use std::fs;

use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::agtmux::{SOON, configure, script, start, stop};
use crate::stage::{Launched, Stage};

/// The process that reads the output of a task.
#[track_caller]
fn reader_of(task: &Launched) -> u32 {
    let spec = format!("{}.run", task.run);
    let is_reader = |pid: &u32| {
        let words = process::argv(*pid);
        words.get(1).is_some_and(|word| word == b"task-log") && words.iter().any(|word| word.ends_with(spec.as_bytes()))
    };
    wait_for("the reader of its output", SOON, || process::all().into_iter().find(is_reader))
}

#[test]
fn an_end_is_told_when_all_that_was_written_is_read() {
    let stage = Stage::new();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; seq 1 2000; printf '\\alast'; exit 3");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::STOP), "it lives");
    wait_until("it is stopped", SOON, || process::is_stopped(reader));
    fs::write(stage.file("go"), "").expect("written");
    let record = stage.world.state_dir().join(format!("tasks/{}.exit", task.run));
    wait_until("its end is written down", SOON, || record.exists());
    // However long that takes, and nobody else waits for it.
    stage.witness();
    assert_eq!(stage.told(&task.window), ["started"]);
    assert!(process::signal(reader, Signal::CONT), "it lives");
    let exited = stage.event(&task.window, "exited");
    assert_eq!((&exited["exit_code"], &exited["recent_output"]), (&json!(3), &json!(["1999", "2000", "last"])));
    let rang = "sent a terminal notification";
    assert_eq!(stage.told(&task.window), ["started", rang, &format!("{rang}, then exited with code 3")]);
    assert_eq!(stage.done(&["logs", "t"]).text().lines().count(), 2001);
}

#[test]
fn a_reader_that_was_killed_is_not_waited_for() {
    let stage = Stage::new();
    let task = stage.run("t", "echo up; until [ -e go ]; do sleep 0.05; done; exit 5");
    wait_until("what it wrote", SOON, || stage.done(&["logs", "t"]).text() == "up\n");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::KILL), "it lives");
    wait_until("it is gone", SOON, || !process::is_alive(reader));
    fs::write(stage.file("go"), "").expect("written");
    let exited = stage.event(&task.window, "exited");
    assert_eq!((&exited["exit_code"], &exited["recent_output"]), (&json!(5), &json!(["up"])));
}

#[test]
fn a_slot_is_used_again_only_when_the_end_in_it_was_told_in_full() {
    let stage = Stage::new();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; echo bye; printf '\\a'; exit 3");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::STOP), "it lives");
    wait_until("it is stopped", SOON, || process::is_stopped(reader));
    fs::write(stage.file("go"), "").expect("written");
    let record = stage.world.state_dir().join(format!("tasks/{}.exit", task.run));
    wait_until("its end is written down", SOON, || record.exists());
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| stage.run("t", "exec sleep 1000"));
        // Nobody else waits for it.
        assert_eq!(stage.list()["exists"], true);
        assert!(process::signal(reader, Signal::CONT), "it lives");
        again.join().expect("it is started")
    });
    assert_eq!(again.window, task.window);
    let rang = "sent a terminal notification";
    let both = format!("{rang}, then exited with code 3");
    assert_eq!(stage.told(&task.window), ["started", rang, &both, "started"]);
    let events = stage.events();
    let exited = events.iter().find(|event| event["run_id"] == task.run && event["type"] == "exited");
    assert_eq!(exited.expect("told")["recent_output"], json!(["bye"]));
}

#[test]
fn what_prints_and_pauses_is_not_looked_at() {
    let stage = Stage::new();
    stop(&stage.world);
    let looks = stage.world.home().join("looks");
    let note = format!("case \"$*\" in *cursor_y*pane_width*) echo look >>{} ;; esac", looks.display());
    let tmux = script(&stage.world, "noting-tmux", &format!("{note}\nexec tmux \"$@\""));
    configure(&stage.world, &format!("[tmux]\nprogram = \"{}\"\n", tmux.display()));
    start(&stage.world);
    let looked = || fs::read_to_string(&looks).unwrap_or_default().lines().count();
    let print = "n=0; while [ $n -lt 12 ]; do n=$((n+1)); printf \"\\r$n of 12 files\"; sleep 0.25; done";
    stage.run("t", &format!("{print}; exec sleep 1000"));
    wait_until("all of it", SOON, || stage.done(&["logs", "t"]).text() == "12 of 12 files\n");
    stage.run("lines", "for n in 1 2 3; do echo line $n; sleep 1.1; done; exec sleep 1000");
    wait_until("all lines", SOON, || stage.done(&["logs", "lines"]).text() == "line 1\nline 2\nline 3\n");
    assert_eq!(looked(), 0, "it asks for nothing");
    // What may be a prompt is looked at, and more than once.
    stage.witness();
    assert!(looked() >= 2, "{} looks", looked());
}
