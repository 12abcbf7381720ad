//! Starts a daemon with a TCP port, and sends raw HTTP requests to this port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::agtmux::{SOON, agtmux, configure, start};
use crate::http::{self, HttpResponse};
use crate::{TestWorld, wait_for};

pub struct WebAccess {
    pub address: SocketAddr,
    pub token: String,
    pub read_only: String,
}

/// Starts a daemon with the web port.
#[track_caller]
pub fn start_with_web(world: &TestWorld) -> WebAccess {
    start_with_web_settings(world, "")
}

/// Starts a daemon with the web port and these settings.
#[track_caller]
pub fn start_with_web_settings(world: &TestWorld, settings: &str) -> WebAccess {
    // Actions from agents are allowed, because an agent may run these tests.
    configure(world, &format!("actions.allow_from_agents = true\nweb.listen = '127.0.0.1:0'\n{settings}"));
    start(world);
    let token = |name: &str| std::fs::read_to_string(world.state_dir().join(name)).expect("a token");
    WebAccess {
        address: address(&login_link(world, &[])),
        token: token("web-token"),
        read_only: token("web-token-read-only"),
    }
}

/// The method and the path of every operation in the OpenAPI document. In the paths, each parameter has its own name as
/// a dummy value.
#[track_caller]
pub fn operations(world: &TestWorld) -> Vec<(String, String)> {
    let contract = http::get(&world.socket(), "/v1/openapi.json").json();
    let paths = contract["paths"].as_object().expect("paths");
    let of = |(path, methods): (&String, &Value)| {
        let path = path.replace(['{', '}'], "");
        let methods: Vec<String> = methods.as_object().expect("methods").keys().map(|m| m.to_uppercase()).collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// The link that `agtmux web url` prints.
#[track_caller]
pub fn login_link(world: &TestWorld, args: &[&str]) -> String {
    let done = agtmux(world, &[&["web", "url"], args].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.text().trim().to_owned()
}

fn address(link: &str) -> SocketAddr {
    let host = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
    host.parse().expect("an address and a port")
}

impl WebAccess {
    /// Sends a request with these headers. The correct Host header is added.
    #[track_caller]
    pub fn request(&self, line: &str, headers: &[&str], body: &str) -> HttpResponse {
        let host = format!("Host: {}", self.address);
        self.request_raw(line, &[&[host.as_str()], headers].concat(), body)
    }

    #[track_caller]
    pub fn request_raw(&self, line: &str, headers: &[&str], body: &str) -> HttpResponse {
        let mut stream = TcpStream::connect(self.address).expect("the port is open");
        stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        let headers = headers.join("\r\n");
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n{length}\r\n{body}");
        stream.write_all(request.as_bytes()).expect("the daemon reads the request");
        read(&mut stream)
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub fn read_only_bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.read_only)
    }

    /// Exchanges the code in a login link for a token, in the same way as the web page.
    #[track_caller]
    pub fn log_in(&self, link: &str) -> HttpResponse {
        let code = link.split_once("/#code=").unwrap_or_else(|| panic!("no code in {link}")).1;
        let headers = ["Content-Type: application/json", "X-Agtmux: 1"];
        self.request("POST /v1/web/login", &headers, &format!(r#"{{"code":"{code}"}}"#))
    }
}

/// Reads a complete response. From an event stream, reads only the head of the response.
#[track_caller]
fn read(stream: &mut TcpStream) -> HttpResponse {
    let mut bytes = Vec::new();
    wait_for("a response", SOON, || {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).unwrap_or(0);
        bytes.extend_from_slice(&chunk[..count]);
        let streams = bytes.windows(17).any(|w| w == b"text/event-stream");
        let has_head = bytes.windows(4).any(|w| w == b"\r\n\r\n");
        if count == 0 || (streams && has_head) { HttpResponse::parse(&bytes) } else { None }
    })
}
