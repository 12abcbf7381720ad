//! The user's program for each event, when it does not do as it should.

use std::fs;
use std::path::Path;

use agtmux_testkit::{process, wait_for, wait_until};
use serde_json::Value;

use crate::agtmux::{SOON, script, start, stop};
use crate::faulty_tmux::start_with_settings;
use crate::stage::Stage;

/// What the program was told, by kind and task.
fn received_events(seen: &Path) -> Vec<String> {
    let text = fs::read_to_string(seen).unwrap_or_default();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.map(|event| format!("{} {}", event["task"], event["type"]).replace('"', "")).collect()
}

/// A program that notes what it is told and then does this.
fn write_event_program(stage: &Stage, then: &str) -> String {
    let home = stage.world.home();
    let body = format!("cd {}; cat >now.$$; cat now.$$ >>seen\n{then}", home.display());
    script(&stage.world, "program", &body).display().to_string()
}

fn start_with_program(then: &str, settings: &str) -> Stage {
    let stage = Stage::new();
    let program = write_event_program(&stage, then);
    stop(&stage.world);
    crate::agtmux::configure(&stage.world, &format!("[tasks]\non_event = \"{program}\"\n{settings}"));
    start(&stage.world);
    stage
}

#[track_caller]
fn wait_for_child(stage: &Stage) -> u32 {
    let file = stage.world.home().join("child");
    wait_for("the child of the program", SOON, || fs::read_to_string(&file).ok()?.trim().parse().ok())
}

/// Hangs at the first start, with a child of its own, and says so.
const HANGING_PROGRAM: &str = r#"
case "$(cat now.$$)" in
*'"type":"started"'*) [ -e child ] || { sleep 1000 & echo $! >child.draft; mv child.draft child; wait; } ;;
esac
"#;

#[test]
fn a_program_that_hangs_is_ended_with_what_it_started_and_holds_up_nobody() {
    let stage = start_with_program(HANGING_PROGRAM, "on_event_timeout = \"1500ms\"\n");
    let (seen, home) = (stage.world.home().join("seen"), stage.world.home());
    let task = stage.run("t", "until [ -e go ]; do sleep 0.05; done; exit 3");
    let child = wait_for_child(&stage);
    assert!(process::is_alive(child));
    // Whatever else there is goes on meanwhile.
    fs::write(stage.file("go"), "").expect("written");
    stage.event(&task.window, "exited");
    wait_until("the next event", SOON, || received_events(&seen) == ["t started", "t exited"]);
    assert!(!process::is_alive(child), "its child went with it");
    let log = fs::read_dir(stage.world.state_dir()).expect("there").flatten();
    let logs: String = log.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
    let logs =
        logs + &String::from_utf8_lossy(&stage.world.agtmux().args(["daemon", "logs"]).output().expect("runs").stdout);
    assert!(logs.contains("it did not end within 1.5 s"), "{logs}");
    assert!(home.join("child").exists());
}

#[test]
fn a_program_that_hangs_ends_with_the_daemon_and_the_next_one_goes_on_after_it() {
    let stage = start_with_program(HANGING_PROGRAM, "on_event_timeout = \"1h\"\n");
    let seen = stage.world.home().join("seen");
    let task = stage.run("t", "exit 3");
    let child = wait_for_child(&stage);
    stage.event(&task.window, "exited");
    assert_eq!(received_events(&seen), ["t started"], "one after the other");
    stop(&stage.world);
    wait_until("its child is gone", SOON, || !process::is_alive(child));
    start(&stage.world);
    wait_until("what it was not told", SOON, || received_events(&seen) == ["t started", "t exited"]);
}

#[test]
fn a_program_that_fails_is_told_of_the_next_event_all_the_same() {
    let stage = start_with_program("kill -9 $$", "");
    let seen = stage.world.home().join("seen");
    let task = stage.run("t", "exit 3");
    stage.event(&task.window, "exited");
    wait_until("both events", SOON, || received_events(&seen) == ["t started", "t exited"]);
}

#[test]
fn a_program_that_is_not_there_or_does_not_listen_holds_up_nobody() {
    for program in ["/nowhere/program", "/", "false", "sleep 0"] {
        let stage = start_with_settings(&format!("[tasks]\non_event = \"{program}\"\n"));
        let task = stage.run("t", "exit 3");
        assert_eq!(stage.event(&task.window, "exited")["exit_code"], 3, "{program}");
        let mark = stage.world.state_dir().join("on_event.seq");
        let last = stage.events().last().and_then(|event| event["seq"].as_u64()).expect("events");
        wait_until(&format!("{program} had its turns"), SOON, || {
            fs::read_to_string(&mark).is_ok_and(|text| text.trim().parse() == Ok(last))
        });
    }
}
