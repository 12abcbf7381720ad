//! Names that could be an option, a command or several words: of targets, which are refused, and of sessions, which are not
//! ours to choose and go through the real login shells of other hosts.

use std::path::{Path, PathBuf};
use std::thread;

use agtmux_testkit::{TestHost, TestHostOptions, wait_until};
use serde_json::Value;

use crate::agtmux::{SOON, configure, items};
use crate::hub::{HubAgent, HubFixture, SETTINGS, runtime_ref, skip_without_hosts};
use crate::terminal::printed_on_terminal;

/// Whoever takes one of them for anything but a name makes this file.
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
const SSH_TARGET_RULE: &str = "an ssh target is a host or an alias";

#[test]
fn a_name_that_could_be_anything_else_is_refused() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let mark = hub.world.dir().join("made");
    let more = ["a;b", "a b", "a\nb", "a'b", "ä", "", "`id`"].map(str::to_owned);
    for bad in hostile_names(&mark).into_iter().chain(more) {
        let added = hub.agtmux(&["target", "add", "--json", "--", &bad]);
        assert_eq!(added.code, Some(5), "{bad:?}: {}", added.text());
        let said = format!("{}{}", added.text(), added.stderr);
        assert!(said.contains(TARGET_NAME_RULE) && said.contains("agtmux target add --help"), "{bad:?}: {said}");
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
    assert_ne!(hub.agtmux(&["target", "add", "host"]).code, Some(0), "that is this machine");
    assert!(!mark.exists(), "something was run");
    assert_eq!(items(&hub.agtmux(&["target", "list", "--json"]).json()).len(), 1);
}

/// What is listed, typed and shown there, and who gets to see it, by a session of that name and no other.
#[track_caller]
fn assert_session_usable(hub: &HubFixture, host: &TestHost, agent: &HubAgent, name: &str) {
    let alias = host.alias();
    let idle = hub.wait_for_state(alias, agent, "idle");
    // tmux writes some characters otherwise.
    let called = agent.server.run(&["display-message", "-p", "-t", &agent.pane, "#{session_name}"]);
    assert_eq!(idle["identity"]["session_name"], called.as_str(), "{name:?}");
    let window = idle["identity"]["window_id"].as_str().expect("a window");
    // Only these two would end the name in a reference.
    let written = called.replace('%', "%25").replace('/', "%2F");
    let place = format!("pane:{alias}/{written}/{window}/{}", agent.pane);

    let shown = hub.agtmux(&["view-output", &place]);
    assert!(shown.text().contains("earlier"), "{place:?}: {shown:?}");
    let text = format!("{name} to {}", agent.pane);
    let sent = hub.agtmux(&["send", &place, &format!("--text={text}")]);
    assert_eq!(sent.code, Some(0), "{place:?}: {}", sent.stderr);
    let typed = agent.typed_text().replace('\r', "\n");
    assert!(typed.contains(&text), "{place:?}: {typed:?}");

    let mut attach = hub.world.agtmux();
    attach.args(["attach", &runtime_ref(&idle)]);
    thread::scope(|scope| {
        let gone_there = scope.spawn(move || printed_on_terminal(&mut attach, 100));
        let clients = |format: &str| agent.server.run(&["list-clients", "-F", format]);
        wait_until("a client there", SOON, || clients("#{pane_id}") == agent.pane);
        agent.server.run(&["detach-client", "-t", &clients("#{client_name}")]);
        gone_there.join().expect("it ends");
    });
}

/// Sessions of these names on a host with that login shell, with agtmux and without.
fn check_session_names_through(shell: &str) {
    if skip_without_hosts() {
        return;
    }
    if !Path::new(shell).exists() {
        return eprintln!("SKIPPED: no {shell}: run scripts/ensure-tools shells");
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
        let agents: Vec<HubAgent> = names.iter().map(|name| HubAgent::start(host.world(), name)).collect();
        for (name, agent) in names.iter().zip(&agents) {
            assert_session_usable(&hub, &host, agent, name);
        }
        for (name, agent) in names.iter().zip(&agents) {
            let typed = agent.typed_text();
            assert_eq!(typed.matches(" to %").count(), 1, "{name:?}, and nobody else's: {typed:?}");
        }
        assert!(!mark.exists(), "something was run");
        assert_eq!(hub.agtmux(&["target", "remove", alias, "--yes"]).code, Some(0));
        assert_eq!(hub.items(alias), Vec::<Value>::new());
    }
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_sh() {
    check_session_names_through("/bin/sh");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_bash() {
    check_session_names_through("/bin/bash");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_zsh() {
    check_session_names_through("/usr/bin/zsh");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_fish() {
    check_session_names_through("/usr/bin/fish");
}
