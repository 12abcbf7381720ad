//! A missing, hung, broken or dead tmux is reported, and the last known state is kept.

mod broken_tmux;
mod custom_socket_server;
mod dead_servers;
mod discovery;
mod watch;

use std::time::Duration;

use agtmux_testkit::agtmux::{SOON, errors, items, list};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::Value;

/// How soon an outage must be detected. The goal is two seconds; a test machine may be busy.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// A server with an agent, a second pane and a second window.
fn server_with_agent(world: &TestWorld, name: &str) -> TestTmuxServer {
    let server = world.tmux(name);
    server.new_session("work", &world.fake_agent_command("claude"));
    server.run(&["split-window", "-t", "=work:", "cat"]);
    server.run(&["new-window", "-t", "=work:", "-n", "more", "cat"]);
    server
}

fn agent(listing: &Value, server: &str) -> Option<Value> {
    items(listing).iter().find(|i| i["identity"]["server"] == server && i["agent_type"] == "claude").cloned()
}

#[track_caller]
fn wait_for_agent(world: &TestWorld, server: &str, reason: &str) -> Value {
    wait_for(&format!("the agent on {server} as unknown/{reason}"), SOON, || {
        let listing = list(world);
        let fits = agent(&listing, server).filter(|a| a["state"] == "unknown" && a["reason_code"] == reason);
        fits.ok_or(listing.to_string())
    })
}

#[track_caller]
fn wait_for_error(world: &TestWorld, code: &str, server: Option<&str>) -> Value {
    let wanted = (code.to_owned(), server.map(str::to_owned));
    wait_for(&format!("{code} for {server:?}"), SOON, || {
        let listing = list(world);
        if errors(&listing).contains(&wanted) { Ok(listing) } else { Err(listing.to_string()) }
    })
}

#[track_caller]
fn wait_for_health(world: &TestWorld) -> Value {
    wait_for("a listing without errors", SOON, || {
        let listing = list(world);
        if listing["partial"] == false { Ok(listing) } else { Err(listing.to_string()) }
    })
}

fn error_of(listing: &Value, code: &str) -> Value {
    let errors = listing["target_errors"].as_array().cloned().unwrap_or_default();
    errors.into_iter().find(|error| error["code"] == code).unwrap_or_else(|| panic!("no {code} in {listing}"))
}
