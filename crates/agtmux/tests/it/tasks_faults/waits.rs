//! Waiting for tasks that are removed, replaced, invisible or do not end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{ChildGuard, process, wait_until};
use rustix::process::Signal;

use super::faulty_tmux::{clear_fault, set_fault, start_with_faulty_tmux, wait_for_more_lines};

/// Starts `task wait` and returns when it has listed the task and waits for the end.
fn start_wait(fixture: &TaskFixture, task: &str) -> ChildGuard {
    let mut command = fixture.agtmux();
    command.args(["task", "wait", task]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiter = ChildGuard::start(&mut command);
    wait_for_interrupt_handler(waiter.id());
    waiter
}

/// Waits until a command handles SIGINT. The command installs its handler when it knows its task and waits for events.
#[track_caller]
fn wait_for_interrupt_handler(pid: u32) {
    wait_until("the SIGINT handler", SOON, || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default().trim();
        u64::from_str_radix(caught, 16).is_ok_and(|caught| caught & 0b10 != 0)
    });
}

/// Waits for the end of the command. Returns its exit code and output.
#[track_caller]
fn finish(mut waiter: ChildGuard) -> (Option<i32>, String) {
    wait_until("the end of the wait", SOON, || waiter.try_wait().is_ok_and(|status| status.is_some()));
    let mut output = String::new();
    waiter.stdout.take().expect("a pipe").read_to_string(&mut output).expect("text");
    waiter.stderr.take().expect("a pipe").read_to_string(&mut output).expect("text");
    (waiter.wait().expect("the command ended").code(), output)
}

#[test]
fn wait_reports_a_task_that_disappears() {
    let fixture = start_with_faulty_tmux();
    let task = fixture.run("t", "exec sleep 1000");
    let waiting_command = start_wait(&fixture, "t");
    fixture.tmux.run(&["kill-window", "-t", &task.window]);
    let (code, output) = finish(waiting_command);
    assert!(code == Some(1) && output.contains("(t) disappeared from session"), "{code:?} {output}");
    let done = fixture.task(&["wait", "t"]);
    let words = format!("there is no task 't' in session '{}'", fixture.session);
    assert!(done.code == Some(1) && done.stderr.contains(&words) && done.stderr.contains("try:"), "{done:?}");
}

#[test]
fn wait_ends_when_the_task_is_replaced_or_removed() {
    let fixture = start_with_faulty_tmux();
    fixture.run("stays", "exec sleep 1000");
    for (n, end_it) in
        [&["run", "--replace", "t", "--", "exec sleep 1000"][..], &["restart", "t"], &["kill-all", "--yes"]]
            .into_iter()
            .enumerate()
    {
        if n == 0 {
            fixture.run("t", "exec sleep 1000");
        }
        let waiting_command = start_wait(&fixture, "t");
        fixture.task_ok(end_it);
        let (code, output) = finish(waiting_command);
        let words =
            ["(t) exited with signal SIGHUP", "'t' was removed or restarted before it ended"][usize::from(n == 2)];
        assert!(code == Some(1) && output.contains(words), "{end_it:?}: {code:?} {output}");
    }
}

#[test]
fn interrupting_run_wait_leaves_the_task_running() {
    let fixture = TaskFixture::new();
    for json in [false, true] {
        let task = format!("t-{json}");
        let mut command = fixture.agtmux();
        command.args(["task", "run", "--wait", "1h"]).args(json.then_some("--json"));
        command.args([&task, "--", "exec sleep 1000"]).stdin(Stdio::null());
        let mut waiting_command = ChildGuard::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let pid = waiting_command.id();
        if json {
            // With --json, the command prints nothing before its end, so wait until it handles SIGINT.
            wait_until("the start of the task", SOON, || {
                fixture.windows().len() == 2 && fixture.list().to_string().contains(&task)
            });
            wait_for_interrupt_handler(pid);
        } else {
            let mut lines = BufReader::new(waiting_command.stdout.take().expect("a pipe")).lines();
            let first: Vec<String> = lines.by_ref().take(4).map(|line| line.expect("text")).collect();
            assert!(first[3].starts_with("cwd="), "{first:?}");
        }
        assert!(process::signal(pid, Signal::INT));
        wait_until("the end of the wait", SOON, || waiting_command.try_wait().is_ok_and(|status| status.is_some()));
        let mut output = String::new();
        waiting_command.stderr.take().expect("a pipe").read_to_string(&mut output).expect("text");
        assert_eq!(waiting_command.wait().expect("the command ended").code(), Some(130), "{output}");
        for words in [
            format!("stopped waiting; task '{task}' keeps running"),
            format!("try: agtmux task logs {task} -f --session {}", fixture.session),
            format!("try: agtmux task wait {task} --session {}", fixture.session),
        ] {
            assert!(output.contains(&words), "{words}: {output}");
        }
        let list = fixture.list();
        let entry = list["tasks"].as_array().and_then(|all| all.iter().find(|entry| entry["window_name"] == task));
        assert_eq!(entry.expect("listed")["dead"], false, "{list}");
    }
}

#[test]
fn a_pane_with_an_unknown_state_reports_no_input() {
    let fixture = start_with_faulty_tmux();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; printf 'Proceed? [y/N] '; read answer");
    set_fault(&fixture, "blind", "");
    fs::write(fixture.file("go"), "").expect("written");
    let log = fixture.world.state_dir().join(format!("tasks/logs/{}.log", task.run));
    wait_until("the prompt", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("[y/N]")));
    // The daemon tries again several times.
    wait_for_more_lines(&fixture, "refused", 3);
    assert_eq!(fixture.event_messages(&task.window), ["started"]);
    assert!(clear_fault(&fixture, "blind"));
    assert_eq!(fixture.event(&task.window, "input")["prompt"], "Proceed? [y/N]");
    assert_eq!(fixture.event_messages(&task.window), ["started", "is waiting for input: Proceed? [y/N]"]);
}

#[test]
fn stop_kills_a_task_that_ignores_sigterm() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "trap '' TERM HUP INT; echo up; while :; do sleep 1; done");
    wait_until("the traps to be set", SOON, || fixture.task_ok(&["logs", "t"]).text() == "up\n");
    assert_eq!(fixture.task_ok(&["stop", "t"]).text().trim(), format!("stopped {} t (SIGKILL)", task.window));
    assert_eq!(fixture.event(&task.window, "exited")["signal"], "SIGKILL");
}

#[test]
fn stop_reports_a_task_that_survives_sigkill() {
    let fixture = start_with_faulty_tmux();
    let task = fixture.run("t", "exec sleep 1000");
    set_fault(&fixture, "undead", "");
    let done = fixture.task(&["stop", "t"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    for words in ["task 't' still runs after SIGTERM and SIGKILL", "try: agtmux task stop t --window"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    // The event reports the signal that really ended the task.
    fixture.event(&task.window, "exited");
    fixture.task_ok(&["stop", "t", "--window"]);
    assert_eq!(fixture.windows(), Vec::<String>::new());
    assert_eq!(fixture.event_messages(&task.window), ["started", "exited with signal SIGTERM"]);
}

#[test]
fn the_exit_code_is_known_without_tmux() {
    let fixture = start_with_faulty_tmux();
    set_fault(&fixture, "mute", "");
    let (good, bad) = (fixture.run("good", "exit 0"), fixture.run("bad", "exit 4"));
    let listed_end = |window: &str| {
        let entry = fixture.entry(window).unwrap_or_default();
        (entry["dead"].as_bool() == Some(true), entry["exit_code"].as_i64())
    };
    for (task, name, code) in [(&good, "good", 0), (&bad, "bad", 4)] {
        // `task wait` must report the code even if tmux already shows the pane dead without one.
        let done = fixture.task(&["wait", name]);
        assert_eq!(done.code, Some(i32::from(code != 0)), "{done:?}");
        assert!(done.text().contains(&format!("exited with code {code}")), "{done:?}");
        wait_until(&format!("the end of {name} in the list"), SOON, || listed_end(&task.window) == (true, Some(code)));
        let done = fixture.task(&["wait", name]);
        assert!(done.text().contains(&format!("exited with code {code}")), "{done:?}");
    }
    let pruned = fixture.task_ok(&["prune-dead", "--json"]).json();
    let codes: Vec<_> =
        pruned["tasks"].as_array().expect("a list").iter().map(|task| task["exit_code"].clone()).collect();
    assert_eq!(codes, [0, 4]);
}

#[test]
fn wait_reports_the_exit_of_a_renamed_window() {
    let fixture = start_with_faulty_tmux();
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; printf 'Go on? [y/N] '; read answer; exit 0");
    let waiting_command = start_wait(&fixture, "t");
    fixture.tmux.run(&["rename-window", "-t", &task.window, "renamed"]);
    // The prompt causes a listing, which shows the new name.
    fs::write(fixture.file("go"), "").expect("written");
    assert_eq!(fixture.event(&task.window, "input")["task"], "renamed");
    fixture.tmux.run(&["send-keys", "-t", &task.pane, "y", "Enter"]);
    let (code, output) = finish(waiting_command);
    assert!(code == Some(0) && output.contains("(renamed) exited with code 0"), "{code:?} {output}");
}

#[test]
fn run_wait_shows_only_the_output_of_its_own_run() {
    let fixture = TaskFixture::new();
    let mut command = fixture.agtmux();
    command.args(["task", "run", "--wait", "1h", "t", "--", "echo mine; exec sleep 1000"]).stdin(Stdio::null());
    let mut waiting_command = ChildGuard::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(waiting_command.stdout.take().expect("a pipe")).lines();
    let first: Vec<String> = lines.by_ref().take(4).map(|line| line.expect("text")).collect();
    assert!(first[3].starts_with("cwd="), "{first:?}");
    // Stop the command, so that it asks for the output only after the other run has written some.
    assert!(process::signal(waiting_command.id(), Signal::STOP));
    fixture.run("t", "echo theirs; exec sleep 1000");
    wait_until("the output of the other run", SOON, || fixture.task_ok(&["logs", "t"]).text() == "theirs\n");
    assert!(process::signal(waiting_command.id(), Signal::CONT));
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(rest, ["signal=SIGHUP"]);
    assert_eq!(waiting_command.wait().expect("the command ended").code(), Some(129));
}
