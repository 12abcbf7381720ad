//! The user's `on_event` program when it hangs, fails or is missing.

use std::fs;
use std::path::Path;

use agtmux_testkit::agtmux::{SOON, script, start, stop};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{process, wait_for, wait_until};
use serde_json::Value;

use super::faulty_tmux::start_with_settings;

/// The task and type of each event that the program received.
fn received_events(events_file: &Path) -> Vec<String> {
    let text = fs::read_to_string(events_file).unwrap_or_default();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.map(|event| format!("{} {}", event["task"], event["type"]).replace('"', "")).collect()
}

/// Writes a program that saves each event and then runs `then`.
fn write_event_program(fixture: &TaskFixture, then: &str) -> String {
    let home = fixture.world.home();
    let body = format!("cd {}; cat >now.$$; cat now.$$ >>seen\n{then}", home.display());
    script(&fixture.world, "program", &body).display().to_string()
}

fn start_with_program(then: &str, settings: &str) -> TaskFixture {
    let fixture = TaskFixture::new();
    let program = write_event_program(&fixture, then);
    stop(&fixture.world);
    agtmux_testkit::agtmux::configure(&fixture.world, &format!("[tasks]\non_event = \"{program}\"\n{settings}"));
    start(&fixture.world);
    fixture
}

#[track_caller]
fn wait_for_child(fixture: &TaskFixture) -> u32 {
    let file = fixture.world.home().join("child");
    wait_for("the child of the program", SOON, || fs::read_to_string(&file).ok()?.trim().parse().ok())
}

/// Hangs on the first `started` event. Starts a child process and writes the child's pid to a file.
const HANGING_PROGRAM: &str = r#"
case "$(cat now.$$)" in
*'"type":"started"'*) [ -e child ] || { sleep 1000 & echo $! >child.draft; mv child.draft child; wait; } ;;
esac
"#;

#[test]
fn a_hanging_event_program_is_killed_with_its_children() {
    let fixture = start_with_program(HANGING_PROGRAM, "on_event_timeout = \"1500ms\"\n");
    let (events_file, home) = (fixture.world.home().join("seen"), fixture.world.home());
    let task = fixture.run("t", "until [ -e go ]; do sleep 0.05; done; exit 3");
    let child = wait_for_child(&fixture);
    assert!(process::is_alive(child));
    // Other events are processed while the program hangs.
    fs::write(fixture.file("go"), "").expect("written");
    fixture.event(&task.window, "exited");
    wait_until("the next event", SOON, || received_events(&events_file) == ["t started", "t exited"]);
    assert!(!process::is_alive(child), "the child was killed too");
    let log = fs::read_dir(fixture.world.state_dir()).expect("there").flatten();
    let logs: String = log.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
    let logs = logs
        + &String::from_utf8_lossy(&fixture.world.agtmux().args(["daemon", "logs"]).output().expect("runs").stdout);
    assert!(logs.contains("the program did not end within 1.5 s"), "{logs}");
    assert!(home.join("child").exists());
}

#[test]
fn a_hanging_event_program_ends_with_the_daemon_and_the_next_daemon_continues() {
    let fixture = start_with_program(HANGING_PROGRAM, "on_event_timeout = \"1h\"\n");
    let events_file = fixture.world.home().join("seen");
    let task = fixture.run("t", "exit 3");
    let child = wait_for_child(&fixture);
    fixture.event(&task.window, "exited");
    assert_eq!(received_events(&events_file), ["t started"], "events are delivered one at a time");
    stop(&fixture.world);
    wait_until("the death of the child", SOON, || !process::is_alive(child));
    start(&fixture.world);
    wait_until("the undelivered event", SOON, || received_events(&events_file) == ["t started", "t exited"]);
}

#[test]
fn a_failing_event_program_still_gets_the_next_event() {
    let fixture = start_with_program("kill -9 $$", "");
    let events_file = fixture.world.home().join("seen");
    let task = fixture.run("t", "exit 3");
    fixture.event(&task.window, "exited");
    wait_until("both events", SOON, || received_events(&events_file) == ["t started", "t exited"]);
}

#[test]
fn a_missing_event_program_does_not_block_events() {
    for program in ["/nowhere/program", "/", "false", "sleep 0"] {
        let fixture = start_with_settings(&format!("[tasks]\non_event = \"{program}\"\n"));
        let task = fixture.run("t", "exit 3");
        assert_eq!(fixture.event(&task.window, "exited")["exit_code"], 3, "{program}");
        let mark = fixture.world.state_dir().join("on_event.seq");
        let last = fixture.events().last().and_then(|event| event["seq"].as_u64()).expect("events");
        wait_until(&format!("all events to be offered to {program}"), SOON, || {
            fs::read_to_string(&mark).is_ok_and(|text| text.trim().parse() == Ok(last))
        });
    }
}
