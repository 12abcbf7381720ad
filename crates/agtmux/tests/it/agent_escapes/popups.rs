//! The interface in a popup may act if a person opened the popup by a key. No other command in a popup may.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{AttachedClient, ChildGuard, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

/// An agent that asks for permission, and a person's client in another session.
fn start() -> (ActionFixture, RecordingAgent, AttachedClient) {
    let fixture = ActionFixture::new("actions.allow_from_agents = false\n");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "permission", "waiting_approval");
    fixture.server.new_session("home", "cat");
    let client = fixture.server.attach("home");
    (fixture, agent, client)
}

fn open_by_key(fixture: &ActionFixture, client: &AttachedClient, command: &str) {
    fixture.server.run(&["bind-key", "-T", "prefix", "a", "display-popup", "-w", "100%", "-h", "100%", "-E", command]);
    client.type_keys(b"\x02a");
}

fn wait_for_dialog(client: &AttachedClient) {
    wait_until("the dialog in the popup", SOON, || String::from_utf8_lossy(&client.output()).contains("rm -r build"));
}

fn responses(fixture: &ActionFixture) -> Vec<serde_json::Value> {
    fixture.audit().into_iter().filter(|record| record["kind"] == "respond").collect()
}

#[test]
fn a_person_answers_in_a_popup_that_a_key_opens() {
    let (fixture, agent, client) = start();
    open_by_key(&fixture, &client, &format!("exec {AGTMUX} inbox"));
    wait_for_dialog(&client);
    // A key that comes too soon after the dialog is not taken, so press it until it is.
    wait_until("the answer", SOON, || {
        client.type_keys(b"1");
        fixture.item(&agent).is_some_and(|item| item["state"] == "idle")
    });
    assert_eq!(agent.input_so_far(), b"1", "the answer was typed once");
    wait_until("the record of the answer", SOON, || {
        responses(&fixture).iter().any(|record| record["status"] == "done")
    });
    client.type_keys(b"q");
}

#[test]
fn a_popup_that_no_key_opened_may_not_answer() {
    let (fixture, agent, client) = start();
    wait_until("the last key to be old", SOON, || {
        let last_key = fixture.server.run(&["list-clients", "-F", "#{client_activity}"]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date after 1970").as_secs();
        now > last_key.parse::<u64>().expect("a time") + 4
    });
    let tty = fixture.server.run(&["list-clients", "-F", "#{client_tty}"]);
    let mut open = fixture.server.command();
    open.args(["display-popup", "-c", &tty, "-w", "100%", "-h", "100%", "-E", &format!("exec {AGTMUX}")]);
    let _popup = ChildGuard::start(open.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    wait_for_dialog(&client);
    wait_until("the refusal", SOON, || {
        client.type_keys(b"1");
        responses(&fixture).iter().any(|record| record["code"] == "E_CALLER_IS_AGENT")
    });
    agent.assert_no_input();
    client.type_keys(b"q");
}

#[test]
fn a_popup_with_another_command_may_not_answer() {
    let (fixture, agent, client) = start();
    let (answers, out) = (fixture.world.home().join("answers"), fixture.world.home().join("out"));
    std::fs::write(&answers, "1\n1\n1\n").expect("the world is writable");
    for command in [
        format!("exec {AGTMUX} respond {} 1", agent.runtime),
        format!("exec {AGTMUX} inbox --plain <{}", answers.display()),
        format!("exec {AGTMUX} inbox <{}", answers.display()),
    ] {
        let before = responses(&fixture).len();
        open_by_key(&fixture, &client, &format!("{command} >{} 2>&1", out.display()));
        wait_until("the refusal", SOON, || responses(&fixture).len() > before);
        wait_until("the message", SOON, || {
            std::fs::read_to_string(&out).is_ok_and(|said| said.contains("agents may not respond"))
        });
        std::fs::remove_file(&out).expect("the file exists");
    }
    assert!(responses(&fixture).iter().all(|record| record["code"] == "E_CALLER_IS_AGENT"));
    agent.assert_no_input();
}
