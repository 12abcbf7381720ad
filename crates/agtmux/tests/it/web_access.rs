//! The TCP port: requests need a token, and pages of other origins are refused.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, health, items, pid, start, world};
use agtmux_testkit::http;
use agtmux_testkit::web::{WebAccess, login_link, operations, start_with_web};
use agtmux_testkit::{process, wait_until};
use serde_json::Value;

const PATHS: [&str; 3] = ["/v1/panes", "/v1/events", "/api/events/stream"];
/// The files of the page, which need no token.
const PAGES: [&str; 5] = ["/", "/plain", "/app.js", "/style.css", "/favicon.ico"];
const ACTION_HEADERS: [&str; 2] = ["Content-Type: application/json", "X-Agtmux: 1"];

fn to_strings(headers: &[&str]) -> Vec<String> {
    headers.iter().map(|header| (*header).to_owned()).collect()
}

/// Header sets that must be rejected, with the expected status. Some contain the token.
fn rejected_headers(web: &WebAccess) -> Vec<(Vec<String>, u16)> {
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

/// Header sets that must be rejected for changes: wrong content types, a missing X-Agtmux header, a read-only token.
fn rejected_change_headers(web: &WebAccess) -> Vec<Vec<String>> {
    let (ours, bearer) = (format!("Host: {}", web.address), web.bearer());
    let read_only = web.read_only_bearer();
    let [json, x_agtmux] = ACTION_HEADERS;
    let ways = [
        &[bearer.as_str(), "Content-Type: application/x-www-form-urlencoded", x_agtmux][..],
        &[bearer.as_str(), "Content-Type: text/plain", x_agtmux],
        &[bearer.as_str(), "Content-Type: multipart/form-data; boundary=x", x_agtmux],
        &[bearer.as_str(), json, "Content-Type: text/plain", x_agtmux],
        &[bearer.as_str(), json],
        &[bearer.as_str(), x_agtmux],
        &[bearer.as_str()],
        &[read_only.as_str(), json, x_agtmux],
    ];
    ways.iter().map(|headers| to_strings(&[&[ours.as_str()], *headers].concat())).collect()
}

/// Covers every operation of the OpenAPI document, including future ones.
#[test]
fn every_path_rejects_unauthorized_requests() {
    let world = world();
    let web = start_with_web(&world);
    let mut operations = operations(&world);
    let streams = ["/v1/events", "/api/events/stream", "/v1/tasks/events/stream", "/v1/screen"];
    for stream in streams {
        assert!(operations.contains(&("GET".into(), stream.into())), "{stream} is not in the contract");
    }
    let changing = operations.iter().filter(|(method, _)| method != "GET").count();
    assert!(operations.len() > 35 && changing > 15, "{changing} of {operations:?}");
    let other_paths = ["/v1/openapi.json", "/v1/evidence", "/nothing", "/index.html", "/app.js/", "/login"];
    operations.extend(other_paths.map(|path| ("GET".into(), path.into())));
    operations.extend(["HEAD", "OPTIONS", "DELETE"].map(|method| (method.into(), "/v1/panes".into())));
    let ask = |line: &str, headers: &[String], body: &str| {
        web.request_raw(line, &headers.iter().map(String::as_str).collect::<Vec<_>>(), body).status
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
    // The only record is that of the login link with which the test began.
    let kinds: Vec<&Value> = items(&audit).iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["web"], "no rejected request was audited");
}

#[test]
fn many_tcp_connections_do_not_block_the_unix_socket() {
    let world = world();
    let web = start_with_web(&world);
    let daemon = pid(&world);
    let connections: Vec<TcpStream> =
        (0..600).map(|_| TcpStream::connect(web.address).expect("the listen backlog accepts it")).collect();
    wait_until("the connection limit", SOON, || process::open_fds(daemon).len() > 500);
    assert_eq!(health(&world)["status"], "ok");
    assert!(process::open_fds(daemon).len() < 600, "the number of connections is limited");
    drop(connections);
    assert_eq!(web.request("GET /v1/health", &[&web.bearer()], "").status, 200);
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
fn the_daemon_opens_a_port_only_if_configured() {
    let world = world();
    let daemon = start(&world);
    assert!(!listens_on_tcp(daemon));
    let refused = agtmux(&world, &["web", "url"]);
    assert_eq!(refused.code, Some(5));
    assert!(refused.stderr.contains("web.listen"), "{}", refused.stderr);
    assert!(!world.state_dir().join("web-token").exists());
}

#[test]
fn the_port_is_loopback_only_and_token_files_are_private() {
    let world = world();
    let web = start_with_web(&world);
    assert!(listens_on_tcp(pid(&world)) && web.address.ip().is_loopback());
    for name in ["web-token", "web-token-read-only"] {
        let mode = fs::metadata(world.state_dir().join(name)).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(web.request("GET /v1/health", &[&web.bearer()], "").status, 200);
}

#[test]
fn requests_without_a_valid_token_get_401() {
    let world = world();
    let web = start_with_web(&world);
    let wrong = format!("Authorization: Bearer {}0", &web.token[1..]);
    let basic = format!("Authorization: Basic {}", web.token);
    let cookie = format!("Cookie: agtmux={}", web.token);
    for path in PATHS {
        let get = format!("GET {path}");
        for headers in [&[][..], &[wrong.as_str()], &[basic.as_str()], &["Authorization: Bearer "], &[cookie.as_str()]]
        {
            assert_eq!(web.request(&get, headers, "").status, 401, "{path} with {headers:?}");
        }
        let in_query = format!("GET {path}?token={0}&access_token={0}", web.token);
        assert_eq!(web.request(&in_query, &[], "").status, 401, "{path}");
        assert_eq!(web.request(&get, &[&web.bearer()], "").status, 200, "{path}");
    }
}

#[test]
fn foreign_hosts_and_origins_are_refused_with_a_valid_token() {
    let world = world();
    let web = start_with_web(&world);
    let (bearer, port) = (web.bearer(), web.address.port());
    for path in PATHS {
        let get = format!("GET {path}");
        for host in ["evil.com", "localhost.evil", "0.0.0.0", "127.0.0.1.evil.com", "localhost", "", "[::]"] {
            for host in [host.to_owned(), format!("{host}:{port}")] {
                if host == format!("localhost:{port}") {
                    continue;
                }
                let answer = web.request_raw(&get, &[&format!("Host: {host}"), &bearer], "");
                assert!(matches!(answer.status, 400 | 403), "{path} as {host}: {}", answer.status);
            }
        }
        assert!(matches!(web.request_raw(&get, &[&bearer], "").status, 400 | 403), "{path} without a host");
        for origin in ["null", "http://evil.com", "https://localhost.evil", "http://localhost"] {
            let answer = web.request(&get, &[&bearer, &format!("Origin: {origin}")], "");
            assert_eq!(answer.status, 403, "{path} from {origin}");
        }
        let elsewhere = web.request(&get, &[&bearer, "Sec-Fetch-Site: cross-site"], "");
        assert_eq!(elsewhere.status, 403, "{path}");
        let ours = format!("Origin: http://localhost:{port}");
        assert_eq!(
            web.request_raw(&get, &[&format!("Host: localhost:{port}"), &bearer, &ours], "").status,
            200,
            "{path}"
        );
    }
}

#[test]
fn changes_require_json_and_the_agtmux_header() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", "cat");
    let web = start_with_web(&world);
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
        let answer = web.request(post, &[&[bearer.as_str()], headers].concat(), &body);
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    let read_only = web.read_only_bearer();
    assert_eq!(web.request("GET /v1/panes", &[&read_only], "").status, 200);
    assert_eq!(web.request(post, &[&[read_only.as_str()], &ACTION_HEADERS[..]].concat(), &body).status, 403);
    assert!(!tmux.run(&["capture-pane", "-p", "-t", &pane]).contains("typed"), "nothing was typed");
    assert_eq!(web.request(post, &[&[bearer.as_str()], &ACTION_HEADERS[..]].concat(), &body).status, 200);
    wait_until("the text", SOON, || tmux.run(&["capture-pane", "-p", "-t", &pane]).contains("typed"));
    let audit = web.request("GET /v1/audit", &[&bearer], "").json();
    let sent = items(&audit).iter().find(|row| row["kind"] == "send");
    assert!(sent.is_some_and(|row| row["caller"]["via"] == "tcp"), "{audit}");
}

#[test]
fn no_response_allows_cross_origin_reads() {
    let world = world();
    let web = start_with_web(&world);
    let preflight = ["Origin: http://evil.com", "Access-Control-Request-Method: POST"];
    assert_eq!(web.request("OPTIONS /v1/actions/send", &preflight, "").status, 403);
    for path in [&PATHS[..], &PAGES].concat() {
        let head = web.request(&format!("GET {path}"), &[&web.bearer()], "").head.to_lowercase();
        assert!(!head.contains("access-control"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'self'"), "{head}");
        assert!(head.contains("nosniff") && head.contains("frame-ancestors 'none'"), "{head}");
        assert!(!head.contains("set-cookie") && head.contains("cross-origin-opener-policy: same-origin"), "{head}");
    }
}

#[test]
fn the_page_needs_no_token_but_contains_no_data() {
    let world = world();
    world.tmux("default").new_session("secret-name", "cat");
    let web = start_with_web(&world);
    for path in PAGES {
        let get = format!("GET {path}");
        // A link on another site may lead to the page.
        for headers in [&[][..], &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]] {
            let answer = web.request(&get, headers, "");
            assert!(matches!(answer.status, 200 | 204), "{path}: {}", answer.status);
            assert!(!String::from_utf8_lossy(&answer.body).contains("secret-name"), "{path}");
        }
        let evil = format!("Host: evil.com:{}", web.address.port());
        assert_eq!(web.request_raw(&get, &[&evil], "").status, 403, "{path}");
        assert_eq!(web.request(&get, &["Origin: http://evil.com"], "").status, 403, "{path}");
        let post = web.request(&format!("POST {path}"), &ACTION_HEADERS, "{}");
        assert_eq!(post.status, 401, "{path}");
    }
}

#[test]
fn a_login_link_works_once_and_gives_a_token() {
    let world = world();
    let web = start_with_web(&world);
    let link = login_link(&world, &[]);
    assert!(link.starts_with(&format!("http://{}/#code=", web.address)), "{link}");
    let session = web.log_in(&link).json();
    assert_eq!(session["read_only"], false, "{session}");
    let bearer_of = |session: &Value| format!("Authorization: Bearer {}", session["token"].as_str().expect("a token"));
    let bearer = bearer_of(&session);
    assert_eq!(web.request("GET /v1/panes", &[&bearer], "").status, 200);
    assert_eq!(web.log_in(&link).status, 401, "the link works only once");
    assert_eq!(web.log_in(&format!("http://{}/#code=0000", web.address)).status, 401);
    let code = link.split_once("=").expect("a code").1;
    assert_eq!(web.request("GET /v1/panes", &[&format!("Authorization: Bearer {code}")], "").status, 401);
    for cookie in [session["token"].as_str().expect("a token"), &web.token] {
        let cookie = format!("Cookie: agtmux-{}={cookie}", web.address.port());
        assert_eq!(web.request("GET /v1/panes", &[&cookie], "").status, 401, "there are no cookies");
    }
    let links = web.request("POST /v1/web/link", &[&[bearer.as_str()], &ACTION_HEADERS[..]].concat(), "{}");
    assert_eq!(links.status, 403, "a browser cannot create links");
    let read_only = web.log_in(&login_link(&world, &["--read-only"])).json();
    assert_eq!(read_only["read_only"], true, "{read_only}");
    let read_only = bearer_of(&read_only);
    assert_eq!(web.request("GET /v1/panes", &[&read_only], "").status, 200);
    let send = web.request("POST /v1/actions/send", &[&[read_only.as_str()], &ACTION_HEADERS[..]].concat(), "{}");
    assert_eq!(send.status, 403);
}

#[test]
fn a_page_of_another_site_cannot_use_a_login_link() {
    let world = world();
    let web = start_with_web(&world);
    let link = login_link(&world, &[]);
    let body = format!(r#"{{"code":"{}"}}"#, link.split_once("=").expect("a code").1);
    for headers in [
        &["Content-Type: text/plain", "X-Agtmux: 1"][..],
        &["Content-Type: application/json"],
        &["Content-Type: application/json", "X-Agtmux: 1", "Origin: http://evil.com"],
        &["Content-Type: application/json", "X-Agtmux: 1", "Sec-Fetch-Site: same-site"],
    ] {
        assert_eq!(web.request("POST /v1/web/login", headers, &body).status, 403, "{headers:?}");
    }
    assert_eq!(web.log_in(&link).status, 200, "refused requests do not use up the link");
}

#[test]
fn unknown_paths_are_not_found() {
    let world = world();
    let web = start_with_web(&world);
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
        "/login/0000",
    ] {
        let answer = web.request(&format!("GET {path}"), &[&web.bearer()], "");
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
        if answer.status == 404 {
            assert!(answer.json()["hint"].is_string(), "{path}: {}", answer.json());
        }
    }
    // Paths that only resemble a file of the page need a token.
    for path in ["/app.js/../v1/panes", "/app.js/v1/panes", "/app.js/", "//", "/%61pp.js", "/..%2fv1%2fpanes"] {
        assert_eq!(web.request(&format!("GET {path}"), &[], "").status, 401, "{path}");
    }
}

#[test]
fn a_public_listen_address_requires_i_know() {
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
fn a_readable_token_file_is_refused() {
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
