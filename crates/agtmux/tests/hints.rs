//! Changes are seen when they are hinted at: here nobody looks for them by himself.

#[path = "support/trial_agtmux.rs"]
mod agtmux;

use std::fs;

use agtmux::{SOON, agtmux, configure, items, list, start, stop, wait_for_hooks, wait_for_panes, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};
use serde_json::Value;

/// So rarely that a test would not live to see it.
const NO_RECONCILE: &str = "[observe]\nreconcile_active = '1h'\nreconcile_idle = '1h'\n";

/// A server whose hooks stand and whose names nobody changes but the test.
fn server_without_reconcile(world: &TestWorld) -> TestTmuxServer {
    configure(world, NO_RECONCILE);
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-wg", "automatic-rename", "off"]);
    server
}

#[track_caller]
fn wait_for_name(world: &TestWorld, what: &str, name: &str) {
    wait_for(&format!("{what} called {name}"), SOON, || {
        let listing = agtmux(world, &["list", what, "--all", "--json"]).json();
        if listing.to_string().contains(name) { Ok(()) } else { Err(listing.to_string()) }
    });
}

/// tmux has no hook for it, and the old terminal is gone with whoever died in it.
#[test]
fn a_dead_pane_in_which_something_starts_again_is_seen() {
    let world = world();
    let server = server_without_reconcile(&world);
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let pane = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "read line; exit 3"]);
    start(&world);
    wait_for_hooks(&world, "default");
    wait_for_panes(&world, "default", &["%0".into(), pane.clone()]);
    let dead = |listing: &Value| {
        let item = items(listing).iter().find(|item| item["identity"]["pane_id"] == pane.as_str()).cloned();
        item.map(|item| !item["dead"].is_null())
    };
    for round in 0..3 {
        server.run(&["send-keys", "-t", &pane, "Enter"]);
        wait_for(&format!("death {round}"), SOON, || {
            let listing = list(&world);
            if dead(&listing) == Some(true) { Ok(()) } else { Err(listing.to_string()) }
        });
        server.run(&["respawn-pane", "-t", &pane, "read line; exit 3"]);
        wait_for(&format!("life {round} after death"), SOON, || {
            let listing = list(&world);
            if dead(&listing) == Some(false) { Ok(()) } else { Err(listing.to_string()) }
        });
    }
    stop(&world);
}

/// Whoever tidies up may take it for rubbish.
#[test]
fn hooks_work_again_after_their_directory_was_removed() {
    let world = world();
    let server = server_without_reconcile(&world);
    start(&world);
    wait_for_hooks(&world, "default");
    let notes = world.state_dir().join("hooks");
    let files = || fs::read_dir(&notes).map(|entries| entries.count()).unwrap_or_default();
    for round in 0..3 {
        fs::remove_dir_all(&notes).expect("it is there");
        wait_until("the file of our hooks", SOON, || files() == 1);
        let name = format!("round-{round}");
        server.run(&["rename-window", "-t", "=work:", &name]);
        wait_for_name(&world, "windows", &name);
    }
    assert_eq!(server.run(&["source-file", "/dev/null"]), "", "no hook left an error");
    stop(&world);
    assert_eq!(files(), 0, "it is taken away in the end");
}

/// A session with hooks of its own does not run the global ones.
#[test]
fn a_session_with_hooks_of_its_own_is_followed() {
    let world = world();
    let server = server_without_reconcile(&world);
    server.new_session("own", "cat");
    server.run(&["set-hook", "-t", "=own:", "session-renamed[0]", "set-option -g @theirs ran"]);
    start(&world);
    wait_for_hooks(&world, "default");
    for (from, to) in [("own", "own-too"), ("work", "work-too")] {
        server.run(&["rename-session", "-t", &format!("={from}"), to]);
        wait_for_name(&world, "sessions", to);
    }
    assert_eq!(server.run(&["show-options", "-gv", "@theirs"]), "ran", "theirs runs as well");
}

/// The same for a window, whose hooks are not worth a question for each window: there the net is for it.
#[test]
fn a_window_with_hooks_of_its_own_is_seen_by_looking() {
    let world = world();
    let server = server_without_reconcile(&world);
    configure(&world, "");
    server.run(&["set-hook", "-w", "-t", "=work:", "window-renamed[0]", "set-option -g @theirs ran"]);
    start(&world);
    wait_for_hooks(&world, "default");
    server.run(&["rename-window", "-t", "=work:", "hidden"]);
    wait_for_name(&world, "windows", "hidden");
    assert_eq!(server.run(&["show-options", "-gv", "@theirs"]), "ran");
}
