//! A daemon with a port, and requests by hand: also those that no browser would send.

#![allow(dead_code, reason = "each test file needs another part of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use agtmux_testkit::{TestWorld, wait_for};

use super::agtmux::{SOON, agtmux, configure, start};
use super::http::Answer;

pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) read_only: String,
}

/// Starts a daemon that lets browsers in.
#[track_caller]
pub(crate) fn open(world: &TestWorld) -> Web {
    // The tests may themselves be run by an agent.
    configure(world, "actions.allow_from_agents = true\nweb.listen = '127.0.0.1:0'\n");
    start(world);
    let token = |name: &str| std::fs::read_to_string(world.state_dir().join(name)).expect("a token");
    Web { address: address(&link(world, &[])), token: token("web-token"), read_only: token("web-token-read-only") }
}

/// What `agtmux web url` prints.
#[track_caller]
pub(crate) fn link(world: &TestWorld, args: &[&str]) -> String {
    let done = agtmux(world, &[&["web", "url"], args].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.text().trim().to_owned()
}

fn address(link: &str) -> SocketAddr {
    let host = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
    host.parse().expect("an address and a port")
}

impl Web {
    /// A request with our own host, and these headers besides.
    #[track_caller]
    pub(crate) fn ask(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let host = format!("Host: {}", self.address);
        self.raw(line, &[&[host.as_str()], headers].concat(), body)
    }

    #[track_caller]
    pub(crate) fn raw(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("the port is open");
        stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        let headers = headers.join("\r\n");
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n{length}\r\n{body}");
        stream.write_all(request.as_bytes()).expect("it is read");
        read(&mut stream)
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }
}

/// A whole answer, or the head of one that does not end.
#[track_caller]
fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    wait_for("an answer", SOON, || {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap_or(0);
        bytes.extend_from_slice(&some[..count]);
        let streams = bytes.windows(17).any(|w| w == b"text/event-stream");
        let has_head = bytes.windows(4).any(|w| w == b"\r\n\r\n");
        if count == 0 || (streams && has_head) { Answer::parse(&bytes) } else { None }
    })
}
