//! A web server of another user. It serves pages that attack agtmux, and records everything that browsers send to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::web::WebAccess;
use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::helper_process::{helper_argument, helper_of_user};

/// The text that the attacks try to type.
pub(super) const TYPED: &str = "typed-by-an-attack";

/// The attacks that run in the browser. `OURS` is the address of agtmux, `PANE` the pane.
const PAGE: &str = include_str!("hostile_page.html");

pub(super) struct HostileServer {
    port: u16,
    lines: Arc<Mutex<Vec<Value>>>,
    _process: ChildGuard,
}

impl HostileServer {
    #[track_caller]
    pub(super) fn start(world: &TestWorld, uid: u32, web: &WebAccess, pane: &str) -> Self {
        let name = "web_users::hostile_server::helper_serves_hostile_pages";
        let mut command = helper_of_user(world, uid, name, format!("{} {pane}", web.address));
        let mut process = ChildGuard::start(command.stdin(Stdio::null()).stdout(Stdio::piped()));
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let received = lines.clone();
        thread::spawn(move || {
            let values = output.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            values.for_each(|value: Value| received.lock().expect("no panic").push(value));
        });
        let port = wait_for("the port of the hostile server", SOON, || {
            let lines = lines.lock().expect("no panic");
            lines.iter().find_map(|line| line["port"].as_u64()).and_then(|port| u16::try_from(port).ok())
        });
        Self { port, lines, _process: process }
    }

    /// Opens the pages of this server in the browser and waits until all attacks have run.
    #[track_caller]
    pub(super) fn attack(&self, browser: &Browser, ours: &str, theirs: &str) {
        let before = self.lines.lock().expect("no panic").len();
        for path in
            [format!("attack?ours={ours}"), format!("redirect?ours={ours}"), format!("attack?ours={ours}&again")]
        {
            browser.open(&format!("http://{theirs}:{}/{path}", self.port));
            if path.starts_with("attack") {
                wait_for("the end of the attacks", SOON, || {
                    let title = browser.run("return document.title");
                    if title == "done" { Ok(()) } else { Err(title) }
                });
            }
        }
        let lines = self.lines.lock().expect("no panic");
        let of_this_attack = &lines[before..];
        let count = |word: &str| of_this_attack.iter().filter(|line| line.to_string().contains(word)).count();
        assert!(count("GET /attack") >= 2 && count("POST /collect") > 10, "the attacks ran: {of_this_attack:#?}");
    }

    /// Checks that no request contained credentials or one of these secrets, and that agtmux refused every request of
    /// this user.
    #[track_caller]
    pub(super) fn assert_nothing_was_collected(&self, secrets: &[String]) {
        let lines = self.lines.lock().expect("no panic");
        for line in lines.iter() {
            let text = line.to_string();
            let lower = text.to_lowercase();
            assert!(!lower.contains("\\ncookie:") && !lower.contains("\\nauthorization:"), "collected {text}");
            let leaked = secrets.iter().find(|secret| text.contains(*secret));
            assert_eq!(leaked, None, "collected {text}");
            if let Some(answer) = line["direct"].as_str() {
                assert!(answer.starts_with("HTTP/1.1 403"), "agtmux answered another user: {answer}");
            }
        }
        assert!(lines.iter().any(|line| line["direct"].is_string()), "the server has tried by itself: {lines:?}");
    }
}

#[test]
#[ignore = "helper process of another test"]
fn helper_serves_hostile_pages() {
    let Some(argument) = helper_argument() else { return };
    let (address, pane) = argument.split_once(' ').expect("an address and a pane");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let on_other_family = TcpListener::bind(("::1", listener.local_addr().expect("bound").port()));
    println!("\n{}", json!({"port": listener.local_addr().expect("bound").port()}));
    thread::scope(|scope| {
        for listener in [Ok(listener), on_other_family].into_iter().flatten() {
            scope.spawn(move || {
                thread::scope(|scope| {
                    for stream in listener.incoming().flatten() {
                        scope.spawn(move || serve(stream, address, pane));
                    }
                });
            });
        }
    });
}

/// Records the request, replays its credentials against agtmux, and serves a page.
fn serve(mut stream: TcpStream, address: &str, pane: &str) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let Some((head, body)) = read_request(&mut stream) else { return };
    println!("{}", json!({"request": format!("{head}\n{body}")}));
    println!("{}", json!({"direct": replay(address, pane, &head)}));
    let (_, port) = address.rsplit_once(':').expect("an address has a port");
    let ours = if head.contains("ours=localhost") { format!("localhost:{port}") } else { address.to_owned() };
    let page = PAGE.replace("OURS", &ours).replace("PANE", pane).replace("TYPED", TYPED);
    let answer = match head.split(' ').nth(1).unwrap_or_default() {
        path if path.starts_with("/attack") => respond("200 OK", "content-type: text/html", &page),
        path if path.starts_with("/redirect") => {
            respond("302 Found", &format!("location: http://{ours}/v1/panes?from=elsewhere"), "")
        }
        _ => respond("204 No Content", "access-control-allow-origin: *", ""),
    };
    let _ = stream.write_all(answer.as_bytes());
}

fn respond(status: &str, header: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {
        if head.ends_with("\r\n\r\n") {
            break;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    (!head.is_empty()).then(|| (head.replace('\r', ""), String::from_utf8_lossy(&body).into_owned()))
}

/// Types into the pane with the credentials of the request, as the hostile server's user.
fn replay(address: &str, pane: &str, head: &str) -> String {
    let is_credential = |line: &&str| {
        let line = line.to_lowercase();
        line.starts_with("cookie:") || line.starts_with("authorization:")
    };
    let credentials: String = head.lines().filter(is_credential).map(|line| format!("{line}\r\n")).collect();
    let body = json!({"ref": pane, "text": TYPED, "profile": "shell"}).to_string();
    let request = format!(
        "POST /v1/actions/send HTTP/1.1\r\nHost: {address}\r\n{credentials}X-Agtmux: 1\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}
