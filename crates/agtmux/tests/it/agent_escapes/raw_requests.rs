//! An agent that speaks HTTP itself is refused as well: on the unix socket, on the web port with the token, and without
//! the permission to inspect it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use agtmux_testkit::web::login_link;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::agent_fixture::{AgentFixture, Attempt};

/// The helper's instructions: whether it forbids its inspection, and the address.
const INSTRUCTIONS: &str = "AGTMUX_TEST_PART";
const REQUEST: &str = "AGTMUX_TEST_REQUEST";

/// The status that the daemon gives the agent's request.
fn agent_posts(fixture: &AgentFixture, label: &str, wrapper: &str, instructions: &str, headers: &str) -> Attempt {
    let name = fixture.write_script_with(label, |fixture, name| {
        let body = serde_json::json!({"ref": fixture.shell, "profile": "shell",
            "text": format!("touch {}", fixture.file(&format!("{name}.typed")).display())});
        let body = body.to_string();
        let request = format!(
            "POST /v1/actions/send HTTP/1.0\n{headers}content-type: application/json\ncontent-length: {}\n\n{body}",
            body.len()
        );
        std::fs::write(fixture.file(&format!("{name}.request")), request).expect("the world is writable");
        let helper = std::env::current_exe().expect("the path of the test program is known");
        format!(
            "{INSTRUCTIONS}='{instructions}' {REQUEST}={} {} --exact \
             agent_escapes::raw_requests::helper_posts_a_request --ignored --nocapture",
            fixture.file(&format!("{name}.request")).display(),
            helper.display()
        )
    });
    fixture.type_line(&fixture.agent, &fixture.fill_in(&name, wrapper));
    let attempt = fixture.result(&name);
    // The helper succeeds if it gets an answer; the answer tells the rest.
    Attempt { code: i32::from(attempt.output.contains(" 403 ")), ..attempt }
}

#[test]
fn a_request_without_the_agtmux_program_is_refused() {
    let fixture = AgentFixture::start("web.listen = '127.0.0.1:0'\n");
    let socket = fixture.world.socket().display().to_string();
    let link = login_link(&fixture.world, &[]);
    let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
    let token = std::fs::read_to_string(fixture.world.state_dir().join("web-token")).expect("a token");
    let web = format!("host: {address}\nauthorization: Bearer {}\nx-agtmux: 1\n", token.trim());
    for (label, wrapper) in [("child", "sh SCRIPT"), ("orphan", "env -i setsid -f sh SCRIPT")] {
        for inspection in ["open", "hidden"] {
            let on = |what: &str| format!("{label}-{inspection}-{what}");
            let unix = agent_posts(&fixture, &on("unix"), wrapper, &format!("{inspection} {socket}"), "host: agtmux\n");
            unix.assert_refused();
            agent_posts(&fixture, &on("web"), wrapper, &format!("{inspection} {address}"), &web).assert_refused();
        }
    }
}

#[test]
#[ignore = "helper process of another test"]
fn helper_posts_a_request() {
    let Ok(instructions) = std::env::var(INSTRUCTIONS) else { return };
    let (inspection, address) = instructions.split_once(' ').expect("two words");
    if inspection == "hidden" {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).expect("a process may hide itself");
    }
    let request = std::fs::read_to_string(std::env::var(REQUEST).expect("a file")).expect("a request");
    let (head, body) = request.split_once("\n\n").expect("a head and a body");
    let request = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
    let mut answer = Vec::new();
    if address.starts_with('/') {
        exchange(UnixStream::connect(address).expect("the daemon listens"), &request, &mut answer);
    } else {
        exchange(TcpStream::connect(address).expect("the daemon listens"), &request, &mut answer);
    }
    println!("{}", String::from_utf8_lossy(&answer));
}

fn exchange(mut stream: impl Read + Write, request: &str, answer: &mut Vec<u8>) {
    stream.write_all(request.as_bytes()).expect("the daemon reads");
    // The daemon closes the connection after its answer.
    let _ = stream.read_to_end(answer);
}
