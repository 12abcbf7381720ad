//! A daemon that is killed while it starts a task.

use std::fs;

use agtmux_testkit::wait_for;

use crate::agtmux::{SOON, run, soak, start};
use crate::faulty_tmux::{clear_fault, set_fault, start_with_faulty_tmux, wait_for_daemon_death};
use crate::stage::{Stage, short};

fn line_count(stage: &Stage, file: &str) -> usize {
    fs::read_to_string(stage.file(file)).unwrap_or_default().lines().count()
}

/// What was told of a task by its name.
fn messages_of_task(stage: &Stage, task: &str) -> Vec<String> {
    stage.events().iter().filter(|event| event["task"] == task).map(short).collect()
}

fn window_of(stage: &Stage, task: &str) -> String {
    let target = format!("={}:{task}", stage.session);
    stage.tmux.run(&["display-message", "-p", "-t", &target, "#{window_id}"]).trim().to_owned()
}

#[test]
fn a_launch_that_the_daemon_did_not_live_to_store_is_told_once_with_its_end() {
    let stage = start_with_faulty_tmux();
    for (task, ends_first) in [("first", true), ("second", false)] {
        let command = match ends_first {
            true => format!("echo ran >>{task}; exit 5"),
            false => format!("echo ran >>{task}; until [ -e go ]; do sleep 0.05; done; exit 5"),
        };
        set_fault(&stage, "kill-after-launch", "");
        let done = stage.task(&["run", task, "--", &command]);
        assert_ne!(done.code, Some(0), "{done:?}");
        let why = format!("whether '{task}' was started is not known");
        let next = format!("try: agtmux task list --session {}", stage.session);
        assert!(done.stderr.contains(&why) && done.stderr.contains(&next), "{}", done.stderr);
        wait_for_daemon_death(&stage);
        if ends_first {
            let target = window_of(&stage, task);
            agtmux_testkit::wait_until("its end", SOON, || {
                stage.tmux.run(&["display-message", "-p", "-t", &target, "#{pane_dead}"]) == "1"
            });
        }
        start(&stage.world);
        let window = window_of(&stage, task);
        stage.event(&window, "started");
        fs::write(stage.file("go"), "").expect("written");
        assert_eq!(stage.event(&window, "exited")["exit_code"], 5);
        stage.witness();
        assert_eq!(stage.told(&window), ["started", "exited with code 5"]);
        assert_eq!(line_count(&stage, task), 1, "it was started once");
    }
}

#[test]
fn a_launch_in_the_place_of_another_that_the_daemon_did_not_live_to_store_ends_only_that() {
    let stage = start_with_faulty_tmux();
    let old = stage.run("t", "exec sleep 1000");
    set_fault(&stage, "kill-after-launch", "");
    assert_ne!(stage.task(&["run", "t", "--", "exit 6"]).code, Some(0));
    wait_for_daemon_death(&stage);
    start(&stage.world);
    stage.event(&old.window, "exited");
    stage.witness();
    assert_eq!(stage.told(&old.window), ["started", "started", "exited with code 6"]);
    let of_old = stage.events().iter().filter(|event| event["run_id"] == old.run.as_str()).count();
    assert_eq!(of_old, 1, "it made room, and nothing is told of that");
}

/// At every call of tmux that a launch takes, before it and after it.
#[test]
fn wherever_the_daemon_is_killed_each_start_is_told_once_or_never_was() {
    let stage = start_with_faulty_tmux();
    stage.witness();
    let most = if soak() { 40 } else { 6 };
    for nth in 1..=most {
        for when in ["kill-before", "kill-after"] {
            let task = format!("{when}-{nth}");
            let _ = fs::remove_file(stage.world.home().join("calls"));
            set_fault(&stage, when, &nth.to_string());
            let done = run(stage.agtmux().args(["task", "run", &task, "--", &format!("echo ran >>{task}; exit 7")]));
            // One that was never come to is for the next round to count.
            let was_killed = !clear_fault(&stage, when);
            if was_killed {
                wait_for_daemon_death(&stage);
                start(&stage.world);
            }
            assert!(was_killed || done.code == Some(0), "{task}: {done:?}");
            stage.witness();
            let seen = (line_count(&stage, &task), messages_of_task(&stage, &task));
            let started = vec!["started".to_owned(), "exited with code 7".to_owned()];
            let never = done.code != Some(0) && seen == (0, Vec::new());
            assert!(never || seen == (1, started), "{task}: {done:?} {seen:?}");
        }
    }
    let of_runs_that_never_were = || {
        let told: Vec<_> = stage.events().iter().map(|event| event["run_id"].clone()).collect();
        let kept = fs::read_dir(stage.world.state_dir().join("tasks/logs")).expect("there").flatten();
        let names = kept.map(|file| file.file_name().to_string_lossy().into_owned());
        let specs = names.filter_map(|name| name.strip_suffix(".spec").map(str::to_owned));
        specs.filter(|run| !told.contains(&run.as_str().into())).collect::<Vec<_>>()
    };
    wait_for("nothing is left of those that never were", SOON, || {
        let left = of_runs_that_never_were();
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
}
