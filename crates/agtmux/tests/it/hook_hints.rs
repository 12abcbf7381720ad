//! Changes that agtmux finds through hints. Reconciling is turned off, except in the tests whose names mention it.

use std::fs;

use agtmux_testkit::agtmux::{
    SOON, agtmux, configure, items, list, start, stop, wait_for_hooks, wait_for_panes, world,
};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};
use serde_json::Value;

/// Intervals longer than any test.
const NO_RECONCILE: &str = "[observe]\nreconcile_active = '1h'\nreconcile_idle = '1h'\n";

/// A tmux server without automatic renaming, in a world without reconciling.
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

/// Two kinds of hints are missing here: tmux has no hook for a respawn, and the terminal that agtmux watched is gone
/// since the pane died.
#[test]
fn a_respawned_dead_pane_is_listed_as_alive() {
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
        wait_for(&format!("respawn {round}"), SOON, || {
            let listing = list(&world);
            if dead(&listing) == Some(false) { Ok(()) } else { Err(listing.to_string()) }
        });
    }
    stop(&world);
}

/// A cleanup tool may delete the directory.
#[test]
fn hooks_recover_after_their_directory_is_removed() {
    let world = world();
    let server = server_without_reconcile(&world);
    start(&world);
    wait_for_hooks(&world, "default");
    let hook_dir = world.state_dir().join("hooks");
    let files = || fs::read_dir(&hook_dir).map(|entries| entries.count()).unwrap_or_default();
    for round in 0..3 {
        // The daemon may put its file back before the directory is removed.
        wait_until("the directory to be removed", SOON, || fs::remove_dir_all(&hook_dir).is_ok());
        wait_until("the file of our hooks", SOON, || files() == 1);
        let name = format!("round-{round}");
        server.run(&["rename-window", "-t", "=work:", &name]);
        wait_for_name(&world, "windows", &name);
    }
    assert_eq!(server.run(&["source-file", "/dev/null"]), "", "no hook left an error");
    stop(&world);
    assert_eq!(files(), 0, "the daemon removes its hook file when it stops");
}

/// A session with hooks of its own does not run the global ones.
#[test]
fn a_session_with_its_own_hooks_is_still_followed() {
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
    assert_eq!(server.run(&["show-options", "-gv", "@theirs"]), "ran", "the user's hook runs as well");
}

/// A window with hooks of its own does not run the global ones. agtmux does not query the hooks of every window, so
/// only reconciling finds this change.
#[test]
fn a_window_with_its_own_hooks_is_found_by_reconciling() {
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
