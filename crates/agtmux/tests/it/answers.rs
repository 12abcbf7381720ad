//! `agtmux last`, `handoff` and `broadcast` with fake agents, whose conversations the tests write.

use std::fs;
use std::path::PathBuf;

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{CommandResult, agtmux, run};
use serde_json::{Value, json};

const NO_ANSWER: i32 = 1;

fn user(text: &str) -> Value {
    json!({"type": "user", "isSidechain": false, "timestamp": "2026-11-19T20:29:42.796Z",
        "message": {"role": "user", "content": text}})
}

fn answer(text: &str) -> Value {
    json!({"type": "assistant", "isSidechain": false, "timestamp": "2026-11-19T20:29:43Z",
        "message": {"id": text, "role": "assistant", "content": [{"type": "text", "text": text}]}})
}

struct AnswerFixture {
    actions: ActionFixture,
    agent: RecordingAgent,
}

impl AnswerFixture {
    /// An agent that has reported the session `abc-1`.
    fn new() -> Self {
        let actions = ActionFixture::new("");
        let agent = actions.agent("work");
        let fixture = Self { actions, agent };
        fixture.report_session("abc-1");
        fixture
    }

    fn report_session(&self, session: &str) {
        let payload = self.actions.world.home().join("payload");
        let text = json!({"session_id": session, "source": "clear"}).to_string();
        fs::write(&payload, text).expect("the world is writable");
        let pane = self.agent.pane.as_str();
        let args = ["emit", "--pane", pane, "--agent", "claude", "--source", "hook", "--event-type", "SessionStart"];
        let mut emit = self.actions.world.agtmux();
        let emitted = run(emit.args(args).args(["--dedupe-key", session, "--payload"]).arg(&payload));
        assert!(emitted.code == Some(0) && emitted.text().contains("accepted"), "{emitted:?}");
    }

    fn conversation(&self, session: &str) -> PathBuf {
        self.actions.world.home().join(format!(".claude/projects/-proj/{session}.jsonl"))
    }

    fn write(&self, session: &str, records: &[Value]) {
        let path = self.conversation(session);
        fs::create_dir_all(path.parent().expect("a directory")).expect("the world is writable");
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        fs::write(path, lines).expect("the world is writable");
    }

    fn last(&self, more: &[&str]) -> CommandResult {
        agtmux(&self.actions.world, &[&["last", &self.agent.pane], more].concat())
    }
}

#[test]
fn the_answer_is_printed_exactly_and_of_the_current_conversation() {
    let fixture = AnswerFixture::new();
    let text = "# Title\n\n\tcode  \n- **x** \u{1b}[31m é 日本\n\nend";
    fixture.write("abc-1", &[user("old"), answer("older"), user("say it\nin two lines"), answer(text)]);
    let last = fixture.last(&[]);
    assert_eq!((last.code, last.text()), (Some(0), format!("{text}\n")), "{last:?}");
    assert_eq!(last.stderr, "");
    let turns = fixture.last(&["--turns", "2"]);
    let expected = format!("> old\n\nolder\n\n> say it\n> in two lines\n\n{text}\n");
    assert_eq!(turns.text(), expected);
    let json = fixture.last(&["--turns", "9", "--json"]).json();
    let found =
        (&json["source"], &json["session"], json["turns"].as_array().map(Vec::len), &json["turns"][1]["ending"]);
    assert_eq!(found, (&json!("transcript"), &json!("abc-1"), Some(2), &json!("answered")), "{json}");
    assert_eq!(json["turns"][0]["answered_at"], "2026-11-19T20:29:43Z", "{json}");
    // After /clear the agent has another session.
    fixture.report_session("abc-2");
    fixture.write("abc-2", &[user("new")]);
    let none = fixture.last(&[]);
    assert!(none.code == Some(NO_ANSWER) && none.stderr.contains("has written no answer"), "{none:?}");
    fixture.write("abc-2", &[user("new"), answer("newer")]);
    assert_eq!(fixture.last(&[]).text(), "newer\n");
    // The audit log names the reader, not the text.
    let audit = json!(fixture.actions.audit()).to_string();
    assert!(audit.contains("\"last\"") && !audit.contains("newer") && !audit.contains("Title"), "{audit}");
}

#[test]
fn a_very_long_conversation_is_read_from_its_end() {
    let fixture = AnswerFixture::new();
    let mut records: Vec<Value> =
        (0..60).flat_map(|n| [user(&format!("q{n}")), answer(&"x".repeat(100_000))]).collect();
    records.extend([user("q"), answer("short")]);
    fixture.write("abc-1", &records);
    assert_eq!(fixture.last(&[]).text(), "short\n");
    let many = fixture.last(&["--turns", "25", "--json"]).json();
    assert_eq!((many["turns"].as_array().map(Vec::len), &many["turns"][0]["prompt"]), (Some(25), &json!("q36")));
}

#[test]
fn without_a_conversation_the_screen_is_printed_and_marked() {
    let fixture = AnswerFixture::new();
    let last = fixture.last(&[]);
    assert!(last.code == Some(0) && last.text().contains("● Done."), "{last:?}");
    assert!(last.stderr.contains("read from the screen"), "{last:?}");
    let json = fixture.last(&["--json"]).json();
    assert_eq!((&json["source"], &json["turns"][0]["ending"]), (&json!("screen"), &json!("unknown")), "{json}");
    // A file of another owner, a link or an invalid file is not read.
    let path = fixture.conversation("abc-1");
    fs::create_dir_all(path.parent().expect("a directory")).expect("the world is writable");
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("the world is writable");
    assert_eq!(fixture.last(&["--json"]).json()["source"], "screen");
    for (body, why) in [
        (json!({"turns": 0}), "between 1 and"),
        (json!({"request_ref": "x"}), "does not accept"),
        (json!({"x": 1}), "unknown field"),
    ] {
        let body = agtmux_testkit::action_fixture::merge_json(&json!({"ref": fixture.agent.pane}), &body);
        let answer = fixture.actions.post("last", &body);
        assert!(answer.status == 400 && answer.json().to_string().contains(why), "{body}: {}", answer.json());
    }
}

#[test]
fn an_answer_is_handed_over_once_with_its_note() {
    let fixture = AnswerFixture::new();
    let receiver = fixture.actions.agent("other");
    let hand_over = |more: &[&str]| {
        let args = [&["handoff", fixture.agent.pane.as_str(), receiver.pane.as_str()], more].concat();
        agtmux(&fixture.actions.world, &args)
    };
    let refused = hand_over(&[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("only its screen"), "{refused:?}");
    let interrupted =
        json!({"type": "user", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}});
    fixture.write("abc-1", &[user("plan"), answer("half a"), interrupted]);
    let refused = hand_over(&[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("was interrupted"), "{refused:?}");
    receiver.assert_no_input();
    fixture.write("abc-1", &[user("plan"), answer("1. Do this\n2. Do that")]);
    let done = hand_over(&["--note", "Review this plan:"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(receiver.submitted_texts(), ["Review this plan:\n\n1. Do this\n2. Do that"]);
    fixture.agent.assert_no_input();
}

#[test]
fn a_broadcast_reaches_the_shown_agents_and_reports_each() {
    let fixture = AnswerFixture::new();
    let (idle, busy) = (fixture.actions.agent("other"), fixture.actions.agent("third"));
    fixture.actions.show_scene(&busy, "dialog", "waiting_approval");
    let broadcast = |more: &[&str]| {
        let args = [&["broadcast", "--agent", "claude", "--text", "pull\nand test"], more].concat();
        agtmux(&fixture.actions.world, &args)
    };
    let asked = broadcast(&["--state", "idle"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("to these 2 agents?"), "{asked:?}");
    assert!(asked.stderr.contains(&idle.pane) && !asked.stderr.contains(&format!("{} host", busy.pane)), "{asked:?}");
    idle.assert_no_input();
    let none = broadcast(&["--state", "error", "--yes"]);
    assert!(none.code == Some(1) && none.stderr.contains("no agent matches"), "{none:?}");
    let partly = broadcast(&["--state", "idle,waiting_approval", "--yes", "--json"]);
    let report: Value = serde_json::from_slice(&partly.stdout).expect("JSON");
    assert_eq!((partly.code, report["items"].as_array().map(Vec::len)), (Some(1), Some(3)), "{report}");
    let failed: Vec<&Value> =
        report["items"].as_array().into_iter().flatten().filter(|item| item["sent"].is_null()).collect();
    assert!(matches!(failed[..], [item] if item["pane_id"] == busy.pane.as_str()), "{report}");
    assert_eq!(idle.submitted_texts(), ["pull\nand test"]);
    busy.draw_scene("idle");
    busy.assert_no_input();
}
