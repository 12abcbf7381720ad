//! Recorded events of real agents, and what their manifests make of them.

mod confirmed;
mod copilot;
mod opencode;
mod pi;
mod qwen;

use agtmux_core::evidence::{Assertion, DialogKind, Source};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{AdapterMemory, NativeEvent};
use crate::AgentRegistry;

const ASKS: Assertion = Assertion::DialogOpen(DialogKind::Approval);
const QUESTION: Assertion = Assertion::DialogOpen(DialogKind::Input);
const NOTHING: Assertion = Assertion::NoDialog;

/// One agent, event by event.
struct Story {
    agent: &'static str,
    memory: AdapterMemory,
    now: Timestamp,
}

impl Story {
    fn of(agent: &'static str) -> Self {
        Self { agent, memory: AdapterMemory::default(), now: Timestamp::from_second(1_000_000).expect("in range") }
    }

    fn recorded(&self, name: &str) -> Value {
        let path = format!("{}/evidence/hooks/{}/{name}.json", env!("CARGO_MANIFEST_DIR"), self.agent);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut payload: Value = serde_json::from_str(&text).expect("recorded JSON");
        // They were recorded in different sessions; here they tell of one.
        for name in ["session_id", "thread-id"] {
            if payload.get(name).is_some() && !name_is_of_side_thread(&path) {
                payload[name] = json!("5fb0cf8a-72f8-44e6-bdb5-bc8b0383eb7f");
            }
        }
        payload
    }

    /// What a recorded hook payload says.
    fn hook(&mut self, name: &str) -> Vec<Assertion> {
        let payload = self.recorded(name);
        self.say(&payload)
    }

    fn say(&mut self, payload: &Value) -> Vec<Assertion> {
        let event_type = payload["hook_event_name"].as_str().expect("a hook").to_owned();
        self.event(Source::Hook, &event_type, payload)
    }

    fn event(&mut self, source: Source, event_type: &str, payload: &Value) -> Vec<Assertion> {
        self.now += SignedDuration::from_millis(10);
        let event = NativeEvent { source, event_type, payload, at: self.now };
        let told = AgentRegistry::builtin().reduce(self.agent, &mut self.memory, event, self.now);
        told.into_iter().map(|told| told.assertion).collect()
    }

    /// The events of a recording, one on each line.
    fn lines(&self, name: &str) -> Vec<Value> {
        let path = format!("{}/evidence/hooks/{}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"), self.agent);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        text.lines().map(|line| serde_json::from_str(line).expect("recorded JSON")).collect()
    }

    fn line(&mut self, line: &Value) -> Vec<Assertion> {
        let event_type = line["event"].as_str().expect("an event").to_owned();
        self.event(Source::Hook, &event_type, &line["payload"])
    }

    /// What each event of a recording says.
    fn tell(&mut self, name: &str) -> Vec<Vec<Assertion>> {
        self.lines(name).iter().map(|line| self.line(line)).collect()
    }

    fn later(&mut self, millis: i64) -> Option<Assertion> {
        self.now += SignedDuration::from_millis(millis);
        self.memory.take_due(self.now).map(|told| told.assertion)
    }
}

fn name_is_of_side_thread(path: &str) -> bool {
    path.contains("title-thread")
}

#[test]
fn a_turn_of_claude() {
    let mut claude = Story::of("claude");
    assert_eq!(claude.hook("SessionStart.startup"), [Assertion::Idle, NOTHING]);
    assert_eq!(claude.hook("UserPromptSubmit"), [Assertion::Running, NOTHING]);
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running]);
    assert_eq!(claude.hook("PermissionRequest"), [ASKS]);
    let mut done = claude.recorded("PermissionRequest");
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(claude.say(&done), [Assertion::Running, NOTHING]);
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NOTHING]);
    assert_eq!(claude.hook("StopFailure.server_error"), [Assertion::Failed, NOTHING]);
}

#[test]
fn a_tool_that_ends_does_not_answer_for_another() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("PermissionRequest");
    assert_eq!(claude.hook("PostToolUse"), [Assertion::Running], "another tool's end");
    assert_eq!(claude.hook("PermissionRequest.AskUserQuestion"), [QUESTION]);
    let answered = claude.hook("PostToolUse.AskUserQuestion");
    assert_eq!(answered, [Assertion::Running, ASKS], "the first question is still open");
}

#[test]
fn a_turn_that_ends_leaves_the_question_of_a_subagent_open() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    let mut request = claude.recorded("PermissionRequest");
    request["agent_id"] = json!("a5a34f56645410a62");
    assert_eq!(claude.say(&request), [ASKS]);
    assert_eq!(claude.hook("Stop.bg"), [Assertion::Running, ASKS]);
    request["hook_event_name"] = json!("PostToolUse");
    assert_eq!(claude.say(&request), [Assertion::Running, NOTHING]);
}

#[test]
fn what_goes_on_in_the_background_keeps_a_turn_running() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop.bg"), [Assertion::Running, NOTHING]);
    let mut notified = claude.recorded("UserPromptSubmit");
    notified["prompt"] = json!("<task-notification>\n<task-id>1</task-id>");
    assert_eq!(claude.say(&notified), [Assertion::Running]);
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NOTHING]);
}

#[test]
fn the_stop_of_a_turn_is_held_back_while_a_prompt_is_queued() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [NOTHING], "the queued prompt is next");
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running]);
    assert_eq!(claude.later(10_000), None, "the next turn has begun");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NOTHING]);
}

#[test]
fn a_queued_prompt_that_never_came_does_not_hide_the_end() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("UserPromptSubmit");
    claude.hook("Stop");
    assert_eq!(claude.later(100), None);
    assert_eq!(claude.later(1_000), Some(Assertion::Completed));
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NOTHING], "nothing is queued any more");
}

#[test]
fn compaction_and_what_is_not_known_say_nothing() {
    let mut claude = Story::of("claude");
    for name in ["SessionStart.compact", "PreCompact", "PostCompact", "MessageDisplay", "SubagentStop", "ConfigChange"]
    {
        assert_eq!(claude.hook(name), [], "{name}");
    }
    assert_eq!(claude.hook("SessionEnd.clear"), []);
    assert_eq!(claude.hook("Notification.permission_prompt"), [], "it comes six seconds late, perhaps too late");
}

#[test]
fn the_status_file_of_claude() {
    let mut claude = Story::of("claude");
    let mut status = |status: &str, waiting_for: &str| {
        let payload = json!({"status": status, "waitingFor": waiting_for, "statusUpdatedAt": 5_000});
        claude.event(Source::File, "status", &payload)
    };
    assert_eq!(status("busy", ""), [Assertion::Running, NOTHING]);
    assert_eq!(status("shell", ""), [Assertion::Running, NOTHING]);
    assert_eq!(status("idle", ""), [NOTHING], "the next turn may begin at once");
    assert_eq!(status("waiting", "permission prompt"), [ASKS]);
    assert_eq!(status("waiting", "input needed"), [QUESTION]);
    assert_eq!(status("waiting", "dialog open"), [QUESTION]);
    assert_eq!(status("something new", ""), []);
    assert_eq!(status("busy", ""), [Assertion::Running, NOTHING]);
    assert_eq!(claude.later(1_000), None);
    claude.event(Source::File, "status", &json!({"status": "idle"}));
    claude.hook("PreToolUse");
    assert_eq!(claude.later(1_000), Some(Assertion::Idle), "a hook does not speak for the file");
}

#[test]
fn a_status_file_tells_since_when() {
    let mut memory = AdapterMemory::default();
    let (at, now) = (Timestamp::from_second(90).expect("in range"), Timestamp::from_second(100).expect("in range"));
    let payload = json!({"status": "busy", "statusUpdatedAt": 80_000});
    let event = NativeEvent { source: Source::File, event_type: "status", payload: &payload, at };
    let told = AgentRegistry::builtin().reduce("claude", &mut memory, event, now);
    assert!(told.iter().all(|told| told.as_of == Timestamp::from_second(80).expect("in range")));
}

#[test]
fn a_turn_of_codex() {
    let mut codex = Story::of("codex");
    assert_eq!(codex.hook("hook.SessionStart"), []);
    assert_eq!(codex.hook("hook.UserPromptSubmit"), [Assertion::Running, NOTHING]);
    assert_eq!(codex.hook("hook.PreModelRequest"), [Assertion::Running]);
    assert_eq!(codex.hook("hook.PreToolUse"), [Assertion::Running]);
    assert_eq!(codex.hook("hook.PermissionRequest"), [ASKS]);
    assert_eq!(
        codex.hook("hook.PostToolUse"),
        [Assertion::Running, NOTHING],
        "the same command, told with less around it"
    );
    assert_eq!(codex.hook("hook.PostModelRequest.failed"), [], "it may try again");
    assert_eq!(codex.hook("hook.Stop"), [Assertion::Completed, NOTHING]);
    assert_eq!(codex.hook("hook.Interrupt"), [Assertion::Idle, NOTHING]);
    assert_eq!(codex.hook("hook.SessionEnd"), []);
}

#[test]
fn a_question_of_codex() {
    let mut codex = Story::of("codex");
    let mut asked = codex.recorded("hook.PreToolUse");
    asked["tool_name"] = json!("request_user_input");
    assert_eq!(codex.say(&asked), [Assertion::Running, QUESTION]);
    asked["hook_event_name"] = json!("PostToolUse");
    assert_eq!(codex.say(&asked), [Assertion::Running, NOTHING]);
}

#[test]
fn the_title_thread_of_codex_ends_no_turn() {
    let mut codex = Story::of("codex");
    let (own, side) =
        (codex.recorded("notify.agent-turn-complete"), codex.recorded("notify.agent-turn-complete.title-thread"));
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &own), [], "which thread is whose is not known yet");
    codex.hook("hook.UserPromptSubmit");
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &side), []);
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &own), [Assertion::Completed]);
}

#[test]
fn a_turn_of_gemini() {
    let mut gemini = Story::of("gemini");
    assert_eq!(gemini.hook("hook.SessionStart"), [Assertion::Idle, NOTHING]);
    assert_eq!(gemini.hook("hook.BeforeAgent"), [Assertion::Running, NOTHING]);
    assert_eq!(gemini.hook("hook.BeforeTool"), [Assertion::Running]);
    assert_eq!(gemini.hook("hook.Notification.exec"), [ASKS]);
    assert_eq!(gemini.hook("hook.AfterTool"), [Assertion::Running, NOTHING]);
    assert_eq!(gemini.hook("hook.Notification.edit"), [ASKS]);
    assert_eq!(gemini.hook("hook.AfterTool"), [Assertion::Running, NOTHING]);
    assert_eq!(gemini.hook("hook.Notification.ask_user"), [QUESTION]);
}

#[test]
fn how_a_turn_of_gemini_ended_is_told_by_its_last_record() {
    let ends = [
        (json!({"type": "gemini", "text": "hello"}), Assertion::Completed),
        (json!({"type": "error", "text": "[API Error: 400]"}), Assertion::Failed),
        (json!({"type": "info", "text": "This request failed. Press F12 for diagnostics"}), Assertion::Failed),
        (json!({"type": "info", "text": "Request cancelled."}), Assertion::Idle),
        (Value::Null, Assertion::Idle),
    ];
    for (record, stand) in ends {
        let mut gemini = Story::of("gemini");
        gemini.hook("hook.BeforeAgent");
        let mut end = gemini.recorded("hook.AfterAgent");
        end["agtmux"] = json!({ "last_record": record });
        assert_eq!(gemini.say(&end), [NOTHING], "a queued message may follow");
        assert_eq!(gemini.later(400), Some(stand), "{record}");
    }
}

#[test]
fn a_message_that_gemini_had_queued_goes_on_running() {
    let mut gemini = Story::of("gemini");
    gemini.hook("hook.BeforeAgent");
    gemini.hook("hook.AfterAgent");
    assert_eq!(gemini.later(100), None);
    assert_eq!(gemini.hook("hook.BeforeAgent"), [Assertion::Running, NOTHING]);
    assert_eq!(gemini.later(1_000), None);
}

#[test]
fn words_of_wrappers_are_understood_for_every_agent() {
    assert_eq!(Story::of("claude").event(Source::Wrapper, "running", &Value::Null), [Assertion::Running, NOTHING]);
    assert_eq!(Story::of("nobody").event(Source::Wrapper, "idle", &Value::Null), [Assertion::Idle, NOTHING]);
}

#[test]
fn an_agent_below_the_agent_does_not_speak_for_it() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    for name in ["SessionStart.startup", "UserPromptSubmit", "PermissionRequest", "Stop"] {
        let mut inner = claude.recorded(name);
        inner["session_id"] = json!("another");
        assert_eq!(claude.say(&inner), [], "{name}");
    }
    for source in ["clear", "resume", "fork"] {
        let mut begun = claude.recorded("SessionStart.clear");
        (begun["source"], begun["session_id"]) = (json!(source), json!(source));
        assert_eq!(claude.say(&begun), [Assertion::Idle, NOTHING], "{source}");
        let mut next = claude.recorded("UserPromptSubmit");
        next["session_id"] = json!(source);
        assert_eq!(claude.say(&next), [Assertion::Running, NOTHING], "{source}");
    }
}

#[test]
fn a_question_that_is_still_open_is_as_old_as_it_is() {
    let (mut memory, second) = (AdapterMemory::default(), |n| Timestamp::from_second(n).expect("in range"));
    let mut tell = |event_type: &str, tool: &str, at: i64| {
        let payload = json!({"session_id": "s", "tool_name": tool});
        let event = NativeEvent { source: Source::Hook, event_type, payload: &payload, at: second(at) };
        let told = AgentRegistry::builtin().reduce("claude", &mut memory, event, second(at));
        told.into_iter().find(|told| told.assertion == ASKS).map(|told| told.as_of)
    };
    assert_eq!(tell("PermissionRequest", "A", 10), Some(second(10)));
    assert_eq!(tell("PermissionRequest", "B", 20), Some(second(20)));
    assert_eq!(tell("PostToolUse", "B", 60), Some(second(10)), "nobody has asked anew");
}

#[test]
fn a_session_is_remembered() {
    let mut claude = Story::of("claude");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.memory.session.as_deref(), Some("5fb0cf8a-72f8-44e6-bdb5-bc8b0383eb7f"));
}

#[test]
fn the_log_of_codex() {
    let mut codex = Story::of("codex");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/evidence/logs/codex.jsonl");
    let log = AgentRegistry::builtin().log_file("codex").expect("it keeps one");
    let mut told = Vec::new();
    for line in std::fs::read_to_string(path).expect("recorded").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert!(log.time(&record).is_some(), "{line}");
        let event_type = log.event_type(&record).expect("a kind");
        if AgentRegistry::builtin().reads_file_event("codex", event_type) {
            let stands = codex.event(Source::File, event_type, &record);
            let ended = codex.later(1_000);
            told.extend(stands.into_iter().chain(ended).filter(|stand| *stand != NOTHING));
        }
    }
    let mut turns = told.chunks(2).map(|turn| {
        assert_eq!(turn[0], Assertion::Running);
        turn[1]
    });
    let counted = |turns: &mut dyn Iterator<Item = Assertion>| {
        let all: Vec<Assertion> = turns.collect();
        [Assertion::Completed, Assertion::Failed, Assertion::Idle]
            .map(|end| all.iter().filter(|stand| **stand == end).count())
    };
    assert_eq!(counted(&mut turns), [6, 4, 3], "{told:?}");
    assert_eq!(codex.memory.session.as_deref(), Some("01a1ddf7-75c2-7cb2-9199-69961f5f6ed6"));
    assert!(!AgentRegistry::builtin().reads_file_event("codex", "token_count"));
}
