//! Waiting for tasks that go in other ways than by ending, and tasks that cannot be seen or do not end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use agtmux_testkit::{ChildGuard, process, wait_until};
use rustix::process::Signal;

use crate::agtmux::SOON;
use crate::faulty_tmux::{clear_fault, count_lines, set_fault, start_with_faulty_tmux as faulty, wait_for_more_lines};
use crate::stage::Stage;

/// `task wait`, which has seen the task when this returns.
fn start_wait(stage: &Stage, task: &str) -> ChildGuard {
    let before = count_lines(stage, "shown");
    let mut command = stage.agtmux();
    command.args(["task", "wait", task]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiter = ChildGuard::start(&mut command);
    wait_until("it has looked", SOON, || count_lines(stage, "shown") > before);
    waiter
}

/// How it ended, and what it said.
#[track_caller]
fn finish(mut waiter: ChildGuard) -> (Option<i32>, String) {
    wait_until("the end of the wait", SOON, || waiter.try_wait().is_ok_and(|status| status.is_some()));
    let mut said = String::new();
    waiter.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    waiter.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    (waiter.wait().expect("it has ended").code(), said)
}

#[test]
fn whoever_waits_for_a_task_that_vanishes_is_told_so() {
    let stage = faulty();
    let task = stage.run("t", "exec sleep 1000");
    let waits = start_wait(&stage, "t");
    stage.tmux.run(&["kill-window", "-t", &task.window]);
    let (code, said) = finish(waits);
    assert!(code == Some(1) && said.contains("(t) disappeared from session"), "{code:?} {said}");
    let done = stage.task(&["wait", "t"]);
    let words = format!("there is no task 't' in '{}'", stage.session);
    assert!(done.code == Some(1) && done.stderr.contains(&words) && done.stderr.contains("try:"), "{done:?}");
}

#[test]
fn whoever_waits_for_a_task_that_we_take_away_does_not_wait_for_ever() {
    let stage = faulty();
    stage.run("stays", "exec sleep 1000");
    for (n, end_it) in
        [&["run", "t", "--", "exec sleep 1000"][..], &["restart", "t"], &["kill-all", "--yes"]].into_iter().enumerate()
    {
        if n == 0 {
            stage.run("t", "exec sleep 1000");
        }
        let waits = start_wait(&stage, "t");
        stage.done(end_it);
        let (code, said) = finish(waits);
        assert!(
            code == Some(1) && said.contains("'t' was taken away, or started again"),
            "{end_it:?}: {code:?} {said}"
        );
    }
}

#[test]
fn a_task_that_is_interrupted_in_the_waiting_is_left_running() {
    let stage = Stage::new();
    for json in [false, true] {
        let task = format!("t-{json}");
        let mut command = stage.agtmux();
        command.args(["task", "run", "--wait", "1h"]).args(json.then_some("--json"));
        command.args([&task, "--", "exec sleep 1000"]).stdin(Stdio::null());
        let mut waits = ChildGuard::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let pid = waits.id();
        if json {
            // It says nothing before its end, so it is interrupted until it listens.
            wait_until("its start", SOON, || stage.windows().len() == 2 && stage.list().to_string().contains(&task));
            wait_until("it listens", SOON, || {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default().trim();
                u64::from_str_radix(caught, 16).is_ok_and(|caught| caught & 0b10 != 0)
            });
        } else {
            let mut lines = BufReader::new(waits.stdout.take().expect("a pipe")).lines();
            let first: Vec<String> = lines.by_ref().take(4).map(|line| line.expect("text")).collect();
            assert!(first[3].starts_with("cwd="), "{first:?}");
        }
        assert!(process::signal(pid, Signal::INT));
        wait_until("the end of the wait", SOON, || waits.try_wait().is_ok_and(|status| status.is_some()));
        let mut said = String::new();
        waits.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(waits.wait().expect("it has ended").code(), Some(130), "{said}");
        for words in [
            format!("'{task}' was not waited for any longer, and is left running"),
            format!("try: agtmux task logs {task} -f --session {}", stage.session),
            format!("try: agtmux task wait {task} --session {}", stage.session),
        ] {
            assert!(said.contains(&words), "{words}: {said}");
        }
        let list = stage.list();
        let entry = list["tasks"].as_array().and_then(|all| all.iter().find(|entry| entry["window_name"] == task));
        assert_eq!(entry.expect("listed")["dead"], false, "{list}");
    }
}

#[test]
fn a_pane_whose_state_is_unknown_does_not_ask() {
    let stage = faulty();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; printf 'Proceed? [y/N] '; read answer");
    set_fault(&stage, "blind", "");
    fs::write(stage.file("go"), "").expect("written");
    let log = stage.world.state_dir().join(format!("tasks/logs/{}.log", task.run));
    wait_until("the prompt", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("[y/N]")));
    // It is looked for again and again.
    wait_for_more_lines(&stage, "refused", 3);
    assert_eq!(stage.told(&task.window), ["started"]);
    assert!(clear_fault(&stage, "blind"));
    assert_eq!(stage.event(&task.window, "input")["prompt"], "Proceed? [y/N]");
    assert_eq!(stage.told(&task.window), ["started", "is waiting for input: Proceed? [y/N]"]);
}

#[test]
fn a_task_that_does_not_want_to_end_is_made_to() {
    let stage = Stage::new();
    let task = stage.run("t", "trap '' TERM HUP INT; echo up; while :; do sleep 1; done");
    wait_until("it listens to nobody", SOON, || stage.done(&["logs", "t"]).text() == "up\n");
    assert_eq!(stage.done(&["stop", "t"]).text().trim(), format!("stopped {} t (SIGKILL)", task.window));
    assert_eq!(stage.event(&task.window, "exited")["signal"], "SIGKILL");
}

#[test]
fn a_task_that_still_runs_after_all_is_said_to_and_what_to_do_then() {
    let stage = faulty();
    let task = stage.run("t", "exec sleep 1000");
    set_fault(&stage, "undead", "");
    let done = stage.task(&["stop", "t"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    for words in ["'t' still runs, though it was sent SIGTERM and then SIGKILL", "try: agtmux task stop t --window"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    // What is told of it is what happened to it.
    stage.event(&task.window, "exited");
    stage.done(&["stop", "t", "--window"]);
    assert_eq!(stage.windows(), Vec::<String>::new());
    assert_eq!(stage.told(&task.window), ["started", "exited with signal SIGTERM"]);
}

#[test]
fn how_a_task_ended_is_known_also_where_tmux_does_not_know_it() {
    let stage = faulty();
    set_fault(&stage, "mute", "");
    let (good, bad) = (stage.run("good", "exit 0"), stage.run("bad", "exit 4"));
    let shown = |window: &str| {
        let entry = stage.entry(window).unwrap_or_default();
        (entry["dead"].as_bool() == Some(true), entry["exit_code"].as_i64())
    };
    for (task, name, code) in [(&good, "good", 0), (&bad, "bad", 4)] {
        // As soon as it is dead or sooner: nobody takes it for an end that nobody can explain.
        let done = stage.task(&["wait", name]);
        assert_eq!(done.code, Some(i32::from(code != 0)), "{done:?}");
        assert!(done.text().contains(&format!("exited with code {code}")), "{done:?}");
        wait_until(&format!("the end of {name} in the list"), SOON, || shown(&task.window) == (true, Some(code)));
        let done = stage.task(&["wait", name]);
        assert!(done.text().contains(&format!("exited with code {code}")), "{done:?}");
    }
    let pruned = stage.done(&["prune-dead", "--json"]).json();
    let codes: Vec<_> =
        pruned["tasks"].as_array().expect("a list").iter().map(|task| task["exit_code"].clone()).collect();
    assert_eq!(codes, [0, 4]);
}

#[test]
fn whoever_waits_for_a_task_hears_of_its_end_though_its_window_was_renamed() {
    let stage = faulty();
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; printf 'Go on? [y/N] '; read answer; exit 0");
    let waits = start_wait(&stage, "t");
    stage.tmux.run(&["rename-window", "-t", &task.window, "renamed"]);
    // It is looked at, so its new name is known.
    fs::write(stage.file("go"), "").expect("written");
    assert_eq!(stage.event(&task.window, "input")["task"], "renamed");
    stage.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    let (code, said) = finish(waits);
    assert!(code == Some(0) && said.contains("(renamed) exited with code 0"), "{code:?} {said}");
}

#[test]
fn what_another_run_writes_in_the_window_is_not_shown_as_that_of_the_one_that_was_waited_for() {
    let stage = Stage::new();
    let mut command = stage.agtmux();
    command.args(["task", "run", "--wait", "1h", "t", "--", "echo mine; exec sleep 1000"]).stdin(Stdio::null());
    let mut waits = ChildGuard::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(waits.stdout.take().expect("a pipe")).lines();
    let first: Vec<String> = lines.by_ref().take(4).map(|line| line.expect("text")).collect();
    assert!(first[3].starts_with("cwd="), "{first:?}");
    // It comes to ask for the output only when there is some of the other one.
    assert!(process::signal(waits.id(), Signal::STOP));
    stage.run("t", "echo theirs; exec sleep 1000");
    wait_until("what the other one says", SOON, || stage.done(&["logs", "t"]).text() == "theirs\n");
    assert!(process::signal(waits.id(), Signal::CONT));
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(rest, Vec::<String>::new());
    assert_eq!(waits.wait().expect("it has ended").code(), Some(1));
}
