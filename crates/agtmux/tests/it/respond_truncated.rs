//! What is approved is shown in full: a dialog that shows only a part of a command is not approved by accident.

use std::thread;

use agtmux_testkit::action_fixture::assert_refused;
use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux};
use agtmux_testkit::bridge::{hook, post, session_start};
use agtmux_testkit::dialog_agent::DialogAgent;
use agtmux_testkit::http;
use agtmux_testkit::wait_for;
use serde_json::{Value, json};

const COMMAND: &str = "rm -rf ~/work && echo one two three four five six seven eight nine ten eleven twelve thirteen \
                       fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three \
                       twenty-four twenty-five twenty-six twenty-seven twenty-eight twenty-nine thirty thirty-one";
const AT_REST: &str = "● done\n\n─────────────────\n❯ \n─────────────────\n  ? for shortcuts";

/// A dialog as Claude draws it in a pane of 45 columns.
fn narrow_dialog(command: &str) -> String {
    let rule = "─".repeat(45);
    let dashes = "╌".repeat(45);
    let letters: Vec<char> = command.chars().collect();
    let rows: String = letters.chunks(43).map(|row| format!(" {}\n", row.iter().collect::<String>())).collect();
    format!(
        "{rule}\n Bash command\n Run mock command\n{dashes}\n{rows}{dashes}\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, always\n   \
         3. No\n\n Esc to cancel · Tab to amend"
    )
}

/// An agent in a pane of 45x12, in which the beginning of the command has scrolled off.
fn agent_in_a_small_pane() -> DialogAgent {
    let agent = DialogAgent::start();
    agent.server.run(&["resize-window", "-t", "=work:", "-x", "45", "-y", "12"]);
    agent.draw(&narrow_dialog(COMMAND));
    agent.wait_for_dialog("thirty-one");
    agent
}

fn close_after_a_key(agent: &DialogAgent, before: usize) {
    wait_for("the answer to be typed", SOON, || (agent.typed().len() > before).then_some(()));
    agent.draw(AT_REST);
}

fn respond_until_closed(agent: &DialogAgent, answer: &[&str]) -> CommandResult {
    let before = agent.typed().len();
    thread::scope(|scope| {
        let responds = scope.spawn(|| agtmux(&agent.world, &[&["respond", &agent.pane, "--json"], answer].concat()));
        close_after_a_key(agent, before);
        responds.join().expect("respond exits")
    })
}

/// Reports a request for approval as Claude's hook does.
fn report_request(agent: &DialogAgent, command: &str) {
    let event = json!({
        "pane": agent.pane, "socket": agent.server.socket(), "agent_type": "claude", "source": "hook", "event_type": "PermissionRequest",
        "dedupe_key": command.len().to_string(), "event_time": jiff::Timestamp::now().to_string(),
        "payload": {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": command, "description": "Run mock command"}},
    });
    let answer = http::post(&agent.world.socket(), "/v1/events", &event.to_string());
    assert_eq!(answer.status, 202, "{}", answer.json());
}

#[test]
fn a_part_of_a_command_is_approved_only_if_the_caller_accepts_that() {
    let agent = agent_in_a_small_pane();
    let dialog = agent.dialog();
    assert_eq!(dialog["subject_truncated"], true, "{dialog}");
    assert!(!dialog.to_string().contains("rm -rf"), "{dialog}");
    for answer in ["approve", "1", "2"] {
        let done = agtmux(&agent.world, &["respond", &agent.pane, answer]);
        assert_eq!(done.code, Some(5), "{answer}: {done:?}");
        assert!(done.stderr.contains("only a part of the dialog's subject is visible"), "{}", done.stderr);
        assert!(done.stderr.contains("--accept-truncated") && done.stderr.contains("agtmux attach"), "{}", done.stderr);
    }
    assert_eq!(agent.typed(), "", "nothing was typed");
    let done = respond_until_closed(&agent, &["approve", "--accept-truncated"]);
    assert_eq!(done.json()["verified"], "confirmed", "{done:?}");
    assert_eq!(agent.typed(), "1");
}

#[test]
fn a_part_of_a_command_is_always_denied() {
    for (answer, key) in [("deny", "\x1b"), ("3", "3")] {
        let agent = agent_in_a_small_pane();
        let done = respond_until_closed(&agent, &[answer]);
        assert_eq!(done.json()["verified"], "confirmed", "{done:?}");
        assert_eq!(agent.typed(), key);
    }
}

#[test]
fn the_api_and_the_bridge_refuse_to_approve_a_part_of_a_command() {
    let agent = agent_in_a_small_pane();
    let body = |more: Value| json!({"ref": agent.pane, "answer": "approve", "accept_truncated": more}).to_string();
    let refused = http::post(&agent.world.socket(), "/v1/actions/respond", &body(json!(false)));
    assert_refused(&refused, "E_SUBJECT_TRUNCATED");
    let agent_id = hook(&agent.world, "session-start", &session_start("s", &agent.pane, agent.server.socket()));
    agent.wait_for_dialog("thirty-one");
    let path = format!("/api/respond/{agent_id}");
    let select = |accept: bool| json!({"mode": "select", "option_index": 0, "accept_truncated": accept}).to_string();
    let refused = post(&agent.world, &path, &select(false));
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("E_SUBJECT_TRUNCATED")), "{}", refused.json());
    assert_eq!(agent.typed(), "", "nothing was typed");
    let accepted = thread::scope(|scope| {
        let responds = scope.spawn(|| post(&agent.world, &path, &select(true)));
        close_after_a_key(&agent, 0);
        responds.join().expect("respond returns")
    });
    assert_eq!(accepted.status, 200, "{}", accepted.json());
    assert_eq!(agent.typed(), "1");
}

#[test]
fn a_command_that_the_agent_reports_is_shown_in_full_and_can_be_approved() {
    let agent = agent_in_a_small_pane();
    let of_screen = agent.dialog()["fingerprint"].clone();
    report_request(&agent, COMMAND);
    let fingerprint = agent.wait_for_dialog("rm -rf ~/work");
    let dialog = agent.dialog();
    assert_eq!(dialog["subject"], COMMAND);
    assert_eq!(dialog["subject_truncated"], Value::Null, "{dialog}");
    assert_ne!(dialog["fingerprint"], of_screen, "the next command may have the same end");
    let stale = ["respond", &agent.pane, "approve", "--if-dialog", of_screen.as_str().expect("a text")];
    assert_eq!(agtmux(&agent.world, &stale).code, Some(5), "this dialog was not shown in full");
    let done = respond_until_closed(&agent, &["approve", "--if-dialog", &fingerprint]);
    assert_eq!(done.json()["dialog"]["subject"], COMMAND, "{done:?}");
    assert_eq!(agent.typed(), "1");
}

#[test]
fn a_reported_command_is_not_shown_for_another_dialog() {
    let agent = agent_in_a_small_pane();
    report_request(&agent, "echo something else that is harmless");
    let listed = || Some(agent.dialog()).filter(|dialog| dialog["subject_truncated"] == true);
    let dialog = wait_for("the dialog", SOON, listed);
    assert!(!dialog.to_string().contains("harmless"), "{dialog}");
    assert_eq!(agtmux(&agent.world, &["respond", &agent.pane, "approve"]).code, Some(5));
    // Two requests with the same end: the screen does not tell them apart.
    report_request(&agent, COMMAND);
    agent.wait_for_dialog("rm -rf ~/work");
    report_request(&agent, &COMMAND.replace("rm -rf", "rm -rfv"));
    wait_for("an ambiguous command", SOON, || (agent.dialog()["subject_truncated"] == true).then_some(()));
    assert_eq!(agtmux(&agent.world, &["respond", &agent.pane, "approve"]).code, Some(5));
    assert_eq!(agent.typed(), "");
}

/// The screen shows how the agent wraps the command, but not where the command has blanks.
#[test]
fn a_wrapped_command_keeps_its_rows_or_its_own_blanks() {
    let agent = DialogAgent::start();
    agent.server.run(&["resize-window", "-t", "=work:", "-x", "45", "-y", "30"]);
    agent.draw(&narrow_dialog(COMMAND));
    agent.wait_for_dialog("rm -rf ~/work");
    let dialog = agent.dialog();
    assert_eq!(dialog["subject_truncated"], Value::Null, "{dialog}");
    let subject = dialog["subject"].as_str().expect("a subject").to_owned();
    assert!(subject.starts_with("Bash command\nRun mock command\nrm -rf ~/work && echo"), "{subject}");
    let rows: String = subject.lines().skip(2).collect();
    assert_eq!(rows.replace(' ', ""), COMMAND.replace(' ', ""), "no letter is lost");
    report_request(&agent, COMMAND);
    let exact = format!("Bash command\nRun mock command\n{COMMAND}");
    wait_for("the exact command", SOON, || (agent.dialog()["subject"] == exact.as_str()).then_some(()));
}

#[test]
fn an_ellipsis_in_the_command_is_not_approved_by_accident() {
    let agent = DialogAgent::start();
    agent.ask_permission("echo one …");
    agent.wait_for_dialog("echo one");
    assert_eq!(agent.dialog()["subject_truncated"], true);
    assert_eq!(agtmux(&agent.world, &["respond", &agent.pane, "approve"]).code, Some(5));
    assert_eq!(agent.typed(), "");
}
