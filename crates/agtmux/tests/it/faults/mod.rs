//! What runs out or disappears while the daemon runs, and commands that meet a stopped or different daemon.

mod exhaustion;
mod lifecycle;
mod removed_files;
mod spool_writers;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use agtmux_testkit::agtmux::items;
use agtmux_testkit::http::{HttpResponse, connect};
use serde_json::Value;

/// A connection that stays open for several requests.
struct OpenConnection(UnixStream);

impl OpenConnection {
    #[track_caller]
    fn new(socket: &Path) -> Self {
        Self(connect(socket))
    }

    /// Sends a request and returns the answer. `None` if the daemon closed the connection.
    fn send(&mut self, method: &str, path: &str, body: &str) -> Option<HttpResponse> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: agtmux\r\ncontent-type: application/json\r\n");
        self.0.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()?;
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 16 << 10];
            let count = self.0.read(&mut chunk).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&chunk[..count]);
            if let Some(answer) = HttpResponse::parse(&bytes).filter(is_complete) {
                return Some(answer);
            }
        }
    }

    #[track_caller]
    fn get(&mut self, path: &str) -> Value {
        self.send("GET", path, "").unwrap_or_else(|| panic!("no answer to GET {path}")).json()
    }

    #[track_caller]
    fn health(&mut self) -> Value {
        self.get("/v1/health")
    }

    /// The runtime ids of all agents, sorted.
    #[track_caller]
    fn runtimes(&mut self) -> Vec<String> {
        runtimes(&self.get("/v1/panes"))
    }
}

fn is_complete(answer: &HttpResponse) -> bool {
    let head = answer.head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.body.len() >= length)
}

fn runtimes(listing: &Value) -> Vec<String> {
    let ids = items(listing).iter().filter_map(|item| item["runtime_id"].as_str());
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.sort();
    ids
}
