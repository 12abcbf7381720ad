//! Nobody comes in over TCP who was not let in, and no page from elsewhere gets anything done.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_web.rs"]
mod web;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use agtmux::{SOON, agtmux, configure, health, pid, start, world};
use agtmux_testkit::{TestWorld, process, wait_until};
use serde_json::Value;
use web::{Web, link, open};

const PATHS: [&str; 4] = ["/v1/panes", "/v1/events", "/api/events/stream", "/"];
const ACTION_HEADERS: [&str; 2] = ["Content-Type: application/json", "X-Agtmux: 1"];

/// Every operation of the contract, with something in the place of its parameters.
fn operations(world: &TestWorld) -> Vec<(String, String)> {
    let contract = http::get(&world.socket(), "/v1/openapi.json").json();
    let paths = contract["paths"].as_object().expect("paths");
    let of = |(path, methods): (&String, &Value)| {
        let path = path.replace(['{', '}'], "");
        let methods: Vec<String> = methods.as_object().expect("methods").keys().map(|m| m.to_uppercase()).collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

fn to_strings(headers: &[&str]) -> Vec<String> {
    headers.iter().map(|header| (*header).to_owned()).collect()
}

/// Headers by which a request must not get in, and the status that says so. Some know the token.
fn rejected_headers(web: &Web) -> Vec<(Vec<String>, u16)> {
    let (ours, bearer, port) = (format!("Host: {}", web.address), web.bearer(), web.address.port());
    let wrong = format!("Authorization: Bearer {}0", &web.token[1..]);
    let basic = format!("Authorization: Basic {}", web.token);
    let cookie = format!("Cookie: agtmux-{port}={}", web.token);
    let unknown = [&[][..], &[wrong.as_str()], &[basic.as_str()], &[cookie.as_str()]];
    let evil = ["evil.com", "localhost.evil", "0.0.0.0"].map(|host| format!("Host: {host}:{port}"));
    let hosts = [&[evil[0].as_str()][..], &[evil[1].as_str()], &[evil[2].as_str()], &[ours.as_str(), &evil[0]]];
    let origin = format!("Origin: http://{}", web.address);
    let elsewhere = [
        &["Origin: null"][..],
        &["Origin: http://evil.com"],
        &["Origin: https://localhost.evil"],
        &[origin.as_str(), "Origin: http://evil.com"],
        &["Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: same-site"],
        &["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"],
    ];
    let unknown =
        unknown.iter().map(|headers| (to_strings(&[&[ours.as_str()], *headers, &ACTION_HEADERS].concat()), 401));
    let hosts =
        hosts.iter().map(|headers| (to_strings(&[*headers, &[bearer.as_str()], &ACTION_HEADERS].concat()), 403));
    let elsewhere = elsewhere
        .iter()
        .map(|headers| (to_strings(&[&[ours.as_str(), &bearer], *headers, &ACTION_HEADERS].concat()), 403));
    unknown.chain(hosts).chain(elsewhere).collect()
}

/// The same for what changes something: a form, a text, nothing that says that it is meant, a token for looking.
fn rejected_change_headers(web: &Web) -> Vec<Vec<String>> {
    let (ours, bearer) = (format!("Host: {}", web.address), web.bearer());
    let read_only = format!("Authorization: Bearer {}", web.read_only);
    let [json, meant] = ACTION_HEADERS;
    let ways = [
        &[bearer.as_str(), "Content-Type: application/x-www-form-urlencoded", meant][..],
        &[bearer.as_str(), "Content-Type: text/plain", meant],
        &[bearer.as_str(), "Content-Type: multipart/form-data; boundary=x", meant],
        &[bearer.as_str(), json, "Content-Type: text/plain", meant],
        &[bearer.as_str(), json],
        &[bearer.as_str(), meant],
        &[bearer.as_str()],
        &[read_only.as_str(), json, meant],
    ];
    ways.iter().map(|headers| to_strings(&[&[ours.as_str()], *headers].concat())).collect()
}

/// Whatever the contract has, also what is added to it later.
#[test]
fn every_path_is_closed_to_whoever_is_not_let_in() {
    let world = world();
    let web = open(&world);
    let mut operations = operations(&world);
    let streams = ["/v1/events", "/api/events/stream", "/v1/tasks/events/stream"];
    for stream in streams {
        assert!(operations.contains(&("GET".into(), stream.into())), "{stream} is not in the contract");
    }
    let changing = operations.iter().filter(|(method, _)| method != "GET").count();
    assert!(operations.len() > 35 && changing > 15, "{changing} of {operations:?}");
    let besides = ["/", "/app.js", "/style.css", "/favicon.ico", "/v1/openapi.json", "/v1/evidence", "/nothing"];
    operations.extend(besides.map(|path| ("GET".into(), path.into())));
    operations.extend(["HEAD", "OPTIONS", "DELETE"].map(|method| (method.into(), "/v1/panes".into())));
    let ask = |line: &str, headers: &[String], body: &str| {
        web.raw(line, &headers.iter().map(String::as_str).collect::<Vec<_>>(), body).status
    };
    let (ways_in, ways_to_change) = (rejected_headers(&web), rejected_change_headers(&web));
    for (method, path) in &operations {
        let body = if matches!(method.as_str(), "GET" | "HEAD") { "" } else { "{}" };
        for (headers, status) in &ways_in {
            assert_eq!(ask(&format!("{method} {path}"), headers, body), *status, "{method} {path} with {headers:?}");
        }
        let in_query = format!("{method} {path}?token={0}&access_token={0}", web.token);
        assert_eq!(ask(&in_query, &ways_in[0].0, body), 401, "{method} {path} with its token in the query");
        for headers in ways_to_change.iter().filter(|_| !body.is_empty()) {
            assert_eq!(ask(&format!("{method} {path}"), headers, body), 403, "{method} {path} with {headers:?}");
        }
    }
    let audit = http::get(&world.socket(), "/v1/audit").json();
    assert_eq!(audit["items"], serde_json::json!([]), "nothing was even tried");
}

/// Half a request, and none at all: both would keep a place that others need.
#[test]
fn whoever_does_not_come_to_the_point_is_dropped() {
    let world = world();
    let web = open(&world);
    let said = ["", "GET / HTTP/1.1\r\nHost: ", "GET /v1/panes HTTP/1.1\r\n"];
    let mut callers = said.map(|said| {
        let mut caller = TcpStream::connect(web.address).expect("the port is open");
        caller.write_all(said.as_bytes()).expect("it is read");
        caller.set_read_timeout(Some(2 * SOON)).expect("a socket takes a timeout");
        caller
    });
    for (caller, said) in callers.iter_mut().zip(said) {
        let mut answer = Vec::new();
        caller.read_to_end(&mut answer).unwrap_or_else(|error| panic!("{said:?} is waited for: {error}"));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(web.ask("GET /v1/health", &[&web.bearer()], "").status, 200);
}

#[test]
fn a_crowd_at_the_port_keeps_nobody_from_the_socket() {
    let world = world();
    let web = open(&world);
    let daemon = pid(&world);
    let crowd: Vec<TcpStream> =
        (0..600).map(|_| TcpStream::connect(web.address).expect("there is a queue before it")).collect();
    wait_until("as many as there is room for", SOON, || process::open_fds(daemon).len() > 500);
    assert_eq!(health(&world)["status"], "ok");
    assert!(process::open_fds(daemon).len() < 600, "there is an end to it");
    drop(crowd);
    assert_eq!(web.ask("GET /v1/health", &[&web.bearer()], "").status, 200);
}

fn listens_on_tcp(pid: u32) -> bool {
    let sockets: Vec<String> = process::open_fds(pid)
        .iter()
        .filter_map(|path| Some(path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    ["tcp", "tcp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().nth(9).is_some_and(|inode| sockets.iter().any(|s| s == inode)))
    })
}

#[test]
fn a_daemon_opens_no_port_unless_it_is_told_to() {
    let world = world();
    let daemon = start(&world);
    assert!(!listens_on_tcp(daemon));
    let refused = agtmux(&world, &["web", "url"]);
    assert_eq!(refused.code, Some(5));
    assert!(refused.stderr.contains("web.listen"), "{}", refused.stderr);
    assert!(!world.state_dir().join("web-token").exists());
}

#[test]
fn one_that_is_told_to_opens_it_for_this_machine_and_keeps_its_tokens_to_itself() {
    let world = world();
    let web = open(&world);
    assert!(listens_on_tcp(pid(&world)) && web.address.ip().is_loopback());
    for name in ["web-token", "web-token-read-only"] {
        let mode = fs::metadata(world.state_dir().join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(web.ask("GET /v1/health", &[&web.bearer()], "").status, 200);
}

#[test]
fn without_the_right_token_nothing_is_told() {
    let world = world();
    let web = open(&world);
    let wrong = format!("Authorization: Bearer {}0", &web.token[1..]);
    let basic = format!("Authorization: Basic {}", web.token);
    let cookie = format!("Cookie: agtmux={}", web.token);
    for path in PATHS {
        let get = format!("GET {path}");
        for headers in [&[][..], &[wrong.as_str()], &[basic.as_str()], &["Authorization: Bearer "], &[cookie.as_str()]]
        {
            assert_eq!(web.ask(&get, headers, "").status, 401, "{path} with {headers:?}");
        }
        let in_query = format!("GET {path}?token={0}&access_token={0}", web.token);
        assert_eq!(web.ask(&in_query, &[], "").status, 401, "{path}");
        assert_eq!(web.ask(&get, &[&web.bearer()], "").status, 200, "{path}");
    }
}

#[test]
fn other_names_and_pages_from_elsewhere_are_refused_whatever_they_know() {
    let world = world();
    let web = open(&world);
    let (bearer, port) = (web.bearer(), web.address.port());
    for path in PATHS {
        let get = format!("GET {path}");
        for host in ["evil.com", "localhost.evil", "0.0.0.0", "127.0.0.1.evil.com", "localhost", "", "[::]"] {
            for host in [host.to_owned(), format!("{host}:{port}")] {
                if host == format!("localhost:{port}") {
                    continue;
                }
                let answer = web.raw(&get, &[&format!("Host: {host}"), &bearer], "");
                assert!(matches!(answer.status, 400 | 403), "{path} as {host}: {}", answer.status);
            }
        }
        assert!(matches!(web.raw(&get, &[&bearer], "").status, 400 | 403), "{path} without a host");
        for origin in ["null", "http://evil.com", "https://localhost.evil", "http://localhost"] {
            let answer = web.ask(&get, &[&bearer, &format!("Origin: {origin}")], "");
            assert_eq!(answer.status, 403, "{path} from {origin}");
        }
        let elsewhere = web.ask(&get, &[&bearer, "Sec-Fetch-Site: cross-site"], "");
        assert_eq!(elsewhere.status, 403, "{path}");
        let ours = format!("Origin: http://localhost:{port}");
        assert_eq!(web.raw(&get, &[&format!("Host: localhost:{port}"), &bearer, &ours], "").status, 200, "{path}");
    }
}

#[test]
fn what_changes_something_has_to_be_meant() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", "cat");
    let web = open(&world);
    let bearer = web.bearer();
    let body = format!(r#"{{"ref":"{pane}","text":"typed","profile":"shell"}}"#);
    let post = "POST /v1/actions/send";
    for headers in [
        &["Content-Type: application/x-www-form-urlencoded", "X-Agtmux: 1"][..],
        &["Content-Type: text/plain", "X-Agtmux: 1"],
        &["Content-Type: multipart/form-data; boundary=x", "X-Agtmux: 1"],
        &["Content-Type: application/json"],
        &["X-Agtmux: 1"],
        &[],
    ] {
        let answer = web.ask(post, &[&[bearer.as_str()], headers].concat(), &body);
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    let read_only = format!("Authorization: Bearer {}", web.read_only);
    assert_eq!(web.ask("GET /v1/panes", &[&read_only], "").status, 200);
    assert_eq!(web.ask(post, &[&[read_only.as_str()], &ACTION_HEADERS[..]].concat(), &body).status, 403);
    assert!(!tmux.run(&["capture-pane", "-p", "-t", &pane]).contains("typed"), "nothing was typed");
    assert_eq!(web.ask(post, &[&[bearer.as_str()], &ACTION_HEADERS[..]].concat(), &body).status, 200);
    wait_until("the text", SOON, || tmux.run(&["capture-pane", "-p", "-t", &pane]).contains("typed"));
    let audit = web.ask("GET /v1/audit", &[&bearer], "").json();
    assert_eq!(audit["items"][0]["caller"]["via"], "tcp", "{audit}");
}

#[test]
fn no_answer_allows_another_page_to_read_it() {
    let world = world();
    let web = open(&world);
    let preflight = ["Origin: http://evil.com", "Access-Control-Request-Method: POST"];
    assert_eq!(web.ask("OPTIONS /v1/actions/send", &preflight, "").status, 403);
    for path in PATHS {
        let head = web.ask(&format!("GET {path}"), &[&web.bearer()], "").head.to_lowercase();
        assert!(!head.contains("access-control"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'self'"), "{head}");
        assert!(head.contains("nosniff") && head.contains("frame-ancestors 'none'"), "{head}");
    }
}

#[test]
fn a_link_lets_one_browser_in_once() {
    let world = world();
    let web = open(&world);
    let path = |link: &str| format!("GET {}", link.strip_prefix(&format!("http://{}", web.address)).expect("ours"));
    let get = path(&link(&world, &[]));
    let answer = web.ask(&get, &["Sec-Fetch-Site: none"], "");
    assert_eq!(answer.status, 303);
    let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: other=1; {}", cookie.split(';').next().expect("a value"));
    assert_eq!(web.ask("GET /v1/panes", &[&cookie], "").status, 200);
    // Another server of this machine may set one of the same name: browsers send both.
    let tossed = format!("Cookie: agtmux-{}=another; {}", web.address.port(), &cookie["Cookie: ".len()..]);
    assert_eq!(web.ask("GET /v1/panes", &[&tossed], "").status, 200);
    assert_eq!(web.ask(&get, &[], "").status, 401, "a second time");
    assert_eq!(web.ask("GET /login/0000", &[], "").status, 401);
    let links = web.ask("POST /v1/web/link", &[&[cookie.as_str()], &ACTION_HEADERS[..]].concat(), "{}");
    assert_eq!(links.status, 403, "a browser makes no links");
    let looking = web.ask(&path(&link(&world, &["--read-only"])), &[], "");
    let looking = looking.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie").to_owned();
    let looking = format!("Cookie: {}", looking.split(';').next().expect("a value"));
    assert_eq!(web.ask("GET /v1/panes", &[&looking], "").status, 200);
    assert_eq!(
        web.ask("POST /v1/actions/send", &[&[looking.as_str()], &ACTION_HEADERS[..]].concat(), "{}").status,
        403
    );
}

#[test]
fn there_is_nothing_but_what_is_served() {
    let world = world();
    let web = open(&world);
    for path in [
        "/../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/%2e%2e/state.db",
        "/app.js/../web-token",
        "/web-token",
        "/v1/events/../../web-token",
        "/api/events/stream/..%2f..%2fweb-token",
        "/api/respond/..%2f..%2fetc%2fpasswd/availability",
        "/api/respond/%ff/availability",
        "/v1/actions/%ff",
        "/login/../v1/panes",
    ] {
        let answer = web.ask(&format!("GET {path}"), &[&web.bearer()], "");
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        if answer.status == 404 {
            assert!(answer.json()["hint"].is_string(), "{path}: {}", answer.json());
        }
    }
    // What only begins like the way in is not one.
    for path in ["/login/../v1/panes", "/login/a/b", "/login/a/", "/login", "/login/..%2fv1%2fpanes"] {
        assert_eq!(web.ask(&format!("GET {path}"), &[], "").status, 401, "{path}");
    }
}

#[test]
fn an_address_that_others_can_reach_needs_a_word() {
    let world = world();
    let refused = agtmux(&world, &["daemon", "run", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--i-know"), "{}", refused.stderr);
    configure(&world, "[web]\nlisten = '192.0.2.1:80'\n");
    let refused = agtmux(&world, &["daemon", "start"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    configure(&world, "[web]\nlisten = '0.0.0.0:0'\ni_know = true\n");
    start(&world);
    assert_eq!(health(&world)["status"], "ok");
}

#[test]
fn a_token_that_others_can_read_is_not_used() {
    let world = world();
    configure(&world, "[web]\nlisten = '127.0.0.1:0'\n");
    fs::create_dir_all(world.state_dir()).expect("made");
    fs::set_permissions(world.state_dir(), fs::Permissions::from_mode(0o700)).expect("set");
    let file = world.state_dir().join("web-token");
    fs::write(&file, "0".repeat(64)).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    let refused = agtmux(&world, &["daemon", "start"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("can be read by others"), "{}", refused.stderr);
}
