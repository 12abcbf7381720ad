//! Several servers, restarted servers, and windows shown in several sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use agtmux_api::wire::{ListSummary, PaneItem, SessionItem, WindowItem};
use agtmux_core::state::State;
use agtmux_testkit::agtmux::world;
use agtmux_testkit::{TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

use super::entries::listing;

const SOON: Duration = Duration::from_secs(20);

/// The runtime ids of all agents by server, session and pane.
fn agents(world: &TestWorld) -> BTreeMap<String, String> {
    let with_agent = |item: PaneItem| {
        let place = format!("{} {} {}", item.identity.server, item.identity.session_name, item.identity.pane_id);
        Some((place, item.runtime_id?))
    };
    listing::<PaneItem>(world, "panes").items.into_iter().filter_map(with_agent).collect()
}

#[track_caller]
fn wait_for_agents(world: &TestWorld, places: &[&str]) -> BTreeMap<String, String> {
    wait_for(&format!("agents exactly in {places:?}"), SOON, || {
        let found = agents(world);
        if found.keys().eq(places) { Ok(found) } else { Err(found) }
    })
}

/// The command of a fake agent. Call this function only once: it writes the program file, which cannot be written again
/// while the program runs.
fn claude(world: &TestWorld) -> String {
    world.fake_agent_command("claude")
}

#[test]
fn two_servers_with_the_same_ids_are_kept_apart() {
    let world = world();
    let claude = claude(&world);
    for name in ["first", "second"] {
        world.tmux(name).new_session("work", &claude);
    }
    let found = wait_for_agents(&world, &["first work %0", "second work %0"]);
    assert_ne!(found["first work %0"], found["second work %0"]);
    assert_eq!(listing::<PaneItem>(&world, "panes").summary.by_agent, BTreeMap::from([("claude".into(), 2)]));
}

#[test]
fn a_restarted_server_has_new_runtimes() {
    let world = world();
    let (first, second) = (world.tmux("first"), world.tmux("second"));
    let claude = claude(&world);
    first.new_session("work", &claude);
    second.new_session("work", &claude);
    let before = wait_for_agents(&world, &["first work %0", "second work %0"]);
    first.kill_server();
    first.new_session("work", &claude);
    let after = wait_for("a new agent in the same pane", SOON, || {
        let found = agents(&world);
        let is_another = found.get("first work %0").is_some_and(|runtime| *runtime != before["first work %0"]);
        if is_another && found.len() == 2 { Ok(found) } else { Err(found) }
    });
    assert_eq!(after["second work %0"], before["second work %0"], "the other server is unchanged");
}

/// A crashed server leaves its socket, which the next server reuses.
#[test]
fn a_crashed_server_and_its_successor_are_kept_apart() {
    let world = world();
    let server = world.tmux("first");
    let claude = claude(&world);
    server.new_session("before", &claude);
    server.run(&["new-window", "-d", "-t", "=before:", &world.fake_agent_command("codex")]);
    let before = wait_for_agents(&world, &["first before %0", "first before %1"]);
    let pid = server.pid();
    process::signal(pid, Signal::KILL);
    wait_until("the server to end", SOON, || !process::is_alive(pid));
    server.new_session("after", &claude);
    let after = wait_for_agents(&world, &["first after %0"]);
    assert_ne!(after["first after %0"], before["first before %0"]);
    let left: Vec<PaneItem> = listing(&world, "panes").items;
    assert!(left.iter().all(|item| item.identity.session_name == "after"), "{left:?}");
}

#[test]
fn a_linked_window_is_listed_per_session_and_counted_once() {
    let world = world();
    let server = world.tmux("first");
    server.new_session("one", &claude(&world));
    server.new_session("two", "exec cat");
    server.run(&["link-window", "-d", "-s", "=one:0", "-t", "=two:5"]);
    // The window is also linked twice into one session, where it counts as one window.
    server.run(&["link-window", "-d", "-s", "=one:0", "-t", "=one:7"]);
    wait_for_agents(&world, &["first one %0", "first two %0"]);
    assert_shared_by(&world, &["one", "two"]);
    let panes_of = |session: &str| wait_for_session(&world, session).panes;
    assert_eq!((panes_of("one"), panes_of("two")), (1, 2));
}

#[test]
fn grouped_sessions_are_listed_individually_and_counted_once() {
    let world = world();
    let server = world.tmux("first");
    server.new_session("one", &claude(&world));
    server.run(&["new-session", "-d", "-s", "two", "-t", "=one"]);
    server.run(&["new-session", "-d", "-s", "three", "-t", "=one"]);
    wait_for_agents(&world, &["first one %0", "first three %0", "first two %0"]);
    assert_shared_by(&world, &["one", "three", "two"]);
    server.run(&["new-window", "-d", "-t", "=two:", "exec cat"]);
    wait_until("the new window in all three sessions", SOON, || {
        ["one", "three", "two"].iter().all(|session| wait_for_session(&world, session).windows == 2)
    });
    server.run(&["kill-session", "-t", "=one"]);
    wait_for_agents(&world, &["first three %0", "first two %0"]);
    assert_counted_once(&listing::<PaneItem>(&world, "panes").summary);
}

/// Checks that one agent is listed in each of these sessions.
#[track_caller]
fn assert_shared_by(world: &TestWorld, sessions: &[&str]) {
    let panes = listing::<PaneItem>(world, "panes");
    assert_counted_once(&panes.summary);
    let windows = listing::<WindowItem>(world, "windows");
    assert_counted_once(&windows.summary);
    let shown = windows.items.iter().filter(|window| window.counts.of(State::Unknown) == 1);
    assert!(shown.map(|window| window.identity.session_name.as_str()).eq(sessions.iter().copied()));
    let all = listing::<SessionItem>(world, "sessions");
    assert_counted_once(&all.summary);
    let shown = all.items.iter().filter(|session| session.counts.of(State::Unknown) == 1);
    assert!(shown.map(|session| session.identity.session_name.as_str()).eq(sessions.iter().copied()));
}

#[track_caller]
fn assert_counted_once(summary: &ListSummary) {
    assert_eq!(summary.by_agent, BTreeMap::from([("claude".into(), 1)]));
    assert_eq!(summary.by_target, BTreeMap::from([("host".into(), 1)]));
    assert_eq!(summary.by_state.of(State::Unknown), 1);
}

#[track_caller]
fn wait_for_session(world: &TestWorld, name: &str) -> SessionItem {
    wait_for(&format!("session {name}"), SOON, || {
        listing::<SessionItem>(world, "sessions").items.into_iter().find(|item| item.identity.session_name == name)
    })
}
