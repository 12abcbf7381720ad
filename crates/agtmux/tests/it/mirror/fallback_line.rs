//! Shells without marks, while the person writes a line or runs programs there.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, kill, pid};
use agtmux_testkit::wait_until;

use super::{MirrorFixture, for_each_shell};

/// Makes agtmux read the screen: opens a pipe of the person, which replaces the one of agtmux.
fn without_marks(fixture: &MirrorFixture) {
    fixture.server.run(&["pipe-pane", "-t", &fixture.pane(), "cat >/dev/null"]);
    wait_until("the fallback", SOON, || fixture.json(&["status", "--json"])["items"][0]["method"] == "screen");
}

fn file(fixture: &MirrorFixture, name: &str) -> PathBuf {
    fixture.world.dir().join("tmp").join(name)
}

#[track_caller]
fn wait_for_line(fixture: &MirrorFixture, line: &str) {
    let row = |screen: &str| screen.trim_end().lines().next_back().is_some_and(|row| row.ends_with(line));
    fixture.wait_for_screen("the half-written line", row);
}

#[test]
fn the_line_of_the_person_never_runs_wherever_the_cursor_is() {
    for_each_shell(|fixture| {
        without_marks(fixture);
        let person = file(fixture, "person");
        let line = format!("touch {}", person.display());
        for keys in [&["C-a"][..], &["C-a", "Right", "Right", "Right"], &[]] {
            fixture.type_text(&line);
            wait_for_line(fixture, &line);
            for key in keys {
                fixture.press(key);
            }
            fixture.assert_exec("echo agent", "agent\n", 0);
            wait_for_line(fixture, &line);
            assert!(!person.exists(), "{}: {keys:?}: {}", fixture.shell, fixture.screen());
            fixture.press("C-u");
            fixture.wait_for_screen("the empty prompt", |screen| !screen.trim_end().ends_with(&line));
        }
        fixture.type_text(&line);
        wait_for_line(fixture, &line);
        fixture.press("Enter");
        wait_until("the line of the person to run", SOON, || person.exists());
    });
}

#[test]
fn nothing_is_run_in_the_command_mode_of_vi() {
    for_each_shell(|fixture| {
        let vi = match fixture.shell {
            "bash" => "set -o vi",
            "zsh" => "bindkey -v",
            _ => "fish_vi_key_bindings",
        };
        assert_eq!(fixture.exec(vi).code, Some(0));
        without_marks(fixture);
        let run = file(fixture, "run");
        let command = format!("touch {}", run.display());
        fixture.press("Escape");
        let done = fixture.exec(&command);
        assert!(done.code == Some(5) && !run.exists(), "{}: {}\n{}", fixture.shell, done.stderr, fixture.screen());
        fixture.press("i");
        let done = fixture.exec(&command);
        assert!(run.exists(), "{}: {}\n{}", fixture.shell, done.stderr, fixture.screen());
    });
}

#[test]
fn a_report_ends_a_command_and_a_program_of_the_person_is_not_interrupted() {
    let Some(fixture) = MirrorFixture::with_shell("dash") else { return };
    let go = file(&fixture, "go");
    let command = format!("echo agent; while test ! -e {}; do sleep 0.05; done; (exit 3)", go.display());
    let arguments = ["exec", "--timeout", "20s", &command];
    let child = fixture.command(&arguments).stdout(Stdio::piped()).spawn().expect("agtmux starts");
    fixture.wait_for_screen("the command", |screen| screen.contains("\nagent"));
    // The shell reads this line as soon as the command has ended, so its prompt is never at rest.
    fixture.type_text("cat");
    fixture.press("Enter");
    fs::write(&go, "").expect("the world is writable");
    let output = child.wait_with_output().expect("agtmux ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(3) && text.starts_with("agent\n"), "{:?} {text}", output.status);
    fixture.type_text("still");
    fixture.press("Enter");
    fixture.wait_for_screen("the program of the person", |screen| screen.matches("still").count() == 2);
}

#[test]
fn a_command_in_a_released_terminal_is_lost_at_once() {
    let Some(fixture) = MirrorFixture::without_terminal("dash", |_| {}) else { return };
    let pane = fixture.server.new_session("mine", "PS1='mine $ ' exec dash -i");
    wait_until("the prompt", SOON, || fixture.server.run(&["capture-pane", "-p", "-t", &pane]).contains("mine $"));
    let started = fixture.mirror(&["start", "--pane", &pane]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let command = fixture.command(&["exec", "--timeout", "1h", "sleep 1000"]).stderr(Stdio::piped()).spawn();
    let child = command.expect("agtmux starts");
    fixture.wait_for_status("running");
    assert_eq!(fixture.mirror(&["stop"]).code, Some(0));
    let output = child.wait_with_output().expect("agtmux ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stderr}");
    wait_until("the end in the audit log", SOON, || {
        let audit = agtmux_testkit::agtmux::agtmux(&fixture.world, &["audit", "--json"]).json();
        audit["items"].as_array().is_some_and(|rows| {
            rows.iter().any(|row| row["what"] == "run a command" && row["code"] == "E_OUTCOME_UNKNOWN")
        })
    });
}

#[test]
fn a_command_that_ignores_ctrl_c_is_given_up() {
    let Some(fixture) = MirrorFixture::with_shell("dash") else { return };
    let command = "echo before; (trap '' INT; exec sleep 1000)";
    let done = fixture.mirror(&["exec", "--timeout", "2s", command]);
    assert!(done.code == Some(124) && done.text().starts_with("before\n"), "{} {}", done.text(), done.stderr);
    // agtmux no longer follows the command, but it sees that a program has the terminal.
    wait_until("the end of the wait", SOON, || {
        let item = fixture.json(&["status", "--json"])["items"][0].clone();
        item["running"].is_null() && item["status"] == "running"
    });
}

#[test]
fn the_half_written_line_is_given_back_after_the_daemon_was_killed() {
    let Some(fixture) = MirrorFixture::with_shell("dash") else { return };
    let (runs, go) = (file(&fixture, "runs"), file(&fixture, "go"));
    fixture.type_text("echo half");
    wait_for_line(&fixture, "echo half");
    let command = format!("echo run >>{}; while test ! -e {}; do sleep 0.05; done", runs.display(), go.display());
    let mut child = fixture.command(&["exec", &command]).stderr(Stdio::null()).spawn().expect("agtmux starts");
    wait_until("the command", SOON, || runs.exists());
    kill(pid(&fixture.world));
    fs::write(&go, "").expect("the world is writable");
    assert!(child.wait().is_ok());
    fixture.wait_for_status("ready");
    wait_for_line(&fixture, "echo half");
}
