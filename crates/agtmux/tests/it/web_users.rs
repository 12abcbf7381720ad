//! Processes of other users cannot use the web port, and pages on other ports of the host get nothing from a browser.

mod hostile_server;

use std::io::{Read, Write};
use std::net::TcpStream;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, run, soak, world};
use agtmux_testkit::web::{WebAccess, login_link, start_with_web, start_with_web_settings};
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::helper_process::{helper_argument, helper_of_user, is_root};
use hostile_server::{HostileServer, TYPED};

const OTHER_UID: u32 = 65534;
const SECRET: &str = "secret-session";

/// A request that types into the pane, with the full token.
fn send_request(web: &WebAccess, pane: &str) -> String {
    let body = json!({"ref": pane, "text": TYPED, "profile": "shell"}).to_string();
    format!(
        "POST /v1/actions/send HTTP/1.1\r\nHost: {}\r\n{}\r\nX-Agtmux: 1\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        web.address,
        web.bearer(),
        body.len()
    )
}

fn get_request(web: &WebAccess) -> String {
    format!("GET /v1/panes HTTP/1.1\r\nHost: {}\r\n{}\r\nConnection: close\r\n\r\n", web.address, web.bearer())
}

/// Sends the request as this user and returns the answer.
fn request_as(world: &TestWorld, uid: u32, web: &WebAccess, request: &str) -> String {
    let mut helper = helper_of_user(world, uid, "web_users::helper_sends_a_request", web.address.to_string());
    let done = run(helper.env("REQUEST", request));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.text()
}

#[test]
#[ignore = "helper process of another test"]
fn helper_sends_a_request() {
    let Some(address) = helper_argument() else { return };
    let request = std::env::var("REQUEST").expect("the parent test sets REQUEST");
    let mut stream = TcpStream::connect(address).expect("every user can connect");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    println!("answer: {answer}");
}

fn screen(tmux: &TestTmuxServer, pane: &str) -> String {
    tmux.run(&["capture-pane", "-p", "-t", pane])
}

#[track_caller]
fn assert_nothing_happened(world: &TestWorld, tmux: &TestTmuxServer, pane: &str) {
    assert!(!screen(tmux, pane).contains(TYPED), "something was typed: {}", screen(tmux, pane));
    let audit = agtmux(world, &["audit", "--json"]).json();
    let sent = audit["items"].as_array().into_iter().flatten().find(|item| item.to_string().contains("send"));
    assert_eq!(sent, None, "an action was carried out");
}

#[test]
fn another_user_is_refused_with_a_valid_token_unless_it_is_a_proxy_user() {
    if !is_root() {
        return;
    }
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", "cat");
    let web = start_with_web(&world);
    let get = get_request(&web);
    assert!(request_as(&world, 0, &web, &get).contains("answer: HTTP/1.1 200"));
    for request in [&get, &send_request(&web, &pane), &get.replace("/v1/panes", "/"), &"\r\n".to_owned()] {
        let answer = request_as(&world, OTHER_UID, &web, request);
        assert!(answer.contains("answer: HTTP/1.1 403") && answer.contains("web.proxy_users"), "{answer}");
    }
    assert_nothing_happened(&world, &tmux, &pane);
    agtmux(&world, &["daemon", "stop"]);
    let web = start_with_web_settings(&world, "web.proxy_users = [65534]\n");
    let get = get_request(&web);
    let answer = request_as(&world, OTHER_UID, &web, &get);
    assert!(answer.contains("answer: HTTP/1.1 200"), "{answer}");
    let answer = request_as(&world, OTHER_UID - 1, &web, &get);
    assert!(answer.contains("answer: HTTP/1.1 403"), "{answer}");
}

#[test]
fn an_unknown_proxy_user_is_reported_at_the_start() {
    let world = world();
    configure(&world, "web.listen = '127.0.0.1:0'\nweb.proxy_users = ['no-such-user']\n");
    let refused = agtmux(&world, &["daemon", "start"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("web.proxy_users: there is no user 'no-such-user'"), "{}", refused.stderr);
}

/// A client that closes its connection at once can no longer be identified. The kernel reports such a socket as a
/// socket of root.
#[test]
fn a_client_that_has_closed_its_connection_is_refused() {
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", "cat");
    let web = start_with_web(&world);
    let daemon = agtmux_testkit::agtmux::pid(&world);
    // A stopped daemon accepts the connection only after the client has closed it.
    assert!(agtmux_testkit::process::signal(daemon, rustix::process::Signal::STOP));
    agtmux_testkit::wait_until("the daemon to stop", SOON, || agtmux_testkit::process::is_stopped(daemon));
    let mut stream = TcpStream::connect(web.address).expect("the listen backlog accepts it");
    stream.write_all(send_request(&web, &pane).as_bytes()).expect("the kernel buffers the request");
    drop(stream);
    assert!(agtmux_testkit::process::signal(daemon, rustix::process::Signal::CONT));
    // Connections are accepted in order, so this request is answered after the other one was refused or served.
    assert_eq!(web.request("GET /v1/health", &[&web.bearer()], "").status, 200);
    assert_nothing_happened(&world, &tmux, &pane);
}

/// A page of another user's server, on another port of the same host, in the browser that is logged in.
#[test]
fn a_hostile_page_on_another_port_collects_nothing_and_types_nothing() {
    if !is_root() {
        return;
    }
    let world = world();
    let tmux = world.tmux("default");
    let pane = tmux.new_session(SECRET, &world.fake_agent_command("claude"));
    let web = start_with_web(&world);
    let Some(browser) = Browser::start(&world) else { return };
    let hosts = ["127.0.0.1", "localhost"];
    let all = hosts.iter().flat_map(|ours| hosts.iter().map(move |theirs| (*ours, *theirs)));
    let users = [OTHER_UID, 1234, 4321];
    for round in 0..if soak() { 50 } else { 1 } {
        let server = HostileServer::start(&world, users[round % users.len()], &web, &pane);
        for (ours, theirs) in all.clone().take(if soak() { 4 } else { 1 }) {
            let secrets = log_in(&world, &browser, &web, ours);
            server.attack(&browser, ours, theirs);
            server.assert_nothing_was_collected(&[secrets, vec![SECRET.to_owned(), web.token.clone()]].concat());
            assert_nothing_happened(&world, &tmux, &pane);
            // The page still works, so the attack had something to attack.
            browser.open(&format!("http://{ours}:{}/plain", web.address.port()));
            browser.wait_for_text("agents", SECRET);
        }
    }
}

/// Logs in under this name of the host. Returns the code and the token.
#[track_caller]
fn log_in(world: &TestWorld, browser: &Browser, web: &WebAccess, host: &str) -> Vec<String> {
    let link = login_link(world, &[]).replace("127.0.0.1", host).replace("/#code", "/plain#code");
    browser.open("about:blank");
    browser.open(&link);
    browser.wait_for_text("agents", SECRET);
    let address = browser.run("return location.href");
    assert_eq!(
        address,
        json!(format!("http://{host}:{}/plain", web.address.port())),
        "the code is removed from the address"
    );
    let token = wait_for("the token", SOON, || {
        let token = browser.run("return localStorage.getItem('token')");
        token.as_str().map(str::to_owned).ok_or(token)
    });
    assert_eq!(browser.run("return document.cookie"), Value::from(""), "there are no cookies");
    vec![link.split_once('=').expect("a code").1.to_owned(), token]
}
