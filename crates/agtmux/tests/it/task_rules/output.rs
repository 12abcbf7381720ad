//! The output of tasks and the processes that read it.

use std::fs;

use agtmux_testkit::agtmux::{SOON, configure, script, start, stop};
use agtmux_testkit::task_fixture::{LaunchedTask, TaskFixture};
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::json;

/// The `task-log` process of a task.
#[track_caller]
fn reader_of(task: &LaunchedTask) -> u32 {
    let spec = format!("{}.run", task.run);
    let is_reader = |pid: &u32| {
        let words = process::argv(*pid);
        words.get(1).is_some_and(|word| word == b"task-log") && words.iter().any(|word| word.ends_with(spec.as_bytes()))
    };
    wait_for("the reader of the task", SOON, || process::all().into_iter().find(is_reader))
}

#[test]
fn an_exit_is_reported_after_all_output_is_read() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; seq 1 2000; printf '\\alast'; exit 3");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::STOP), "the reader is alive");
    wait_until("the reader to stop", SOON, || process::is_stopped(reader));
    fs::write(fixture.file("go"), "").expect("written");
    let record = fixture.world.state_dir().join(format!("tasks/{}.exit", task.run));
    wait_until("the exit record", SOON, || record.exists());
    // Other tasks are reported while this reader is stopped.
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
    assert!(process::signal(reader, Signal::CONT), "the reader is alive");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!((&exited["exit_code"], &exited["recent_output"]), (&json!(3), &json!(["1999", "2000", "last"])));
    let rang = "sent a terminal notification";
    assert_eq!(fixture.event_messages(&task.window), ["started", rang, &format!("{rang}, then exited with code 3")]);
    assert_eq!(fixture.task_ok(&["logs", "t"]).text().lines().count(), 2001);
}

#[test]
fn a_killed_log_reader_does_not_delay_the_exit() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "echo up; until [ -e go ]; do sleep 0.05; done; exit 5");
    wait_until("the first output", SOON, || fixture.task_ok(&["logs", "t"]).text() == "up\n");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::KILL), "the reader is alive");
    wait_until("the death of the reader", SOON, || !process::is_alive(reader));
    fs::write(fixture.file("go"), "").expect("written");
    let exited = fixture.event(&task.window, "exited");
    assert_eq!((&exited["exit_code"], &exited["recent_output"]), (&json!(5), &json!(["up"])));
}

#[test]
fn a_window_is_reused_only_after_the_exit_is_reported_in_full() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; echo bye; printf '\\a'; exit 3");
    let reader = reader_of(&task);
    assert!(process::signal(reader, Signal::STOP), "the reader is alive");
    wait_until("the reader to stop", SOON, || process::is_stopped(reader));
    fs::write(fixture.file("go"), "").expect("written");
    let record = fixture.world.state_dir().join(format!("tasks/{}.exit", task.run));
    wait_until("the exit record", SOON, || record.exists());
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| fixture.run("t", "exec sleep 1000"));
        // Other commands do not wait for the stopped reader.
        assert_eq!(fixture.list()["exists"], true);
        assert!(process::signal(reader, Signal::CONT), "the reader is alive");
        again.join().expect("the task starts")
    });
    assert_eq!(again.window, task.window);
    let rang = "sent a terminal notification";
    let both = format!("{rang}, then exited with code 3");
    assert_eq!(fixture.event_messages(&task.window), ["started", rang, &both, "started"]);
    let events = fixture.events();
    let exited = events.iter().find(|event| event["run_id"] == task.run && event["type"] == "exited");
    assert_eq!(exited.expect("an exit event")["recent_output"], json!(["bye"]));
}

#[test]
fn output_with_pauses_causes_no_screen_capture() {
    let fixture = TaskFixture::new();
    stop(&fixture.world);
    let capture_log = fixture.world.home().join("captures");
    let note = format!("case \"$*\" in *cursor_y*pane_width*) echo capture >>{} ;; esac", capture_log.display());
    let tmux = script(&fixture.world, "counting-tmux", &format!("{note}\nexec tmux \"$@\""));
    configure(&fixture.world, &format!("[tmux]\nprogram = \"{}\"\n", tmux.display()));
    start(&fixture.world);
    let captures = || fs::read_to_string(&capture_log).unwrap_or_default().lines().count();
    let print = "n=0; while [ $n -lt 12 ]; do n=$((n+1)); printf \"\\r$n of 12 files\"; sleep 0.25; done";
    fixture.run("t", &format!("{print}; exec sleep 1000"));
    wait_until("all progress output", SOON, || fixture.task_ok(&["logs", "t"]).text() == "12 of 12 files\n");
    fixture.run("lines", "for n in 1 2 3; do echo line $n; sleep 1.1; done; exec sleep 1000");
    wait_until("all lines", SOON, || fixture.task_ok(&["logs", "lines"]).text() == "line 1\nline 2\nline 3\n");
    assert_eq!(captures(), 0, "the output contains no prompt");
    // A possible prompt is captured more than once.
    fixture.run_marker_task();
    assert!(captures() >= 2, "{} captures", captures());
}
