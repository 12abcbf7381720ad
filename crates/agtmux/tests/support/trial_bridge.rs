//! What a dashboard of the tmux-bridge kind does: hooks in, events out.

#![allow(dead_code, reason = "each test file needs another part of it")]

use std::io::Write;

use agtmux_testkit::TestWorld;
use serde_json::{Value, json};

use super::http::{Answer, Events, connect, request, send};

/// Sends a body as JSON.
#[track_caller]
pub(crate) fn post(world: &TestWorld, path: &str, body: &str) -> Answer {
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let bytes = [request("POST", path, &head), body.as_bytes().to_vec()].concat();
    send(&world.socket(), &bytes).unwrap_or_else(|| panic!("no answer to POST {path}"))
}

/// A hook that is taken. Gives the agent's id.
#[track_caller]
pub(crate) fn hook(world: &TestWorld, event: &str, body: &Value) -> String {
    let answer = post(world, &format!("/hook/{event}"), &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()["agent_id"].as_str().expect("an id").to_owned()
}

/// The hook that an agent in this pane begins with.
pub(crate) fn session_start(session: &str, pane: &str, socket: &std::path::Path) -> Value {
    json!({"session_id": session, "tmux_pane": pane, "tmux": format!("{},1,0", socket.display()), "working_directory": "/tmp"})
}

/// Reads the stream of the bridge. It stands when this returns.
#[track_caller]
pub(crate) fn follow(world: &TestWorld, query: &str, last_event_id: Option<u64>) -> Events {
    let mut stream = connect(&world.socket());
    let header = last_event_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    stream.write_all(&request("GET", &format!("/api/events/stream{query}"), &header)).expect("it is read");
    wait_for_head(&mut stream);
    Events::read(stream)
}

fn wait_for_head(stream: &mut std::os::unix::net::UnixStream) {
    use std::io::Read;
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a head") == 1 {
        seen.push(byte[0]);
    }
    assert!(seen.windows(5).any(|five| five == b" 200 "), "{}", String::from_utf8_lossy(&seen));
}
