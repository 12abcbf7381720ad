//! The first command of a fresh daemon waits for the first look at the panes.

use std::fs;

use agtmux_testkit::TestWorld;
use agtmux_testkit::action_fixture::SETTINGS;
use agtmux_testkit::agtmux::{agtmux, configure, errors, items, start, stop, world};
use agtmux_testkit::fake_agent::FakeAgent;

const AGENTS: usize = 6;

fn fresh_store(world: &TestWorld) {
    if world.socket().exists() {
        stop(world);
    }
    let _ = fs::remove_dir_all(world.state_dir());
}

fn world_with_agents() -> (TestWorld, Vec<FakeAgent>) {
    let world = world();
    configure(&world, SETTINGS);
    let agents = (0..AGENTS).map(|n| FakeAgent::start(&world, &format!("work{n}"))).collect();
    (world, agents)
}

#[test]
fn the_first_list_shows_the_states() {
    let (world, agents) = world_with_agents();
    agents[0].draw_scene("dialog");
    agents[1].draw_scene("running");
    for restart in ["a fresh store", "a fresh store again", "a restart"] {
        if restart == "a restart" {
            stop(&world);
        } else {
            fresh_store(&world);
        }
        let listing = agtmux(&world, &["list", "panes", "--json"]).json();
        let mut states: Vec<&str> = items(&listing).iter().filter_map(|item| item["state"].as_str()).collect();
        states.sort_unstable();
        let mut expected = vec!["idle"; AGENTS - 2];
        expected.extend(["running", "waiting_approval"]);
        assert_eq!(states, expected, "after {restart}: {listing}");
    }
}

#[test]
fn the_first_command_of_each_kind_knows_the_agent() {
    let (world, agents) = world_with_agents();
    agents[0].draw_scene("asks");
    let (waiting, idle) = (agents[0].pane.as_str(), agents[1].pane.as_str());
    for args in [
        &["send", idle, "--text", "hello"][..],
        &["explain", idle],
        &["wait", idle, "--for", "idle", "--timeout", "20s"],
        &["watch", "--once", "--format", "table"],
        &["respond", waiting, "1"],
    ] {
        fresh_store(&world);
        let done = agtmux(&world, args);
        assert_eq!(done.code, Some(0), "{args:?}: {}{}", done.text(), done.stderr);
        assert!(args[0] != "watch" || !done.text().contains("unknown"), "{}", done.text());
    }
    assert_eq!(agents[1].submitted_texts(), ["hello"]);
}

#[test]
fn a_server_that_does_not_answer_delays_the_first_list_only_for_a_while() {
    let (world, _agents) = world_with_agents();
    let hung = world.tmux("hung");
    hung.new_session("other", "cat");
    let stopped = hung.stop();
    fresh_store(&world);
    let listing = agtmux(&world, &["list", "panes", "--json"]).json();
    let states: Vec<&str> = items(&listing).iter().filter_map(|item| item["state"].as_str()).collect();
    assert_eq!(states, ["idle"; AGENTS]);
    assert!(errors(&listing).iter().all(|(_, server)| server.as_deref() == Some("hung")), "{listing}");
    hung.cont(stopped);
}

#[test]
fn the_status_line_does_not_wait_for_the_first_look() {
    let (world, _agents) = world_with_agents();
    // No daemon opens the socket before its first look, so the status line has nothing to wait for.
    let status = agtmux(&world, &["status"]);
    assert_ne!(status.code, Some(0));
    start(&world);
    let status = agtmux(&world, &["status"]);
    assert!(status.text().contains(&format!("{AGENTS} idle")), "{}", status.text());
}
