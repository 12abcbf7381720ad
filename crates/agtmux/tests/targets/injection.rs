//! Names that could be an option, a command or several words: of targets, which are refused, and of sessions, which are not
//! ours to choose and go through the real login shells of other hosts.

use std::path::{Path, PathBuf};
use std::thread;

use agtmux_testkit::{Host, HostOptions, wait_until};
use serde_json::Value;

use crate::agtmux::{SOON, configure, items};
use crate::hub::{Agent, Hub, SETTINGS, runtime, skipped};
use crate::terminal::printed_on_terminal;

/// Whoever takes one of them for anything but a name makes this file.
fn hostile(mark: &Path) -> [String; 7] {
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

const OF_TARGETS: &str = "letters, digits, '.', '_' or '-'";
const OF_SSH: &str = "an ssh target is a host or an alias";

#[test]
fn a_name_that_could_be_anything_else_is_refused() {
    if skipped() {
        return;
    }
    let hub = Hub::new();
    let mark = hub.world.dir().join("made");
    let more = ["a;b", "a b", "a\nb", "a'b", "ä", "", "`id`"].map(str::to_owned);
    for bad in hostile(&mark).into_iter().chain(more) {
        let added = hub.agtmux(&["target", "add", "--json", "--", &bad]);
        assert_eq!(added.code, Some(5), "{bad:?}: {}", added.text());
        let said = format!("{}{}", added.text(), added.stderr);
        assert!(said.contains(OF_TARGETS) && said.contains("agtmux target add --help"), "{bad:?}: {said}");
        let added = hub.agtmux(&["target", "add", "vm1", &format!("--ssh-target={bad}")]);
        assert_eq!(added.code, Some(5), "{bad:?}: {}", added.stderr);
        assert!(added.stderr.contains(OF_SSH), "{bad:?}: {}", added.stderr);
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
fn assert_handled(hub: &Hub, host: &Host, agent: &Agent, name: &str) {
    let alias = host.alias();
    let idle = hub.becomes(alias, agent, "idle");
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
    let typed = agent.typed().replace('\r', "\n");
    assert!(typed.contains(&text), "{place:?}: {typed:?}");

    let mut attach = hub.world.agtmux();
    attach.args(["attach", &runtime(&idle)]);
    thread::scope(|scope| {
        let gone_there = scope.spawn(move || printed_on_terminal(&mut attach, 100));
        let clients = |format: &str| agent.server.run(&["list-clients", "-F", format]);
        wait_until("a client there", SOON, || clients("#{pane_id}") == agent.pane);
        agent.server.run(&["detach-client", "-t", &clients("#{client_name}")]);
        gone_there.join().expect("it ends");
    });
}

/// Sessions of these names on a host with that login shell, with agtmux and without.
fn through(shell: &str) {
    if skipped() {
        return;
    }
    if !Path::new(shell).exists() {
        return eprintln!("SKIPPED: no {shell}: run scripts/ensure-tools shells");
    }
    let hub = Hub::new();
    let mark = hub.world.dir().join("made");
    for (alias, agtmux) in [("vm1", Some(PathBuf::from(env!("CARGO_BIN_EXE_agtmux")))), ("vm2", None)] {
        let evidence = if agtmux.is_some() { "native" } else { "screen" };
        let host = hub.hosts.start(alias, HostOptions { agtmux, shell: Some(shell.into()), ..HostOptions::default() });
        configure(host.world(), SETTINGS);
        assert_eq!(hub.agtmux(&["target", "add", alias]).code, Some(0));
        assert_eq!(hub.target(alias)["evidence"], evidence);
        let names = hostile(&mark);
        let agents: Vec<Agent> = names.iter().map(|name| Agent::start(host.world(), name)).collect();
        for (name, agent) in names.iter().zip(&agents) {
            assert_handled(&hub, &host, agent, name);
        }
        for (name, agent) in names.iter().zip(&agents) {
            let typed = agent.typed();
            assert_eq!(typed.matches(" to %").count(), 1, "{name:?}, and nobody else's: {typed:?}");
        }
        assert!(!mark.exists(), "something was run");
        assert_eq!(hub.agtmux(&["target", "remove", alias, "--yes"]).code, Some(0));
        assert_eq!(hub.items(alias), Vec::<Value>::new());
    }
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_sh() {
    through("/bin/sh");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_bash() {
    through("/bin/bash");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_zsh() {
    through("/usr/bin/zsh");
}

#[test]
fn sessions_of_any_name_are_handled_exactly_through_fish() {
    through("/usr/bin/fish");
}
