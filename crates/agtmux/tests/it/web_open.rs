//! `agtmux web`: opens and closes the port, and manages the browsers that are logged in.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, start, world};
use agtmux_testkit::web::{WebAccess, start_with_web};
use agtmux_testkit::{TestWorld, http, wait_until};
use serde_json::Value;

/// Agents may act, because an agent may run these tests.
const SETTINGS: &str = "actions.allow_from_agents = true\n";

/// Runs `agtmux web` with these arguments. Returns the link and the open port.
fn open(world: &TestWorld, args: &[&str]) -> (String, WebAccess) {
    let done = agtmux(world, &[&["web"], args].concat());
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let link = done.text().trim().to_owned();
    let logins = list(world);
    let address: SocketAddr = logins["address"].as_str().expect("the port is open").parse().expect("an address");
    (link, WebAccess { address, token: String::new(), read_only: String::new() })
}

fn list(world: &TestWorld) -> Value {
    let done = agtmux(world, &["web", "sessions", "--json"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.json()
}

fn bearer(session: &Value) -> String {
    format!("Authorization: Bearer {}", session["token"].as_str().expect("a token"))
}

#[test]
fn one_command_opens_the_port_and_another_closes_it() {
    let world = world();
    configure(&world, SETTINGS);
    start(&world);
    assert_eq!(list(&world)["open"], false);
    let (link, web) = open(&world, &[]);
    assert!(web.address.ip().is_loopback() && link.starts_with(&format!("http://{}/#code=", web.address)), "{link}");
    let session = web.log_in(&link).json();
    assert_eq!(web.request("GET /v1/panes", &[&bearer(&session)], "").status, 200);
    // A second call keeps the port and the login.
    let (second, same) = open(&world, &["--read-only"]);
    assert_eq!(same.address, web.address);
    assert_eq!(same.log_in(&second).json()["read_only"], true);
    assert_eq!(web.request("GET /v1/panes", &[&bearer(&session)], "").status, 200);
    let stopped = agtmux(&world, &["web", "stop"]);
    assert_eq!((stopped.code, stopped.text().trim()), (Some(0), "the web port is closed; 2 logins ended"));
    assert!(TcpStream::connect(web.address).is_err(), "the port is closed");
    let again = agtmux(&world, &["web", "stop"]);
    assert!(again.code == Some(5) && again.stderr.contains("agtmux web"), "{}", again.stderr);
    // The old logins do not come back with the port.
    let (_, reopened) = open(&world, &[]);
    assert_eq!(reopened.request("GET /v1/panes", &[&bearer(&session)], "").status, 401);
    let audit = http::get(&world.socket(), "/v1/audit").json();
    let summaries: Vec<&str> = items(&audit).iter().filter_map(|row| row["what"].as_str()).collect();
    assert!(summaries.contains(&"open the web port") && summaries.contains(&"close the web port"), "{summaries:?}");
}

#[test]
fn the_port_closes_after_the_time_that_was_asked_for() {
    let world = world();
    configure(&world, SETTINGS);
    start(&world);
    let (_, web) = open(&world, &["--for", "8h"]);
    assert!(list(&world)["closes_at"].is_string());
    open(&world, &["--for", "1s"]);
    wait_until("the end of the port", SOON, || list(&world)["open"] == false);
    assert!(TcpStream::connect(web.address).is_err());
    let refused = agtmux(&world, &["web", "--for", "0s"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
}

#[test]
fn a_revoked_browser_loses_its_access_and_its_streams() {
    let world = world();
    configure(&world, SETTINGS);
    start(&world);
    let (link, web) = open(&world, &[]);
    let session = web.log_in(&link).json();
    let kept = web.log_in(&open(&world, &[]).0).json();
    let mut streams = ["/v1/events", "/api/events/stream"].map(|path| {
        let mut stream = TcpStream::connect(web.address).expect("the port is open");
        stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n\r\n",
            web.address,
            bearer(&session)
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("a response");
        assert_eq!(&first, b"HTTP/1.1 200");
        stream
    });
    let logins = list(&world);
    assert_eq!(items(&logins).len(), 2, "{logins}");
    // The logins of one test may begin in the same millisecond, so each is tried.
    let ids: Vec<&str> = items(&logins).iter().filter_map(|login| login["id"].as_str()).collect();
    assert!(ids.iter().all(|id| !session.to_string().contains(id)), "an id reveals nothing of a token");
    let shown = agtmux(&world, &["web", "sessions"]).text();
    assert!(ids.iter().all(|id| shown.contains(id)) && shown.contains("full"), "{shown}");
    // The latest login is first, so the other one is that of the streams.
    assert_eq!(agtmux(&world, &["web", "revoke", ids[1]]).code, Some(0));
    for stream in &mut streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the stream ends");
    }
    assert_eq!(web.request("GET /v1/panes", &[&bearer(&session)], "").status, 401);
    assert_eq!(web.request("GET /v1/panes", &[&bearer(&kept)], "").status, 200);
    let unknown = agtmux(&world, &["web", "revoke", ids[1]]);
    assert!(unknown.code != Some(0) && unknown.stderr.contains("agtmux web sessions"), "{}", unknown.stderr);
}

#[test]
fn a_browser_cannot_manage_web_access() {
    let world = world();
    let web = start_with_web(&world);
    let headers = [web.bearer(), "Content-Type: application/json".into(), "X-Agtmux: 1".into()];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    for path in ["/v1/web/open", "/v1/web/link", "/v1/web/revoke", "/v1/web/stop"] {
        assert_eq!(web.request(&format!("POST {path}"), &headers, "{}").status, 403, "{path}");
    }
    let session = web.log_in(&agtmux_testkit::web::login_link(&world, &[])).json();
    let logins = web.request("GET /v1/web/logins", &headers, "");
    let token = session["token"].as_str().expect("a token");
    assert!(logins.status == 200 && !logins.json().to_string().contains(token), "the list gives no access");
}

#[test]
fn a_public_address_is_part_of_the_link_and_an_allowed_host() {
    let world = world();
    configure(&world, &format!("{SETTINGS}web.public_url = 'https://agents.example/'\n"));
    start(&world);
    let (link, web) = open(&world, &[]);
    assert!(link.starts_with("https://agents.example/#code="), "{link}");
    let proxied =
        ["Host: agents.example", "Origin: https://agents.example", "Content-Type: application/json", "X-Agtmux: 1"];
    let code = link.split_once("=").expect("a code").1;
    let session = web.request_raw("POST /v1/web/login", &proxied, &format!(r#"{{"code":"{code}"}}"#));
    assert_eq!(session.status, 200);
    configure(&world, &format!("{SETTINGS}web.public_url = 'https://agents.example/path'\n"));
    let refused = agtmux(&world, &["config", "check"]);
    assert!(refused.code != Some(0), "a path is refused");
}
