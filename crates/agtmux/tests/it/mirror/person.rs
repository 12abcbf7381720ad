//! The person types in the same terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, kill, pid};
use agtmux_testkit::{ChildGuard, wait_until};
use serde_json::Value;

use super::{MirrorFixture, for_each_shell};

#[test]
fn commands_of_the_person_are_listed_with_output_and_code() {
    for_each_shell(|fixture| {
        fixture.assert_exec("echo agent", "agent\n", 0);
        fixture.type_text("echo person; sh -c 'exit 6'");
        fixture.press("Enter");
        let items = fixture.activity(1);
        let item = &items[0];
        assert_eq!(
            (&item["command"], &item["exit_code"]),
            (&"echo person; sh -c 'exit 6'".into(), &6.into()),
            "{item}"
        );
        assert_eq!(item["output"], "person\n", "{}: {item}", fixture.shell);
        assert_eq!(item["text"], "~ $ echo person; sh -c 'exit 6'\nperson\n[exit code: 6]");
        fixture.assert_exec("echo agent", "agent\n", 0);
        fixture.type_text("cd /");
        fixture.press("Enter");
        let items = fixture.activity(2);
        assert_eq!((&items[1]["command"], items.len()), (&"cd /".into(), 2));
    });
}

#[test]
fn activity_is_followed_from_now_on() {
    let fixture = MirrorFixture::bash();
    fixture.type_text("echo earlier");
    fixture.press("Enter");
    fixture.activity(1);
    let mut command = fixture.command(&["activity", "--follow", "--json"]);
    let mut follower = ChildGuard::start(command.stdout(Stdio::piped()));
    let mut lines = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let mut number = 0;
    // The stream may open after the first command, so the person types until it is reported.
    let first: Value = std::thread::scope(|scope| {
        let line = scope.spawn(|| lines.next().expect("a line").expect("text"));
        while !line.is_finished() {
            number += 1;
            fixture.type_text(&format!("echo later {number}"));
            fixture.press("Enter");
            fixture.activity(1 + number);
        }
        serde_json::from_str(&line.join().expect("a line")).expect("JSON")
    });
    assert!(first["command"].as_str().is_some_and(|command| command.starts_with("echo later ")), "{first}");
}

#[test]
fn a_half_written_line_is_put_aside_and_given_back() {
    for_each_shell(|fixture| {
        fixture.type_text("echo half");
        fixture.wait_for_screen("the half-written line", |screen| screen.contains("echo half"));
        fixture.assert_exec("echo agent", "agent\n", 0);
        fixture.wait_for_screen("the line to be back", |screen| {
            screen.trim_end().lines().last().is_some_and(|line| line.trim_end().ends_with("echo half"))
        });
        fixture.type_text("-written");
        fixture.press("Enter");
        let items = fixture.activity(1);
        assert_eq!(items[0]["command"], "echo half-written", "{}", fixture.shell);
        assert_eq!(items[0]["output"], "half-written\n", "{}", fixture.shell);
    });
}

/// The person completes the line `echo half`, which must be back at the prompt.
#[track_caller]
fn complete_half_line(fixture: &MirrorFixture) {
    fixture.wait_for_screen("the line to be back", |screen| {
        screen.trim_end().lines().last().is_some_and(|line| line.trim_end().ends_with("echo half"))
    });
    fixture.type_text("-written");
    fixture.press("Enter");
    let items = fixture.activity(1);
    assert_eq!(items[0]["output"], "half-written\n", "{}", fixture.shell);
}

#[test]
fn a_half_written_line_is_given_back_after_a_refused_command() {
    for shell in ["bash", "zsh"] {
        let Some(fixture) = MirrorFixture::with_shell(shell) else { continue };
        // The check for complete commands does not know aliases.
        fixture.assert_exec("alias unfinished='echo \"a'", "", 0);
        fixture.type_text("echo half");
        fixture.wait_for_screen("the half-written line", |screen| screen.trim_end().ends_with("echo half"));
        let done = fixture.exec("unfinished");
        assert!(done.stderr.contains("the command is not complete"), "{shell}: {}", done.stderr);
        complete_half_line(&fixture);
    }
}

#[test]
fn a_half_written_line_is_given_back_after_the_daemon_was_killed() {
    for_each_shell(|fixture| {
        let (go, over) = (fixture.world.dir().join("tmp/go"), fixture.world.dir().join("tmp/over"));
        fixture.type_text("echo half");
        fixture.wait_for_screen("the half-written line", |screen| screen.trim_end().ends_with("echo half"));
        let (wait, end) = if fixture.shell == "fish" { (";", "; end") } else { ("; do", "; done") };
        let (go_file, over_file) = (go.display(), over.display());
        let command = format!("while test ! -e {go_file}{wait} sleep 0.05{end}; touch {over_file}");
        let mut client = fixture.command(&["exec", &command]).spawn().expect("agtmux starts");
        fixture.wait_for_status("running");
        // Without a client, no request starts another daemon.
        client.kill().expect("killed");
        client.wait().expect("ended");
        kill(pid(&fixture.world));
        std::fs::write(&go, "").expect("written");
        wait_until("the end of the command", SOON, || over.exists());
        fixture.wait_for_status("ready");
        complete_half_line(fixture);
    });
}

#[test]
fn a_terminal_in_which_a_program_runs_is_busy() {
    for_each_shell(|fixture| {
        fixture.type_text("cat");
        fixture.press("Enter");
        fixture.wait_for_status("running");
        let done = fixture.exec("echo no");
        assert_eq!(done.code, Some(5), "{}", done.stderr);
        assert!(done.stderr.contains("is busy"), "{}", done.stderr);
        fixture.press("C-c");
        fixture.wait_for_status("ready");
        fixture.assert_exec("echo yes", "yes\n", 0);
        assert!(!fixture.screen().contains("echo no"), "nothing was typed: {}", fixture.screen());
    });
}

#[test]
fn a_command_waits_for_a_short_command_of_the_person() {
    for_each_shell(|fixture| {
        fixture.type_text("sleep 1; echo person");
        fixture.press("Enter");
        fixture.wait_for_status("running");
        fixture.assert_exec("echo agent", "agent\n", 0);
        assert_eq!(fixture.activity(1)[0]["output"], "person\n");
    });
}

#[test]
fn a_line_that_the_person_has_not_completed_is_left_alone() {
    for shell in ["bash", "zsh"] {
        let Some(fixture) = MirrorFixture::with_shell(shell) else { continue };
        fixture.type_text("echo 'open");
        fixture.press("Enter");
        fixture.wait_for_screen("the continuation prompt", |screen| screen.trim_end().ends_with('>'));
        let done = fixture.exec("echo agent");
        assert_eq!(done.code, Some(5), "{}", done.stderr);
        assert!(done.stderr.contains("the rest of a command"), "{}", done.stderr);
        fixture.type_text("end'");
        fixture.press("Enter");
        assert_eq!(fixture.activity(1)[0]["output"], "open\nend\n", "{shell}");
        fixture.assert_exec("echo agent", "agent\n", 0);
    }
}

#[test]
fn two_terminals_of_one_server_never_mix() {
    let fixture = MirrorFixture::bash();
    let other = fixture.server.new_session("other", "cat");
    let in_other = |args: &[&str]| agtmux_testkit::agtmux::run(&mut fixture.command_in(&other, args));
    assert_eq!(in_other(&["start", "--shell", "bash"]).code, Some(0));
    for n in 0..5 {
        fixture.assert_exec(&format!("echo one {n}"), &format!("one {n}\n"), 0);
        assert_eq!(in_other(&["exec", &format!("echo two {n}")]).text(), format!("two {n}\n"));
    }
    fixture.type_text("echo here");
    fixture.press("Enter");
    assert_eq!(fixture.activity(1)[0]["output"], "here\n");
    let activity = in_other(&["activity", "--json"]).json();
    assert!(activity["items"].as_array().is_some_and(Vec::is_empty), "{activity}");
}
