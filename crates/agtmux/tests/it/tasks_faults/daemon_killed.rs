//! The daemon is killed while it starts a task.

use std::fs;

use agtmux_testkit::agtmux::{SOON, run, soak, start};
use agtmux_testkit::task_fixture::{TaskFixture, short_message};
use agtmux_testkit::wait_for;

use super::faulty_tmux::{clear_fault, set_fault, start_with_faulty_tmux, wait_for_daemon_death};

fn line_count(fixture: &TaskFixture, file: &str) -> usize {
    fs::read_to_string(fixture.file(file)).unwrap_or_default().lines().count()
}

/// The messages of the events of a task, by its name.
fn messages_of_task(fixture: &TaskFixture, task: &str) -> Vec<String> {
    fixture.events().iter().filter(|event| event["task"] == task).map(short_message).collect()
}

fn window_of(fixture: &TaskFixture, task: &str) -> String {
    let target = format!("={}:{task}", fixture.session);
    fixture.tmux.run(&["display-message", "-p", "-t", &target, "#{window_id}"]).trim().to_owned()
}

#[test]
fn an_unstored_launch_is_reported_once_with_its_exit() {
    let fixture = start_with_faulty_tmux();
    for (task, ends_first) in [("first", true), ("second", false)] {
        let command = match ends_first {
            true => format!("echo ran >>{task}; exit 5"),
            false => format!("echo ran >>{task}; until [ -e go ]; do sleep 0.05; done; exit 5"),
        };
        set_fault(&fixture, "kill-after-launch", "");
        let done = fixture.task(&["run", task, "--", &command]);
        assert_ne!(done.code, Some(0), "{done:?}");
        let why = format!("'{task}' may have been started");
        let next = format!("try: agtmux task list --session {}", fixture.session);
        assert!(done.stderr.contains(&why) && done.stderr.contains(&next), "{}", done.stderr);
        wait_for_daemon_death(&fixture);
        if ends_first {
            let target = window_of(&fixture, task);
            agtmux_testkit::wait_until("the death of the pane", SOON, || {
                fixture.tmux.run(&["display-message", "-p", "-t", &target, "#{pane_dead}"]) == "1"
            });
        }
        start(&fixture.world);
        let window = window_of(&fixture, task);
        fixture.event(&window, "started");
        fs::write(fixture.file("go"), "").expect("written");
        assert_eq!(fixture.event(&window, "exited")["exit_code"], 5);
        fixture.run_marker_task();
        assert_eq!(fixture.event_messages(&window), ["started", "exited with code 5"]);
        assert_eq!(line_count(&fixture, task), 1, "the task ran once");
    }
}

#[test]
fn an_unstored_launch_that_replaces_a_task_reports_both_exits() {
    let fixture = start_with_faulty_tmux();
    let old = fixture.run("t", "exec sleep 1000");
    set_fault(&fixture, "kill-after-launch", "");
    assert_ne!(fixture.task(&["run", "--replace", "t", "--", "exit 6"]).code, Some(0));
    wait_for_daemon_death(&fixture);
    start(&fixture.world);
    fixture.nth_event(&old.window, "exited", 2);
    fixture.run_marker_task();
    let messages = ["started", "exited with signal SIGHUP", "started", "exited with code 6"];
    assert_eq!(fixture.event_messages(&old.window), messages);
    let of_old = fixture.events().iter().filter(|event| event["run_id"] == old.run.as_str()).count();
    assert_eq!(of_old, 2, "a start and an exit");
}

/// Kills the daemon before and after every tmux call of a launch.
#[test]
fn a_launch_is_reported_once_or_never_wherever_the_daemon_is_killed() {
    let fixture = start_with_faulty_tmux();
    fixture.run_marker_task();
    let max_calls = if soak() { 40 } else { 6 };
    for nth in 1..=max_calls {
        for when in ["kill-before", "kill-after"] {
            let task = format!("{when}-{nth}");
            let _ = fs::remove_file(fixture.world.home().join("calls"));
            set_fault(&fixture, when, &nth.to_string());
            let done = run(fixture.agtmux().args(["task", "run", &task, "--", &format!("echo ran >>{task}; exit 7")]));
            // The launch may need fewer calls than `nth`. In that case the daemon is not killed.
            let was_killed = !clear_fault(&fixture, when);
            if was_killed {
                wait_for_daemon_death(&fixture);
                start(&fixture.world);
            }
            assert!(was_killed || done.code == Some(0), "{task}: {done:?}");
            fixture.run_marker_task();
            let runs_and_messages = (line_count(&fixture, &task), messages_of_task(&fixture, &task));
            let started = vec!["started".to_owned(), "exited with code 7".to_owned()];
            let never = done.code != Some(0) && runs_and_messages == (0, Vec::new());
            assert!(never || runs_and_messages == (1, started), "{task}: {done:?} {runs_and_messages:?}");
        }
    }
    let of_runs_that_never_were = || {
        let reported_runs: Vec<_> = fixture.events().iter().map(|event| event["run_id"].clone()).collect();
        let log_files = fs::read_dir(fixture.world.state_dir().join("tasks/logs")).expect("there").flatten();
        let names = log_files.map(|file| file.file_name().to_string_lossy().into_owned());
        let specs = names.filter_map(|name| name.strip_suffix(".spec").map(str::to_owned));
        specs.filter(|run| !reported_runs.contains(&run.as_str().into())).collect::<Vec<_>>()
    };
    wait_for("no files of runs that never started", SOON, || {
        let left = of_runs_that_never_were();
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}
