//! The shared terminal in Pi: `/mirror`.

use std::fs;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

use super::pi_fixture::{PI_TIMEOUT, PiFixture};

const ACTIVITY: &str = "tmux-mirror-activity";
const MARK: &str = "[shared terminal]";

/// The shared terminals.
fn terminals(pi: &PiFixture) -> Vec<Value> {
    let (_, text, _) = pi.sandbox.run_agtmux(&["mirror", "status", "--json"]);
    let list: Value = serde_json::from_str(&text).unwrap_or_default();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Waits until a shared terminal other than this pane shows its prompt. Returns its pane.
#[track_caller]
fn ready_pane(pi: &PiFixture, other_than: &str) -> String {
    let pane = wait_for("a shared terminal at its prompt", SOON, || {
        let items = terminals(pi);
        let ready = items.iter().find(|item| item["status"] == "ready" && item["pane_id"] != other_than);
        ready.and_then(|item| item["pane_id"].as_str()).map(str::to_owned).ok_or(format!("{items:?}"))
    });
    pi.wait_for_screen("the status line", |screen| screen.contains(&format!("shared terminal: {pane}")));
    pane
}

/// Types a line into the shared terminal, as the person does.
fn type_in_pane(pi: &PiFixture, pane: &str, line: &str) {
    pi.sandbox.server.run(&["send-keys", "-t", pane, "-l", line]);
    pi.sandbox.server.run(&["send-keys", "-t", pane, "Enter"]);
}

fn pane_text(pi: &PiFixture, pane: &str) -> String {
    pi.sandbox.server.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", pane])
}

/// Pi with the shared terminal on from the start.
#[track_caller]
fn start_with(settings: &Value) -> Option<(PiFixture, String)> {
    let pi = PiFixture::open()?;
    pi.write_settings(settings);
    pi.use_bash_in_panes();
    pi.launch("pi");
    let pane = ready_pane(&pi, "");
    Some((pi, pane))
}

fn enabled() -> Value {
    json!({"mirror": {"enabled": true}})
}

#[test]
fn commands_of_the_model_are_seen_and_those_of_the_user_reach_the_conversation_once() {
    let Some(pi) = PiFixture::open_core() else { return };
    pi.use_bash_in_panes();
    pi.launch("pi");
    let (text, _) = pi.tool_result("RUN echo before; echo pane=$TMUX_PANE");
    assert!(text.contains(&format!("pane={}", pi.sandbox.pane)), "off by default: {text}");
    pi.type_line("/mirror on");
    let pane = ready_pane(&pi, "");
    let (text, is_error) = pi.tool_result("RUN echo from-model; printf 'a\\tb'; (exit 3)");
    assert_eq!((text.as_str(), is_error), ("from-model\na\tb\n\nCommand exited with code 3", true));
    let shown = pane_text(&pi, &pane);
    assert!(shown.contains("echo from-model; printf 'a\\tb'; (exit 3)"), "{shown}");
    assert!(!shown.contains("PI_TMUX_SESSION") && !shown.contains("export"), "only the command: {shown}");
    type_in_pane(&pi, &pane, "echo from-person; (exit 4)");
    let messages = pi.wait_for_messages_of(ACTIVITY, 1);
    let text = messages[0]["content"].as_str().unwrap_or_default();
    assert!(text.contains("proj $ echo from-person; (exit 4)\nfrom-person\n[exit code: 4]"), "{text}");
    let event = &messages[0]["details"]["events"][0];
    assert_eq!((&event["exitCode"], &event["command"]), (&json!(4), &json!("echo from-person; (exit 4)")));
    pi.wait_for_request(MARK);
    pi.wait_for_idle();
    pi.tool_result("RUN echo again");
    type_in_pane(&pi, &pane, "echo second");
    let messages = pi.wait_for_messages_of(ACTIVITY, 2);
    assert!(!messages.iter().any(|message| message.to_string().contains("again")), "{messages:?}");
    pi.wait_for_turns(MARK, 2);
    pi.type_line("/mirror status");
    pi.wait_for_screen("the status", |screen| screen.contains(&format!("pane {pane}, bash, ready")));
    pi.type_line("/mirror off");
    pi.wait_for_screen("the end of sharing", |screen| !screen.contains("shared terminal: %"));
    let (text, _) = pi.tool_result("RUN echo in-pi; echo pane=$TMUX_PANE");
    assert!(text.contains(&format!("pane={}", pi.sandbox.pane)), "{text}");
    assert!(!pane_text(&pi, &pane).contains("in-pi"));
    // What the person does while the terminal is not shared is private, also when it is shared again.
    type_in_pane(&pi, &pane, "echo private");
    wait_until("its output", SOON, || pane_text(&pi, &pane).matches("private").count() == 2);
    pi.type_line("/mirror on");
    ready_pane(&pi, "");
    type_in_pane(&pi, &pane, "echo third");
    let messages = pi.wait_for_messages_of(ACTIVITY, 3);
    assert!(messages[2].to_string().contains("echo third"), "{messages:?}");
}

#[test]
fn a_task_started_in_the_shared_terminal_belongs_to_the_session() {
    let Some((pi, pane)) = start_with(&enabled()) else { return };
    pi.run_task("build", "exit 2");
    let messages = pi.wait_for_messages(1);
    assert!(messages[0].to_string().contains("(build) exited with code 2"), "{messages:?}");
    assert!(pane_text(&pi, &pane).contains("tmux-task-run.sh build"), "{}", pane_text(&pi, &pane));
    let (text, _) = pi.tool_result("RUN sh -c 'echo id=$PI_SESSION_ID owner=$AGTMUX_OWNER'");
    let id = pi.entries()[0]["id"].as_str().expect("an id").to_owned();
    assert!(text.contains(&format!("id={id} owner=")), "{text}");
}

#[test]
fn a_command_in_the_shared_terminal_is_interrupted_by_escape_and_by_its_timeout() {
    let Some((pi, pane)) = start_with(&json!({"mirror": {"enabled": true, "timeout": 2}})) else { return };
    let (text, is_error) = pi.tool_result("RUN echo started; sleep 1000");
    assert!(
        text.starts_with("started\n^C") && text.ends_with("\nCommand timed out after 2 seconds") && is_error,
        "{text}"
    );
    pi.type_line("CALL bash {\"command\": \"echo second; sleep 1000\", \"timeout\": 900}");
    wait_until("the command", SOON, || terminals(&pi)[0]["status"] == "running");
    pi.wait_for_screen("its output in Pi", |screen| screen.lines().any(|line| line.trim() == "second"));
    pi.sandbox.press("Escape");
    wait_until("the end of the command", SOON, || terminals(&pi)[0]["status"] == "ready");
    wait_until("its result", PI_TIMEOUT, || {
        pi.tool_results().last().is_some_and(|(text, _)| text.ends_with("Command aborted"))
    });
    assert_eq!(pi.tool_result("RUN echo works").0, "works\n");
    assert!(pane_text(&pi, &pane).contains("^C"));
}

#[test]
fn a_closed_pane_is_made_again_and_followed() {
    let Some((pi, pane)) = start_with(&enabled()) else { return };
    assert_eq!(pi.tool_result("RUN echo one").0, "one\n");
    pi.sandbox.server.run(&["kill-pane", "-t", &pane]);
    let is_closed = |item: &Value| item["pane_id"] != pane.as_str() || item["status"] == "closed";
    wait_until("the pane to close", SOON, || terminals(&pi).iter().all(is_closed));
    assert_eq!(pi.tool_result("RUN echo two").0, "two\n");
    let next = ready_pane(&pi, &pane);
    type_in_pane(&pi, &next, "echo person");
    let messages = pi.wait_for_messages_of(ACTIVITY, 1);
    assert!(messages[0].to_string().contains("echo person"), "{messages:?}");
    pi.wait_for_idle();
    // A command that runs while the pane is closed is reported as lost, and is not run again.
    let log = pi.project_file("runs");
    pi.type_line(&format!("RUN echo run >>{}; sleep 1000", log.display()));
    wait_until("the command", SOON, || log.exists());
    pi.sandbox.server.run(&["kill-pane", "-t", &next]);
    wait_until("the result", PI_TIMEOUT, || {
        pi.tool_results()
            .last()
            .is_some_and(|(text, is_error)| *is_error && text.contains("result of the command is unknown"))
    });
    assert_eq!(fs::read_to_string(&log).expect("text"), "run\n");
}

#[test]
fn the_first_prompt_already_uses_the_shared_terminal_and_the_model_can_read_it() {
    let Some(pi) = PiFixture::open_core() else { return };
    pi.write_settings(&enabled());
    pi.use_bash_in_panes();
    pi.launch("pi 'RUN echo pane=$TMUX_PANE'");
    let pane = ready_pane(&pi, "");
    wait_until("the result", PI_TIMEOUT, || pi.tool_results().len() == 1);
    assert_eq!(pi.tool_results()[0].0, format!("pane={pane}\n"));
    pi.wait_for_idle();
    let (text, _) = pi.tool_result("CALL read_terminal {\"lines\": 20}");
    assert!(text.contains(&format!("pane={pane}")), "{text}");
}

#[test]
fn activity_can_be_added_without_a_turn() {
    let Some((pi, pane)) = start_with(&json!({"mirror": {"enabled": true, "activity": "message"}})) else { return };
    type_in_pane(&pi, &pane, "echo person");
    // The session file appears with the first answer.
    pi.prompt("SAY hello");
    let messages = pi.wait_for_messages_of(ACTIVITY, 1);
    assert!(messages[0].to_string().contains("echo person"), "{messages:?}");
    assert_eq!(pi.request_count(MARK), 0);
}

#[test]
fn activity_survives_a_reload_and_a_killed_daemon() {
    let Some((pi, pane)) = start_with(&enabled()) else { return };
    type_in_pane(&pi, &pane, "echo one");
    pi.wait_for_messages_of(ACTIVITY, 1);
    pi.wait_for_turns(MARK, 1);
    agtmux_testkit::agtmux::kill(agtmux_testkit::agtmux::pid(pi.sandbox.world()));
    type_in_pane(&pi, &pane, "echo two");
    pi.wait_for_messages_of(ACTIVITY, 2);
    pi.wait_for_turns(MARK, 2);
    pi.type_line("/reload");
    pi.wait_for_screen("the reload", |screen| screen.contains("Reloaded") || screen.contains("reloaded"));
    ready_pane(&pi, "");
    type_in_pane(&pi, &pane, "echo three");
    let messages = pi.wait_for_messages_of(ACTIVITY, 3);
    for (message, word) in messages.iter().zip(["one", "two", "three"]) {
        assert!(message["content"].as_str().is_some_and(|text| text.contains(&format!("echo {word}"))), "{message}");
    }
}

#[test]
fn outside_tmux_pi_keeps_its_own_bash_and_says_why() {
    let Some(pi) = PiFixture::open() else { return };
    pi.write_settings(&enabled());
    pi.launch("env -u TMUX -u TMUX_PANE pi");
    pi.wait_for_screen("the notice", |screen| screen.contains("Pi does not run in a pane of tmux"));
    assert_eq!(pi.tool_result("RUN echo still-$((40 + 2))").0, "still-42\n");
    assert!(terminals(&pi).is_empty());
}

/// An extension with the same names as this package.
const SAME_NAMES: &str = r#"
export default function (pi) {
	const tool = (name) => ({
		name, label: name, description: name, parameters: { type: "object", properties: {} },
		execute: async () => ({ content: [{ type: "text", text: "other" }], details: undefined }),
	});
	pi.on("session_start", () => {
		pi.registerTool(tool("read_terminal"));
		pi.registerCommand("mirror", { handler: async () => {} });
		pi.registerCommand("tmux-tasks", { handler: async () => {} });
	});
}
"#;

#[test]
fn an_extension_with_the_same_names_does_not_end_pi() {
    let Some(pi) = PiFixture::open() else { return };
    pi.add_extension("same-names.ts", SAME_NAMES);
    pi.write_settings(&enabled());
    pi.use_bash_in_panes();
    pi.launch("pi");
    let pane = ready_pane(&pi, "");
    assert_eq!(pi.tool_result("RUN echo pane=$TMUX_PANE").0, format!("pane={pane}\n"));
}

#[test]
fn the_prefix_of_the_users_settings_is_kept() {
    let Some(pi) = PiFixture::open() else { return };
    pi.write_settings(&enabled());
    pi.change_pi_settings("shellCommandPrefix", &json!("prefix=kept"));
    pi.use_bash_in_panes();
    pi.launch("pi");
    ready_pane(&pi, "");
    assert_eq!(pi.tool_result("RUN echo $prefix").0, "kept\n");
    pi.type_line("/mirror off");
    pi.wait_for_screen("the end of sharing", |screen| !screen.contains("shared terminal: %"));
    assert_eq!(pi.tool_result("RUN echo $prefix").0, "kept\n");
}

#[test]
fn wrong_settings_are_reported_and_left_out() {
    let Some(pi) = PiFixture::open() else { return };
    pi.write_settings(&json!({"mirror": {"enabled": "yes"}}));
    pi.launch("pi");
    pi.wait_for_screen("the warning", |screen| {
        screen.replace('\n', "").contains("\"mirror.enabled\" must be true or false")
    });
    pi.prompt("SAY works");
}
