//! `agtmux.tmux`, the plugin for tmux, with each version of tmux that is built.

use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{TestTmuxServer, skip, wait_for, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository exists")
}

/// The installed tmux, and the other versions that `scripts/tmux-versions` has built before.
fn tmux_versions() -> Vec<Option<PathBuf>> {
    let mut script = Command::new(repository().join("scripts/tmux-versions"));
    let built = script.args(["3.2a", "3.7c"]).env_remove("TMUX_SOURCES").output().expect("the script runs");
    let mut versions = vec![None];
    for line in String::from_utf8_lossy(&built.stdout).lines() {
        match line.split_once(' ') {
            Some(("skipped", why)) => skip(&format!("tmux {why}; TMUX_SOURCES=DIR scripts/tmux-versions builds it")),
            Some((_, program)) => versions.push(Some(PathBuf::from(program))),
            None => panic!("unexpected: {line}"),
        }
    }
    versions
}

/// Runs the test on each version of tmux.
fn on_each_version(settings: &str, test: impl Fn(&ActionFixture)) {
    for program in tmux_versions() {
        let fixture = ActionFixture::with_world(|world| {
            if let Some(program) = &program {
                world.install_script("tmux", &format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()));
            }
            settings.to_owned()
        });
        test(&fixture);
    }
}

fn load(server: &TestTmuxServer) {
    server.run(&["run-shell", &format!("'{}/agtmux.tmux'", repository().display())]);
}

/// The bindings of the prefix table, without the blanks that align them.
fn bindings(server: &TestTmuxServer) -> Vec<String> {
    let keys = server.run(&["list-keys", "-T", "prefix"]);
    keys.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn ours(server: &TestTmuxServer) -> Vec<String> {
    let key = |line: &String| line.contains("agtmux.tmux").then(|| line.split(' ').nth(3).map(str::to_owned)).flatten();
    let mut keys: Vec<String> = bindings(server).iter().filter_map(key).collect();
    keys.sort();
    keys
}

#[test]
fn only_free_keys_are_bound_and_nothing_else_changes() {
    on_each_version("", |fixture| {
        let server = &fixture.server;
        server.new_session("home", "cat");
        server.run(&["bind-key", "A", "display-message", "mine"]);
        server.run(&["bind-key", "-r", "G", "display-message", "mine"]);
        let options = || [server.run(&["show-options", "-g"]), server.run(&["show-options", "-s"])];
        let (before, options_before) = (bindings(server), options());
        let tables = server.run(&["list-keys"]).lines().filter(|line| !line.contains("-T prefix")).count();
        load(server);
        assert_eq!(ours(server), ["a", "g"], "{:?}", bindings(server));
        assert_eq!(options(), options_before);
        let theirs = bindings(server).into_iter().filter(|line| !line.contains("agtmux.tmux")).collect::<Vec<_>>();
        assert_eq!(theirs, before);
        let other_tables = server.run(&["list-keys"]).lines().filter(|line| !line.contains("-T prefix")).count();
        assert_eq!(other_tables, tables);
        assert!(server.run(&["list-keys", "-N", "-T", "prefix"]).contains("agtmux: go to the next waiting agent"));
        let once = bindings(server);
        load(server);
        assert_eq!(bindings(server), once, "the second run changes nothing");
        // Other keys: the earlier ones are free again.
        for (option, key) in
            [("popup-key", "M-\\;"), ("inbox-key", "C-Space"), ("next-key", ""), ("sidebar-key", "M-\"")]
        {
            server.run(&["set-option", "-g", &format!("@agtmux-{option}"), key]);
        }
        load(server);
        assert_eq!(ours(server).len(), 3, "{:?}", bindings(server));
        assert!(!ours(server).iter().any(|key| key == "a" || key == "g"), "{:?}", ours(server));
        assert!(bindings(server).iter().any(|line| line == "bind-key -T prefix A display-message mine"));
    });
}

#[test]
fn keys_and_status_line_work() {
    // The strict settings: only a person may answer.
    on_each_version("actions.allow_from_agents = false\n", |fixture| {
        let server = &fixture.server;
        let agent = fixture.agent("work");
        fixture.show_scene(&agent, "permission", "waiting_approval");
        let home = server.new_session("home", "cat");
        for (option, value) in [
            ("@agtmux-command", AGTMUX),
            ("@agtmux-status-format", "W{waiting} #[bold]{next_place}"),
            ("status-right", "<#{agtmux_status}>"),
            ("status-right-length", "60"),
            ("status-interval", "1"),
        ] {
            server.run(&["set-option", "-g", option, value]);
        }
        load(server);
        let status = server.run(&["show-options", "-gv", "status-right"]);
        assert!(status.starts_with("<#('") && status.ends_with("agtmux.tmux' status)>"), "{status}");
        let client = server.attach("home");
        // The popup has room for the whole dialog.
        client.resize(120, 40);
        let output = || String::from_utf8_lossy(&client.output()).into_owned();
        wait_for("the status line", SOON, || {
            let shown = output();
            if shown.contains("<W1 ") && shown.contains("work:0.0") { Ok(()) } else { Err(shown) }
        });
        let place = || server.run(&["list-clients", "-F", "#{session_name} #{pane_id}"]);
        client.type_keys(b"\x02g");
        wait_until("the agent", SOON, || place() == format!("work {}", agent.pane));
        client.type_keys(b"\x02G");
        wait_until("the first pane", SOON, || place() == format!("home {home}"));
        // The agent's own screen was shown before.
        let marker = client.output().len();
        let newest = || String::from_utf8_lossy(&client.output()[marker..]).into_owned();
        client.type_keys(b"\x02a");
        wait_for("the interface in a popup", SOON, || {
            let shown = newest();
            if shown.contains("rm -r build") { Ok(()) } else { Err(shown) }
        });
        // A key that comes too soon after the dialog is not taken, so press it until it is.
        wait_for("the answer", SOON, || {
            client.type_keys(b"1");
            let is_idle = fixture.item(&agent).is_some_and(|item| item["state"] == "idle");
            if is_idle { Ok(()) } else { Err((fixture.audit().pop(), newest())) }
        });
        assert_eq!(agent.input_so_far(), b"1");
        wait_until("the status line", SOON, || output().contains("W0"));
        client.type_keys(b"\r");
        wait_until("the agent", SOON, || place() == format!("work {}", agent.pane));
        // The popup closes a moment later.
        wait_until("the first pane, without a popup", SOON, || {
            client.type_keys(b"\x02G");
            place() == format!("home {home}")
        });
    });
}

#[test]
fn foreign_text_in_the_status_line_is_no_command() {
    on_each_version("", |fixture| {
        let server = &fixture.server;
        let mark = fixture.world.home().join("pwned");
        // tmux expands the name of a new session once.
        let agent = fixture.agent(&format!("##(touch {}) %H ##[bg=red]", mark.display()));
        let item = fixture.show_scene(&agent, "dialog", "waiting_approval");
        let name = item["identity"]["session_name"].as_str().expect("a name").to_owned();
        assert!(name.contains("#(touch") && name.contains("%H"), "{name}");
        let status = format!("#({AGTMUX} status --follow --format 'W{{next_session}}')");
        server.run(&["set-option", "-g", "status-right-length", "200"]);
        server.run(&["set-option", "-g", "status-interval", "1"]);
        server.run(&["set-option", "-g", "status-left", ""]);
        server.run(&["set-option", "-g", "window-status-current-format", ""]);
        server.run(&["set-option", "-g", "status-right", &status]);
        server.new_session("home", "cat");
        let client = server.attach("home");
        client.resize(200, 24);
        wait_for("the name in the status line", SOON, || {
            let shown = String::from_utf8_lossy(&client.output()).into_owned();
            if shown.contains(&format!("W{name}")) { Ok(()) } else { Err(shown) }
        });
        assert!(!mark.exists(), "the name was run as a command");
    });
}

#[test]
fn a_missing_program_is_named_in_the_status_line() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    server.new_session("home", "cat");
    server.run(&["set-option", "-g", "@agtmux-command", "/nowhere/agtmux"]);
    load(server);
    let client = server.attach("home");
    wait_until("the message", SOON, || {
        client.type_keys(b"\x02g");
        String::from_utf8_lossy(&client.output()).contains("program not found; set @agtmux-command")
    });
}
