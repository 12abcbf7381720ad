//! Shells without marks: agtmux reads their screen.

use std::fs;
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, kill, pid};
use agtmux_testkit::wait_until;
use serde_json::json;

use super::{MirrorFixture, for_each_shell};

/// A shared terminal with dash.
fn dash() -> Option<MirrorFixture> {
    MirrorFixture::with_shell("dash")
}

/// Opens a pipe of the person, which replaces the one of agtmux.
fn pipe_of_person(fixture: &MirrorFixture) -> std::path::PathBuf {
    let log = fixture.world.dir().join("tmp/log");
    fixture.server.run(&["pipe-pane", "-t", &fixture.pane(), &format!("cat >{}", log.display())]);
    wait_until("the fallback", SOON, || fixture.json(&["status", "--json"])["items"][0]["method"] == "screen");
    log
}

#[test]
fn commands_in_dash_return_their_output_and_their_code() {
    let Some(fixture) = dash() else { return };
    fixture.assert_exec("true", "", 0);
    fixture.assert_exec("false", "", 1);
    fixture.assert_exec("echo hello", "hello\n", 0);
    fixture.assert_exec("printf nonl", "nonl", 0);
    fixture.assert_exec("echo; echo ' a  b'; echo", "\n a  b\n\n", 0);
    fixture.assert_exec("(exit 3)", "", 3);
    fixture.assert_exec("echo '日本 é!' >&2", "日本 é!\n", 0);
    fixture.assert_exec("echo '$ echo x'", "$ echo x\n", 0);
    fixture.assert_exec("echo a\necho b", "a\nb\n", 0);
    fixture.assert_exec("cat <<E\nx\n$((1+1))\nE\necho b", "x\n2\nb\n", 0);
    fixture.assert_exec("seq 500", &(1..=500).map(|n| format!("{n}\n")).collect::<String>(), 0);
    let long = "x".repeat(5000);
    fixture.assert_exec(&format!("echo {long}"), &format!("{long}\n"), 0);
    fixture.assert_exec("clear; echo new", "new\n", 0);
    assert_eq!(fixture.exec("sh -c 'kill -9 $$'").code, Some(137));
    fixture.assert_exec("variable=5", "", 0);
    fixture.assert_exec("echo $variable", "5\n", 0);
    let in_root = fixture.mirror(&["exec", "--cwd", "/", "pwd"]);
    assert_eq!((in_root.text().as_str(), in_root.code), ("/\n", Some(0)), "{}", in_root.stderr);
}

#[test]
fn a_result_from_the_screen_says_so() {
    let Some(fixture) = dash() else { return };
    let done = fixture.exec("echo a");
    assert!(done.stderr.contains("read it from the screen"), "{}", done.stderr);
    let result = fixture.json(&["exec", "--json", "(exit 4)"]);
    assert_eq!((&result["method"], &result["exit_code"]), (&json!("screen"), &json!(4)), "{result}");
    let item = fixture.wait_for_status("ready");
    assert_eq!((&item["method"], &item["shell"]), (&json!("screen"), &json!("sh")));
    wait_until("the last code", SOON, || {
        let last = fixture.server.try_run(&["show-environment", "-t", "=work", "PI_LAST_RC"]);
        last.is_ok_and(|last| last == "PI_LAST_RC=2 4")
    });
    let marked = MirrorFixture::bash();
    let done = marked.exec("echo a");
    assert_eq!(done.stderr, "");
    assert_eq!(marked.json(&["exec", "--json", "true"])["method"], "marks");
}

#[test]
fn a_prompt_of_two_rows_is_no_output() {
    let prepare = |world: &agtmux_testkit::TestWorld| {
        fs::write(world.home().join(".profile"), "PS1='two rows\n$PWD % '\n").expect("the world is writable");
    };
    let Some(fixture) = MirrorFixture::prepared("dash", prepare) else { return };
    fixture.assert_exec("echo a", "a\n", 0);
    fixture.assert_exec("cd /", "", 0);
    fixture.assert_exec("echo b; echo c; false", "b\nc\n", 1);
    assert!(fixture.screen().contains("two rows\n/ % "), "{}", fixture.screen());
}

#[test]
fn a_half_written_line_in_dash_is_put_aside_and_given_back() {
    let Some(fixture) = dash() else { return };
    fixture.type_text("echo half");
    fixture.wait_for_screen("the half-written line", |screen| screen.trim_end().ends_with("echo half"));
    fixture.assert_exec("echo agent", "agent\n", 0);
    fixture.wait_for_screen("the line to be back", |screen| {
        screen.trim_end().ends_with("echo half") && screen.contains("echo agent\nagent")
    });
    fixture.type_text("-written");
    fixture.press("Enter");
    fixture.wait_for_screen("its output", |screen| screen.contains("\nhalf-written"));
}

#[test]
fn a_command_in_dash_is_interrupted_and_incomplete_ones_are_refused() {
    let Some(fixture) = dash() else { return };
    let done = fixture.mirror(&["exec", "--timeout", "500ms", "echo before; sleep 1000"]);
    assert_eq!(done.code, Some(124), "{}", done.stderr);
    assert!(done.text().starts_with("before\n"), "{}", done.text());
    for incomplete in ["echo 'open", "if true"] {
        let done = fixture.exec(incomplete);
        assert!(done.stderr.contains("the command is not complete"), "{}", done.stderr);
    }
    fixture.type_text("cat");
    fixture.press("Enter");
    fixture.wait_for_status("running");
    let done = fixture.exec("echo no");
    assert!(done.stderr.contains("does not show the prompt"), "{}", done.stderr);
    fixture.press("C-c");
    fixture.wait_for_status("ready");
    fixture.assert_exec("echo yes", "yes\n", 0);
    assert!(!fixture.screen().contains("echo no"), "{}", fixture.screen());
}

#[test]
fn a_pipe_of_the_person_is_kept_and_the_screen_is_read() {
    for_each_shell(|fixture| {
        fixture.assert_exec("echo with marks", "with marks\n", 0);
        let log = pipe_of_person(fixture);
        fixture.assert_exec("echo without", "without\n", 0);
        fixture.assert_exec("sh -c 'exit 5'", "", 5);
        fixture.assert_exec("echo a\necho 'hey!'", "a\nhey!\n", 0);
        fixture.assert_exec("printf nonl", "nonl", 0);
        wait_until("the log", SOON, || fs::read_to_string(&log).is_ok_and(|text| text.contains("without")));
    });
}

#[test]
fn a_shell_that_lost_its_hooks_is_read_from_the_screen() {
    let prepare = |world: &agtmux_testkit::TestWorld| {
        fs::write(world.home().join(".bashrc"), "PS1='new $ '\n").expect("the world is writable");
    };
    let fixture = MirrorFixture::prepared("bash", prepare).expect("bash is installed");
    fixture.type_text("exec bash");
    fixture.press("Enter");
    fixture.wait_for_screen("the prompt of the new shell", |screen| screen.trim_end().ends_with("new $"));
    let result = fixture.json(&["exec", "--json", "echo a; sh -c 'exit 3'"]);
    let found = (&result["output"], &result["method"], &result["exit_code"]);
    assert_eq!(found, (&json!("a\n"), &json!("screen"), &json!(null)), "{result}");
    let done = fixture.exec("echo b");
    assert_eq!((done.text().as_str(), done.code), ("b\n", Some(1)), "{}", done.stderr);
    assert!(done.stderr.contains("did not report the exit code"), "{}", done.stderr);
}

#[test]
fn a_command_in_dash_is_not_repeated_after_the_daemon_was_killed() {
    let Some(fixture) = dash() else { return };
    let log = fixture.world.dir().join("tmp/runs");
    let go = fixture.world.dir().join("tmp/go");
    let command = format!("echo run >>{}; while test ! -e {}; do sleep 0.05; done", log.display(), go.display());
    let child = fixture.command(&["exec", &command]).stderr(Stdio::piped()).spawn().expect("agtmux starts");
    wait_until("the command", SOON, || log.exists());
    kill(pid(&fixture.world));
    let output = child.wait_with_output().expect("agtmux ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    fs::write(&go, "").expect("written");
    fixture.assert_exec("echo next", "next\n", 0);
    assert_eq!(fs::read_to_string(&log).expect("text"), "run\n");
}
