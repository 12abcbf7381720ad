//! Names that look like an option, a command or several words. Target names of this kind are refused. Session names of
//! this kind must work, because users choose them. The tests use the real login shells of remote hosts.

use std::path::{Path, PathBuf};
use std::thread;

use agtmux_testkit::action_fixture::SETTINGS;
use agtmux_testkit::agtmux::{SOON, configure, items};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, runtime_ref};
use agtmux_testkit::terminal::printed_on_terminal;
use agtmux_testkit::{TestHost, TestHostOptions, skip, skip_without_hosts, wait_until};
use serde_json::Value;

/// Names that create this file if a program runs them as a command.
fn hostile_names(mark: &Path) -> [String; 7] {
    let touch = format!("touch {}", mark.display());
    [
        format!("-oProxyCommand={touch}"),
        format!("a$({touch})"),
        format!("`{touch}`"),
        format!("a;{touch};b"),
        format!("a\n{touch}\nb"),
        format!("it's \"so\" \\ '; {touch} #"),
        format!("日本 ünï | {touch} & {touch} > x * ~ !! %1"),
    ]
}

const TARGET_NAME_RULE: &str = "letters, digits, '.', '_' or '-'";
const SSH_TARGET_RULE: &str = "an ssh target is a host name or an ssh_config alias";

#[test]
fn invalid_target_names_and_ssh_targets_are_refused() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let mark = hub.world.dir().join("made");
    let more = ["a;b", "a b", "a\nb", "a'b", "ä", "", "`id`"].map(str::to_owned);
    for bad in hostile_names(&mark).into_iter().chain(more) {
        let added = hub.agtmux(&["target", "add", "--json", "--", &bad]);
        assert_eq!(added.code, Some(5), "{bad:?}: {}", added.text());
        let output = format!("{}{}", added.text(), added.stderr);
        assert!(output.contains(TARGET_NAME_RULE) && output.contains("agtmux target add --help"), "{bad:?}: {output}");
        let added = hub.agtmux(&["target", "add", "vm1", &format!("--ssh-target={bad}")]);
        assert_eq!(added.code, Some(5), "{bad:?}: {}", added.stderr);
        assert!(added.stderr.contains(SSH_TARGET_RULE), "{bad:?}: {}", added.stderr);
        for command in [&["target", "connect"][..], &["target", "remove", "--yes"], &["target", "doctor"]] {
            let done = hub.agtmux(&[command, &["--", &bad]].concat());
            assert!(matches!(done.code, Some(2 | 5)), "{command:?} {bad:?}: {done:?}");
        }
        let listed = hub.agtmux(&["list", "panes", &format!("--target={bad}")]);
        assert_ne!(listed.code, Some(0), "{bad:?}: {}", listed.text());
    }
    assert_ne!(hub.agtmux(&["target", "add", "host"]).code, Some(0), "`host` is the name of this machine");
    assert!(!mark.exists(), "a name was run as a command");
    assert_eq!(items(&hub.agtmux(&["target", "list", "--json"]).json()).len(), 1);
}

/// Checks list, view-output, send and attach for a session with this name.
#[track_caller]
fn assert_session_usable(hub: &HubFixture, host: &TestHost, agent: &FakeAgent, name: &str) {
    let alias = host.alias();
    let idle = hub.wait_for_state(alias, agent, "idle");
    // tmux replaces some characters in session names.
    let session_name = agent.server.run(&["display-message", "-p", "-t", &agent.pane, "#{session_name}"]);
    assert_eq!(idle["identity"]["session_name"], session_name.as_str(), "{name:?}");
    let window = idle["identity"]["window_id"].as_str().expect("a window");
    // Only these two characters are escaped in a reference.
    let escaped_name = session_name.replace('%', "%25").replace('/', "%2F");
    let reference = format!("pane:{alias}/{escaped_name}/{window}/{}", agent.pane);

    let output = hub.agtmux(&["view-output", &reference]);
    assert!(output.text().contains("earlier"), "{reference:?}: {output:?}");
    let text = format!("{name} to {}", agent.pane);
    let sent = hub.agtmux(&["send", &reference, &format!("--text={text}")]);
    assert_eq!(sent.code, Some(0), "{reference:?}: {}", sent.stderr);
    let typed = agent.typed_text().replace('\r', "\n");
    assert!(typed.contains(&text), "{reference:?}: {typed:?}");

    let mut attach = hub.world.agtmux();
    attach.args(["attach", &runtime_ref(&idle)]);
    thread::scope(|scope| {
        let attached = scope.spawn(move || printed_on_terminal(&mut attach, 100));
        let clients = |format: &str| agent.server.run(&["list-clients", "-F", format]);
        wait_until("a client on the host", SOON, || clients("#{pane_id}") == agent.pane);
        agent.server.run(&["detach-client", "-t", &clients("#{client_name}")]);
        attached.join().expect("the attach thread ends");
    });
}

/// Checks sessions with hostile names on a host with this login shell, with and without agtmux.
fn check_session_names_through(shell: &str) {
    if skip_without_hosts() {
        return;
    }
    if !Path::new(shell).exists() {
        return skip(&format!("no {shell}: run scripts/ensure-tools shells"));
    }
    let hub = HubFixture::new();
    let mark = hub.world.dir().join("made");
    for (alias, agtmux) in [("vm1", Some(PathBuf::from(env!("CARGO_BIN_EXE_agtmux")))), ("vm2", None)] {
        let evidence = if agtmux.is_some() { "native" } else { "screen" };
        let host =
            hub.hosts.start(alias, TestHostOptions { agtmux, shell: Some(shell.into()), ..TestHostOptions::default() });
        configure(host.world(), SETTINGS);
        assert_eq!(hub.agtmux(&["target", "add", alias]).code, Some(0));
        assert_eq!(hub.target(alias)["evidence"], evidence);
        let names = hostile_names(&mark);
        let agents: Vec<FakeAgent> = names.iter().map(|name| FakeAgent::start(host.world(), name)).collect();
        for (name, agent) in names.iter().zip(&agents) {
            assert_session_usable(&hub, &host, agent, name);
        }
        for (name, agent) in names.iter().zip(&agents) {
            let typed = agent.typed_text();
            assert_eq!(typed.matches(" to %").count(), 1, "{name:?} must receive exactly its own text: {typed:?}");
        }
        assert!(!mark.exists(), "a name was run as a command");
        assert_eq!(hub.agtmux(&["target", "remove", alias, "--yes"]).code, Some(0));
        assert_eq!(hub.items(alias), Vec::<Value>::new());
    }
}

#[test]
fn sessions_with_hostile_names_work_through_sh() {
    check_session_names_through("/bin/sh");
}

#[test]
fn sessions_with_hostile_names_work_through_bash() {
    check_session_names_through("/bin/bash");
}

#[test]
fn sessions_with_hostile_names_work_through_zsh() {
    check_session_names_through("/usr/bin/zsh");
}

#[test]
fn sessions_with_hostile_names_work_through_fish() {
    check_session_names_through("/usr/bin/fish");
}
