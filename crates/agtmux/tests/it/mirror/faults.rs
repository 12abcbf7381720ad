//! Shells that are replaced, panes that are closed, daemons that are killed.

use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, kill, pid};
use agtmux_testkit::{process, wait_until};

use super::{MirrorFixture, for_each_shell};

#[test]
fn a_replaced_shell_is_reported_with_the_remedy() {
    let fixture = MirrorFixture::bash();
    fixture.type_text("exec sh");
    fixture.press("Enter");
    let item = fixture.wait_for_status("lost");
    assert!(item["problem"].as_str().is_some_and(|problem| problem.contains("was replaced by")), "{item}");
    let done = fixture.exec("echo no");
    assert_eq!(done.code, Some(5), "{}", done.stderr);
    assert!(done.stderr.contains("agtmux mirror start"), "{}", done.stderr);
    let again = fixture.mirror(&["start", "--shell", "bash"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    fixture.assert_exec("echo yes", "yes\n", 0);
}

#[test]
fn a_nested_shell_is_reported_and_commands_are_refused_at_once() {
    let fixture = MirrorFixture::bash();
    for (nested, name) in [("sh", "sh"), ("zsh -f", "zsh"), ("bash --norc", "bash")] {
        fixture.type_text(nested);
        fixture.press("Enter");
        let item = fixture.wait_for_status("lost");
        let problem = item["problem"].as_str().unwrap_or_default();
        assert!(problem.starts_with(&format!("'{name}' runs in it")), "{item}");
        let done = fixture.exec("echo no");
        assert_eq!(done.code, Some(5), "{}", done.stderr);
        assert!(done.stderr.contains("agtmux mirror start"), "{}", done.stderr);
        fixture.type_text("exit 6");
        fixture.press("Enter");
        fixture.wait_for_status("ready");
        fixture.assert_exec("echo yes", "yes\n", 0);
    }
    assert_eq!(fixture.activity(3)[0]["exit_code"], 6);
    assert!(!fixture.screen().contains("echo no"), "nothing was typed: {}", fixture.screen());
}

#[test]
fn a_reader_that_was_killed_is_reported() {
    let fixture = MirrorFixture::bash();
    let is_reader = |pid: &u32| process::argv(*pid).iter().any(|word| word == b"mirror-log");
    let reader = fixture.world.processes().into_iter().find(is_reader).expect("a reader");
    kill(reader);
    let item = fixture.wait_for_status("lost");
    assert!(item["problem"].as_str().is_some_and(|problem| problem.contains("reads its output")), "{item}");
    let done = fixture.exec("echo no");
    assert_eq!(done.code, Some(5), "{}", done.stderr);
}

#[test]
fn a_closed_pane_loses_its_command_and_the_next_command_gets_a_new_one() {
    let fixture = MirrorFixture::bash();
    let pane = fixture.pane();
    let child = fixture.command(&["exec", "sleep 1000"]).stderr(Stdio::piped()).spawn().expect("agtmux starts");
    fixture.wait_for_status("running");
    fixture.server.run(&["kill-pane", "-t", &pane]);
    let output = child.wait_with_output().expect("agtmux ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the result of the command is unknown"), "{stderr}");
    fixture.server.run(&["set-option", "-g", "default-shell", "/usr/bin/env"]);
    let done = fixture.exec("echo new");
    assert!(done.stderr.contains("is not supported"), "{}", done.stderr);
    fixture.server.run(&["set-option", "-g", "default-shell", "/bin/bash"]);
    fixture.assert_exec("echo new", "new\n", 0);
    assert_ne!(fixture.pane(), pane);
}

#[test]
fn the_result_is_delivered_after_the_daemon_was_killed() {
    for_each_shell(|fixture| {
        let go = fixture.world.dir().join("tmp/go");
        let command =
            format!("echo before; while test ! -e {}; sleep 0.05; end; echo after; sh -c 'exit 8'", go.display());
        let command = match fixture.shell {
            "fish" => command,
            _ => command.replace("; sleep", "; do sleep").replace("; end", "; done"),
        };
        let child = fixture.command(&["exec", &command]).stdout(Stdio::piped()).spawn().expect("agtmux starts");
        fixture.wait_for_status("running");
        kill(pid(&fixture.world));
        std::fs::write(&go, "").expect("written");
        let output = child.wait_with_output().expect("agtmux ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!((&*text, output.status.code()), ("before\nafter\n", Some(8)), "{}", fixture.shell);
        fixture.assert_exec("echo next", "next\n", 0);
    });
}

#[test]
fn what_the_person_did_without_a_daemon_is_listed() {
    let fixture = MirrorFixture::bash();
    let pane = fixture.pane();
    agtmux_testkit::agtmux::stop(&fixture.world);
    fixture.server.run(&["send-keys", "-t", &pane, "echo meanwhile", "Enter"]);
    let done = fixture.world.dir().join("tmp/done");
    fixture.server.run(&["send-keys", "-t", &pane, &format!("touch {}", done.display()), "Enter"]);
    wait_until("the second command", SOON, || done.exists());
    let items = fixture.activity(2);
    assert_eq!((&items[0]["command"], &items[0]["output"]), (&"echo meanwhile".into(), &"meanwhile\n".into()));
}
