//! What a command line tool is expected to have: completion in shells, manual pages, a doctor, and help topics.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{SOON, agtmux, agtmux_program, configure, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, skip, wait_for};
use serde_json::Value;

/// Each shell with the command that starts it without the user's files, and the lines that load the completion.
const SHELLS: [(&str, &str, &[&str]); 3] = [
    ("bash", "exec bash --norc --noprofile -i", &["source <(agtmux completions bash)"]),
    ("zsh", "exec zsh -f -i", &["autoload -U compinit && compinit -u -D", "source <(agtmux completions zsh)"]),
    ("fish", "exec fish --no-config -i", &["agtmux completions fish | source"]),
];

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn screen(server: &TestTmuxServer, pane: &str) -> String {
    server.run(&["capture-pane", "-p", "-t", pane])
}

/// Types a line and Tab, and waits until the screen shows what the shell made of it. Then clears the line.
fn assert_completes(server: &TestTmuxServer, pane: &str, typed: &str, expected: &str) {
    server.run(&["send-keys", "-t", pane, "-l", typed]);
    wait_for(&format!("'{typed}' in {pane}"), SOON, || screen(server, pane).contains(typed).then_some(()));
    server.run(&["send-keys", "-t", pane, "Tab"]);
    wait_for(&format!("'{expected}' after Tab"), SOON, || {
        let screen = screen(server, pane);
        if screen.contains(expected) { Ok(()) } else { Err(screen) }
    });
    // A key that is typed while the shell completes may be lost.
    wait_for("an empty line", SOON, || {
        server.run(&["send-keys", "-t", pane, "C-u"]);
        (!screen(server, pane).contains(expected)).then_some(())
    });
}

#[test]
fn shells_complete_commands_and_names_that_the_daemon_knows() {
    let fixture = ActionFixture::new("");
    let program = agtmux_program();
    fixture.world.install_script("agtmux", &format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()));
    fixture.agent("project");
    for (shell, command, lines) in SHELLS {
        if !is_installed(shell) {
            skip(&format!("{shell} is not installed; run: scripts/ensure-tools shells"));
            continue;
        }
        let pane = fixture.server.new_session(&format!("in-{shell}"), command);
        for line in [lines, &["echo load''ed"]].concat() {
            fixture.server.run(&["send-keys", "-t", &pane, "-l", line]);
            fixture.server.run(&["send-keys", "-t", &pane, "Enter"]);
        }
        wait_for("the completion to be loaded", SOON, || {
            let screen = screen(&fixture.server, &pane);
            if screen.lines().any(|line| line.trim() == "loaded") { Ok(()) } else { Err(screen) }
        });
        fixture.server.run(&["send-keys", "-t", &pane, "-l", "clear"]);
        fixture.server.run(&["send-keys", "-t", &pane, "Enter"]);
        wait_for("an empty screen", SOON, || (!screen(&fixture.server, &pane).contains("load")).then_some(()));
        assert_completes(&fixture.server, &pane, "agtmux compl", "agtmux completions");
        assert_completes(&fixture.server, &pane, "agtmux seen cl", "agtmux seen claude");
        assert_completes(&fixture.server, &pane, "agtmux list panes --session proj", "--session project");
        assert_completes(&fixture.server, &pane, "agtmux target doctor ho", "agtmux target doctor host");
    }
}

#[test]
fn completion_never_starts_the_daemon() {
    let world = world();
    let mut command = world.agtmux();
    command.env("AGTMUX_COMPLETE", "fish").args(["--", "agtmux", "seen", ""]);
    let done = agtmux_testkit::agtmux::run(&mut command);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(world.daemons().is_empty());
}

#[test]
fn every_command_has_a_manual_page() {
    let world = world();
    let dir = world.home().join("man1");
    let done = agtmux(&world, &["man", dir.to_str().expect("UTF-8")]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for name in ["agtmux", "agtmux-send", "agtmux-task-run", "agtmux-notify-log", "agtmux-doctor"] {
        let page = fs::read_to_string(dir.join(format!("{name}.1"))).unwrap_or_default();
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        assert!(page.contains(&name.replace('-', "\\-")), "{name} names itself: {page}");
    }
    let printed = agtmux(&world, &["man"]).text();
    assert!(printed.contains(".TH agtmux 1"), "{printed}");
}

#[test]
fn help_topics_explain_what_concerns_all_commands() {
    let world = world();
    for (topic, word) in [
        ("environment", "AGTMUX_NO_AUTOSTART"),
        ("exit-codes", "the daemon is not running"),
        ("formatting", "agtmux_needs_action"),
        ("json", "items[].identity.pane_id"),
        ("references", "runtime:ID"),
    ] {
        let done = agtmux(&world, &["help", topic]);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{topic}");
        assert!(done.text().contains(word), "{topic}: {}", done.text());
    }
    assert!(agtmux(&world, &["help", "send"]).text().contains("Usage: agtmux send"));
    assert_eq!(agtmux(&world, &["help", "nonsense"]).code, Some(2));
}

/// The checks of this name, as `status: found; run`.
fn checks(document: &Value, name: &str) -> Vec<String> {
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let checks = document["checks"].as_array().expect("checks");
    let of_name = checks.iter().filter(|check| check["name"] == name);
    of_name
        .map(|check| format!("{}: {}; {}", text(check, "status"), text(check, "found"), text(check, "run")))
        .collect()
}

fn doctor(world: &TestWorld) -> (Option<i32>, Value) {
    let done = agtmux(world, &["doctor", "--json"]);
    let document = serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    (done.code, document)
}

#[test]
fn doctor_finds_nothing_wrong_where_all_is_well() {
    let world = world();
    let (code, document) = doctor(&world);
    assert_eq!((code, &document["healthy"]), (Some(0), &true.into()), "{document}");
    let missing = "warning: not running; the first command that needs it starts it; agtmux daemon start";
    assert_eq!(checks(&document, "daemon"), [missing]);
    assert!(world.daemons().is_empty(), "it does not start the daemon");
    let server = world.tmux("default");
    server.new_session("work", "exec cat");
    start(&world);
    agtmux_testkit::agtmux::wait_for_hooks(&world, "default");
    let (code, document) = doctor(&world);
    assert_eq!(code, Some(0), "{document}");
    for (name, start) in [
        ("tmux", "ok: tmux "),
        ("settings", "ok: all defaults; "),
        ("daemon", "ok: version "),
        ("store", "ok: /"),
        ("tmux server", "ok: default: tmux "),
        ("port", "ok: off"),
        ("notifications", "ok: no rules"),
        ("permissions", "ok: only you can read "),
    ] {
        let found = checks(&document, name);
        assert!(!found.is_empty() && found.iter().all(|line| line.starts_with(start)), "{name}: {found:?}");
    }
    let printed = agtmux(&world, &["doctor"]).text();
    assert!(printed.lines().any(|line| line.starts_with("ok       tmux ")), "{printed}");
}

#[test]
fn doctor_names_each_problem_with_the_command_that_fixes_it() {
    let world = world();
    configure(&world, "[tmux]\nprogram = '/nonexistent/tmux'\n[notify]\nntfy_topic = 'secret-topic-91'\n");
    start(&world);
    let socket_dir = world.socket().parent().expect("a directory").to_owned();
    fs::set_permissions(&socket_dir, fs::Permissions::from_mode(0o755)).expect("the mode is set");
    configure(
        &world,
        "[tmux]\nprogram = '/nonexistent/tmux'\n[web]\nlisten = '127.0.0.1:9'\n[notify]\nntfy_topic = 'secret-topic-91'\n",
    );
    let (code, document) = doctor(&world);
    assert_eq!((code, &document["healthy"]), (Some(1), &false.into()), "{document}");
    for (name, expected) in [
        ("tmux", "problem: '/nonexistent/tmux' is not installed; install tmux 3.2 or newer"),
        ("tmux server", "problem: host: '/nonexistent/tmux' is not installed"),
        ("port", "problem: nothing listens on 127.0.0.1:9; agtmux daemon restart"),
        ("permissions", "warning: other users can read "),
    ] {
        let found = checks(&document, name);
        assert!(found.iter().any(|line| line.starts_with(expected)), "{name}: {found:?}");
    }
    assert!(checks(&document, "permissions").iter().any(|line| line.contains("; chmod 700 '")), "{document}");
    let report = agtmux(&world, &["doctor", "--report"]);
    assert_eq!(report.code, Some(1), "{}", report.stderr);
    assert!(report.text().contains("- notify.ntfy_topic") && report.text().contains("- problem tmux: "), "{report:?}");
    assert!(!report.text().contains("secret-topic-91"), "values of settings are left out: {report:?}");
    configure(&world, "[tmux]\nprogramm = 'x'\n");
    let (code, document) = doctor(&world);
    assert_eq!(code, Some(1));
    let settings = checks(&document, "settings");
    assert!(settings[0].contains("programm") && settings[0].ends_with("; agtmux config check"), "{settings:?}");
    // The daemon runs with valid settings, so that the world can stop it.
    fs::remove_file(world.config_file()).expect("removed");
}
