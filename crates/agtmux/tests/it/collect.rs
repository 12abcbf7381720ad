//! `agtmux collect`, which a hub runs on a host: how it handles other versions and requests of the hub.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Stdio};

use agtmux_testkit::agtmux::{stop, world};
use agtmux_testkit::{ChildGuard, TestWorld};
use serde_json::{Value, json};

/// Starts `collect` and sends these lines.
fn collect(world: &TestWorld, lines: &[Value]) -> (ChildGuard, BufReader<ChildStdout>) {
    let mut command = world.agtmux();
    command.args(["collect", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = ChildGuard::start(&mut command);
    let input = running.stdin.as_mut().expect("a pipe");
    for line in lines {
        writeln!(input, "{line}").expect("written");
    }
    let output = running.stdout.take().expect("a pipe");
    (running, BufReader::new(output))
}

/// The next reply. Evidence may come before it.
fn next_reply(output: &mut BufReader<ChildStdout>) -> Value {
    let lines = output.lines().map(|line| line.expect("a line"));
    let mut parsed = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    parsed.find(|line| line["type"] == "reply").expect("a reply")
}

#[test]
fn a_request_with_an_unknown_field_is_refused_and_the_next_one_is_answered() {
    let world = world();
    let hello = json!({"type": "hello", "collect": 3, "collect_min": 2, "version": "9", "new": true});
    let kill = |id: u32, guards: Value| json!({"type": "request", "id": id, "action": {"kill": guards}});
    let requests = [kill(1, json!({"ref": "%0", "if_moon": "full"})), kill(2, json!({"ref": "%0"}))];
    let (running, mut output) = collect(&world, &[hello, requests[0].clone(), requests[1].clone()]);
    let (unknown, known) = (next_reply(&mut output), next_reply(&mut output));
    assert_eq!((&unknown["id"], &unknown["outcome"]["refused"]["code"]), (&json!(1), &json!("E_BAD_REQUEST")));
    assert_eq!(known["id"], 2);
    assert_ne!(known["outcome"]["refused"]["code"], "E_BAD_REQUEST", "{known}");
    drop(running);
    stop(&world);
}

#[test]
fn a_request_before_the_hello_ends_the_connection() {
    let world = world();
    let request = json!({"type": "request", "id": 1, "action": {"kill": {"ref": "%0"}}});
    let (mut running, mut output) = collect(&world, &[request]);
    let mut text = String::new();
    output.read_to_string(&mut text).expect("text");
    assert_eq!((running.wait().expect("it ends").code(), text.as_str()), (Some(1), ""));
}

#[test]
fn a_hub_without_a_common_version_learns_which_side_to_update() {
    let world = world();
    for (versions, older) in
        [(json!({"collect": 1}), "the watching host"), (json!({"collect": 9, "collect_min": 9}), "the watched host")]
    {
        let mut hello = versions;
        (hello["type"], hello["version"]) = (json!("hello"), json!("0.0.9"));
        let (mut running, _output) = collect(&world, &[hello]);
        let mut errors = String::new();
        running.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        assert_eq!(running.wait().expect("it ends").code(), Some(4), "{errors}");
        assert!(errors.contains(&format!("on {older} is too old")) && errors.contains("install agtmux"), "{errors}");
    }
    stop(&world);
}
