//! Requests to the bridge API. Tests use them to post hooks and to follow events.

use std::io::Write;

use serde_json::{Value, json};

use crate::TestWorld;
use crate::http::{self, HttpResponse, SseClient, connect, request};

/// Posts a JSON body to the daemon.
#[track_caller]
pub fn post(world: &TestWorld, path: &str, body: &str) -> HttpResponse {
    http::post(&world.socket(), path, body)
}

/// Posts a hook and checks that the daemon accepts it. Returns the agent id.
#[track_caller]
pub fn hook(world: &TestWorld, event: &str, body: &Value) -> String {
    let answer = post(world, &format!("/hook/{event}"), &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()["agent_id"].as_str().expect("an id").to_owned()
}

/// The body of a session-start hook for an agent in this pane.
pub fn session_start(session: &str, pane: &str, socket: &std::path::Path) -> Value {
    json!({"session_id": session, "tmux_pane": pane, "tmux": format!("{},1,0", socket.display()), "working_directory": "/tmp"})
}

/// Opens the bridge event stream and waits for its response head.
#[track_caller]
pub fn follow(world: &TestWorld, query: &str, last_event_id: Option<u64>) -> SseClient {
    let mut stream = connect(&world.socket());
    let header = last_event_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    stream
        .write_all(&request("GET", &format!("/api/events/stream{query}"), &header))
        .expect("the daemon reads the request");
    read_response_head(&mut stream);
    SseClient::from_stream(stream)
}

fn read_response_head(stream: &mut std::os::unix::net::UnixStream) {
    use std::io::Read;
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a head") == 1 {
        seen.push(byte[0]);
    }
    assert!(seen.windows(5).any(|five| five == b" 200 "), "{}", String::from_utf8_lossy(&seen));
}
