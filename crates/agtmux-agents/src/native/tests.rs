//! Recorded events of real agents, and the observations that their manifests produce.

mod asked;
mod confirmed;
mod copilot;
mod end_of_turn;
mod opencode;
mod pi;
mod qwen;
mod status_session;

use std::sync::Arc;

use agtmux_core::evidence::{Assertion, DialogKind, Source};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{AdapterMemory, Evidence, HeldObservation, NativeEvent, Observation, RuleRef};
use crate::{AgentRegistry, KnownAgent};

const APPROVAL: Assertion = Assertion::DialogOpen(DialogKind::Approval);
const QUESTION: Assertion = Assertion::DialogOpen(DialogKind::Input);
const NO_DIALOG: Assertion = Assertion::NoDialog;

fn builtin(name: &str) -> &'static KnownAgent {
    AgentRegistry::builtin().agent(name).expect("the agent is built in")
}

/// Feeds events to the adapter of one agent.
struct AdapterTest {
    agent: &'static str,
    memory: AdapterMemory,
    now: Timestamp,
}

impl AdapterTest {
    fn new(agent: &'static str) -> Self {
        Self { agent, memory: AdapterMemory::default(), now: Timestamp::from_second(1_000_000).expect("in range") }
    }

    fn recorded(&self, name: &str) -> Value {
        let path = format!("{}/evidence/hooks/{}/{name}.json", env!("CARGO_MANIFEST_DIR"), self.agent);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut payload: Value = serde_json::from_str(&text).expect("recorded JSON");
        // The payloads were recorded in different sessions; the test puts them into one.
        for name in ["session_id", "thread-id"] {
            if payload.get(name).is_some() && !is_side_thread(&path) {
                payload[name] = json!("5fb0cf8a-72f8-44e6-bdb5-bc8b0383eb7f");
            }
        }
        payload
    }

    /// The assertions from a recorded hook payload.
    fn hook(&mut self, name: &str) -> Vec<Assertion> {
        let payload = self.recorded(name);
        self.hook_payload(&payload)
    }

    fn hook_payload(&mut self, payload: &Value) -> Vec<Assertion> {
        let event_type = payload["hook_event_name"].as_str().expect("a hook").to_owned();
        self.event(Source::Hook, &event_type, payload)
    }

    fn event(&mut self, source: Source, event_type: &str, payload: &Value) -> Vec<Assertion> {
        self.now += SignedDuration::from_millis(10);
        let event = NativeEvent { source, event_type, payload, at: self.now };
        let observations = reduce(self.agent, &mut self.memory, Evidence::Event(event), self.now);
        observations.into_iter().map(|observation| observation.assertion).collect()
    }

    /// The events of a recording, one per line.
    fn lines(&self, name: &str) -> Vec<Value> {
        let path = format!("{}/evidence/hooks/{}/{name}.jsonl", env!("CARGO_MANIFEST_DIR"), self.agent);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        text.lines().map(|line| serde_json::from_str(line).expect("recorded JSON")).collect()
    }

    fn replay_line(&mut self, line: &Value) -> Vec<Assertion> {
        let event_type = line["event"].as_str().expect("an event").to_owned();
        self.event(Source::Hook, &event_type, &line["payload"])
    }

    /// The assertions from each event of a recording.
    fn replay(&mut self, name: &str) -> Vec<Vec<Assertion>> {
        self.lines(name).iter().map(|line| self.replay_line(line)).collect()
    }

    fn advance(&mut self, millis: i64) -> Option<Assertion> {
        self.now += SignedDuration::from_millis(millis);
        let released = reduce(self.agent, &mut self.memory, Evidence::TimePassed, self.now);
        assert!(released.len() <= 1, "{released:?}");
        released.first().map(|observation| observation.assertion)
    }
}

fn reduce(agent: &str, memory: &mut AdapterMemory, evidence: Evidence<'_>, now: Timestamp) -> Vec<Observation> {
    let (observations, due) =
        super::reduce(AgentRegistry::builtin().agent(agent).map(Arc::as_ref), memory, evidence, now);
    assert_eq!(due, memory.next_due());
    observations
}

fn is_side_thread(path: &str) -> bool {
    path.contains("title-thread")
}

#[test]
fn claude_reports_a_turn() {
    let mut claude = AdapterTest::new("claude");
    assert_eq!(claude.hook("SessionStart.startup"), [Assertion::Idle, NO_DIALOG]);
    assert_eq!(claude.hook("UserPromptSubmit"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running]);
    assert_eq!(claude.hook("PermissionRequest"), [APPROVAL]);
    let mut done = claude.recorded("PermissionRequest");
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(claude.hook_payload(&done), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NO_DIALOG]);
    assert_eq!(claude.hook("StopFailure.server_error"), [Assertion::Failed, NO_DIALOG]);
}

#[test]
fn the_end_of_one_tool_does_not_close_the_question_of_another() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("PermissionRequest");
    assert_eq!(claude.hook("PostToolUse"), [Assertion::Running], "the end of another tool");
    assert_eq!(claude.hook("PermissionRequest.AskUserQuestion"), [QUESTION]);
    let answered = claude.hook("PostToolUse.AskUserQuestion");
    assert_eq!(answered, [Assertion::Running, APPROVAL], "the first question is still open");
}

#[test]
fn the_end_of_a_turn_leaves_the_question_of_a_subagent_open() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    let mut request = claude.recorded("PermissionRequest");
    request["agent_id"] = json!("a5a34f56645410a62");
    assert_eq!(claude.hook_payload(&request), [APPROVAL]);
    assert_eq!(claude.hook("Stop.bg"), [Assertion::Running, APPROVAL]);
    request["hook_event_name"] = json!("PostToolUse");
    assert_eq!(claude.hook_payload(&request), [Assertion::Running, NO_DIALOG]);
}

#[test]
fn background_work_keeps_a_turn_running() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop.bg"), [Assertion::Running, NO_DIALOG]);
    let mut notified = claude.recorded("UserPromptSubmit");
    notified["prompt"] = json!("<task-notification>\n<task-id>1</task-id>");
    assert_eq!(claude.hook_payload(&notified), [Assertion::Running]);
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NO_DIALOG]);
}

#[test]
fn a_stop_is_held_while_a_prompt_is_queued() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [NO_DIALOG], "the queued prompt follows");
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running]);
    assert_eq!(claude.advance(10_000), None, "the next turn has begun");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NO_DIALOG]);
}

#[test]
fn a_queued_prompt_that_never_starts_does_not_hide_the_end() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    claude.hook("UserPromptSubmit");
    claude.hook("Stop");
    assert_eq!(claude.advance(100), None);
    assert_eq!(claude.advance(1_000), Some(Assertion::Completed));
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NO_DIALOG], "no prompt is queued any more");
}

#[test]
fn compaction_and_unknown_events_make_no_assertion() {
    let mut claude = AdapterTest::new("claude");
    for name in ["SessionStart.compact", "PreCompact", "PostCompact", "MessageDisplay", "SubagentStop", "ConfigChange"]
    {
        assert_eq!(claude.hook(name), [], "{name}");
    }
    assert_eq!(claude.hook("SessionEnd.clear"), []);
    assert_eq!(claude.hook("Notification.permission_prompt"), [], "the notification comes six seconds late");
}

#[test]
fn claude_reports_its_state_in_its_status_file() {
    let mut claude = AdapterTest::new("claude");
    let mut status = |status: &str, waiting_for: &str| {
        let payload = json!({"status": status, "waitingFor": waiting_for, "statusUpdatedAt": 5_000});
        claude.event(Source::File, "status", &payload)
    };
    assert_eq!(status("busy", ""), [Assertion::Running, NO_DIALOG]);
    assert_eq!(status("shell", ""), [Assertion::Running, NO_DIALOG]);
    assert_eq!(status("idle", ""), [NO_DIALOG], "the next turn may begin at once");
    assert_eq!(status("waiting", "permission prompt"), [APPROVAL]);
    assert_eq!(status("waiting", "input needed"), [QUESTION]);
    assert_eq!(status("waiting", "dialog open"), [QUESTION]);
    assert_eq!(status("something new", ""), []);
    assert_eq!(status("busy", ""), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.advance(2_500), None);
    claude.event(Source::File, "status", &json!({"status": "idle"}));
    claude.hook("PreToolUse");
    assert_eq!(claude.advance(2_500), Some(Assertion::Idle), "a hook does not cancel the report of the file");
}

#[test]
fn a_status_file_contains_the_time_of_its_state() {
    let mut memory = AdapterMemory::default();
    let (at, now) = (Timestamp::from_second(90).expect("in range"), Timestamp::from_second(100).expect("in range"));
    let payload = json!({"status": "busy", "statusUpdatedAt": 80_000});
    let event = NativeEvent { source: Source::File, event_type: "status", payload: &payload, at };
    let observations = reduce("claude", &mut memory, Evidence::Event(event), now);
    assert!(observations.iter().all(|observation| observation.as_of == Timestamp::from_second(80).expect("in range")));
}

#[test]
fn codex_reports_a_turn() {
    let mut codex = AdapterTest::new("codex");
    assert_eq!(codex.hook("hook.SessionStart"), []);
    assert_eq!(codex.hook("hook.UserPromptSubmit"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(codex.hook("hook.PreModelRequest"), [Assertion::Running]);
    assert_eq!(codex.hook("hook.PreToolUse"), [Assertion::Running]);
    assert_eq!(codex.hook("hook.PermissionRequest"), [APPROVAL]);
    assert_eq!(codex.hook("hook.PostToolUse"), [Assertion::Running, NO_DIALOG], "the same command, with fewer fields");
    assert_eq!(codex.hook("hook.PostModelRequest.failed"), [], "codex may retry");
    assert_eq!(codex.hook("hook.Stop"), [Assertion::Completed, NO_DIALOG]);
    assert_eq!(codex.hook("hook.Interrupt"), [Assertion::Idle, NO_DIALOG]);
    assert_eq!(codex.hook("hook.SessionEnd"), []);
}

#[test]
fn codex_reports_a_question() {
    let mut codex = AdapterTest::new("codex");
    let mut asked = codex.recorded("hook.PreToolUse");
    asked["tool_name"] = json!("request_user_input");
    assert_eq!(codex.hook_payload(&asked), [Assertion::Running, QUESTION]);
    asked["hook_event_name"] = json!("PostToolUse");
    assert_eq!(codex.hook_payload(&asked), [Assertion::Running, NO_DIALOG]);
}

#[test]
fn the_title_thread_of_codex_does_not_end_the_turn() {
    let mut codex = AdapterTest::new("codex");
    let (own, side) =
        (codex.recorded("notify.agent-turn-complete"), codex.recorded("notify.agent-turn-complete.title-thread"));
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &own), [], "the main thread is not known yet");
    codex.hook("hook.UserPromptSubmit");
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &side), []);
    assert_eq!(codex.event(Source::Notify, "agent-turn-complete", &own), [Assertion::Completed]);
}

#[test]
fn gemini_reports_a_turn() {
    let mut gemini = AdapterTest::new("gemini");
    assert_eq!(gemini.hook("hook.SessionStart"), [Assertion::Idle, NO_DIALOG]);
    assert_eq!(gemini.hook("hook.BeforeAgent"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(gemini.hook("hook.BeforeTool"), [Assertion::Running]);
    assert_eq!(gemini.hook("hook.Notification.exec"), [APPROVAL]);
    assert_eq!(gemini.hook("hook.AfterTool"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(gemini.hook("hook.Notification.edit"), [APPROVAL]);
    assert_eq!(gemini.hook("hook.AfterTool"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(gemini.hook("hook.Notification.ask_user"), [QUESTION]);
}

#[test]
fn the_last_record_of_gemini_says_how_the_turn_ended() {
    let ends = [
        (json!({"type": "gemini", "text": "hello"}), Assertion::Completed),
        (json!({"type": "error", "text": "[API Error: 400]"}), Assertion::Failed),
        (json!({"type": "info", "text": "This request failed. Press F12 for diagnostics"}), Assertion::Failed),
        (json!({"type": "info", "text": "Request cancelled."}), Assertion::Idle),
        (Value::Null, Assertion::Idle),
    ];
    for (record, assertion) in ends {
        let mut gemini = AdapterTest::new("gemini");
        gemini.hook("hook.BeforeAgent");
        let mut end = gemini.recorded("hook.AfterAgent");
        end["agtmux"] = json!({ "last_record": record });
        assert_eq!(gemini.hook_payload(&end), [NO_DIALOG], "a queued message may follow");
        assert_eq!(gemini.advance(400), Some(assertion), "{record}");
    }
}

#[test]
fn a_queued_message_of_gemini_keeps_it_running() {
    let mut gemini = AdapterTest::new("gemini");
    gemini.hook("hook.BeforeAgent");
    gemini.hook("hook.AfterAgent");
    assert_eq!(gemini.advance(100), None);
    assert_eq!(gemini.hook("hook.BeforeAgent"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(gemini.advance(1_000), None);
}

#[test]
fn generic_events_work_for_every_agent() {
    assert_eq!(
        AdapterTest::new("claude").event(Source::Wrapper, "running", &Value::Null),
        [Assertion::Running, NO_DIALOG]
    );
    assert_eq!(
        AdapterTest::new("no-such-agent").event(Source::Wrapper, "idle", &Value::Null),
        [Assertion::Idle, NO_DIALOG]
    );
}

#[test]
fn events_of_a_nested_agent_are_ignored() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    for name in ["SessionStart.startup", "UserPromptSubmit", "PermissionRequest", "Stop"] {
        let mut inner = claude.recorded(name);
        inner["session_id"] = json!("another");
        assert_eq!(claude.hook_payload(&inner), [], "{name}");
    }
    for source in ["clear", "resume", "fork"] {
        let mut begun = claude.recorded("SessionStart.clear");
        (begun["source"], begun["session_id"]) = (json!(source), json!(source));
        assert_eq!(claude.hook_payload(&begun), [Assertion::Idle, NO_DIALOG], "{source}");
        let mut next = claude.recorded("UserPromptSubmit");
        next["session_id"] = json!(source);
        assert_eq!(claude.hook_payload(&next), [Assertion::Running, NO_DIALOG], "{source}");
    }
}

#[test]
fn an_open_question_keeps_its_time() {
    let (mut memory, second) = (AdapterMemory::default(), |n| Timestamp::from_second(n).expect("in range"));
    let mut report = |event_type: &str, tool: &str, at: i64| {
        let payload = json!({"session_id": "s", "tool_name": tool});
        let event = NativeEvent { source: Source::Hook, event_type, payload: &payload, at: second(at) };
        let observations = reduce("claude", &mut memory, Evidence::Event(event), second(at));
        observations.into_iter().find(|found| found.assertion == APPROVAL).map(|found| found.as_of)
    };
    assert_eq!(report("PermissionRequest", "A", 10), Some(second(10)));
    assert_eq!(report("PermissionRequest", "B", 20), Some(second(20)));
    assert_eq!(report("PostToolUse", "B", 60), Some(second(10)), "the first question is still open");
}

#[test]
fn log_records_are_read_after_the_clock_was_set_back() {
    let (mut memory, second) = (AdapterMemory::default(), |n| Timestamp::from_second(n).expect("in range"));
    let read = |memory: &mut AdapterMemory, at: i64, now: i64| {
        let entry = NativeEvent { source: Source::File, event_type: "running", payload: &Value::Null, at: second(at) };
        !super::reduce(None, memory, Evidence::LogEntry(entry), second(now)).0.is_empty()
    };
    assert!(read(&mut memory, 86_410, 86_411));
    memory.shift_clock(SignedDuration::from_hours(-24), second(12));
    assert!(read(&mut memory, 13, 13));
    assert!(!read(&mut memory, 9, 14), "older than a record that was read");
    // Now a record is read that was written before the clock was set back. Its future time does not hide the next
    // record.
    assert!(read(&mut memory, 86_420, 15));
    assert!(read(&mut memory, 16, 16));
}

#[test]
fn a_held_observation_waits_as_long_after_a_step_of_the_clock() {
    let at = |second| Timestamp::from_second(second).expect("in range");
    let observation = Observation::new(Source::Hook, Assertion::Completed, at(90_000), RuleRef::new("claude.Stop", 1));
    let held = HeldObservation { due: at(90_060), observation, confirmed_by: None };
    let mut memory = AdapterMemory { held: vec![held], ..AdapterMemory::default() };
    memory.shift_clock(SignedDuration::from_hours(-24), at(3_610));
    assert_eq!(memory.next_due(), Some(at(3_660)));
    assert_eq!(memory.held[0].observation.as_of, at(3_600));
    memory.skip_time(SignedDuration::from_secs(30));
    assert_eq!(memory.next_due(), Some(at(3_690)));
}

#[test]
fn observations_held_by_earlier_versions_are_released() {
    let rule = json!({"name": "claude.Stop", "version": 1});
    let at = Timestamp::from_second(90).expect("in range");
    for (held, assertion) in [("said", "stand"), ("observation", "assertion")] {
        let observation = json!({"source": "hook", assertion: "completed", "as_of": at, "tentative": false,
            "rule": rule, "excerpt": "Stop"});
        let stored = json!({"session": "s", "open_questions": [], "pending_prompts": 1,
            "held": [{"due": at, held: observation}]});
        let mut memory: AdapterMemory = serde_json::from_value(stored).expect("read");
        let released = reduce("claude", &mut memory, Evidence::TimePassed, at);
        let expected = Observation::new(Source::Hook, Assertion::Completed, at, RuleRef::new("claude.Stop", 1));
        assert_eq!(released, [Observation { excerpt: "Stop".into(), ..expected }]);
    }
}

#[test]
fn the_session_id_is_stored() {
    let mut claude = AdapterTest::new("claude");
    claude.hook("UserPromptSubmit");
    assert_eq!(claude.memory.session.as_deref(), Some("5fb0cf8a-72f8-44e6-bdb5-bc8b0383eb7f"));
}

#[test]
fn codex_reports_turns_in_its_log() {
    let mut codex = AdapterTest::new("codex");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/evidence/logs/codex.jsonl");
    let log = builtin("codex").log_file().expect("codex has a log");
    let mut reported = Vec::new();
    for line in std::fs::read_to_string(path).expect("recorded").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert!(log.time(&record).is_some(), "{line}");
        let event_type = log.event_type(&record).expect("a kind");
        if builtin("codex").reads_file_event(event_type) {
            let assertions = codex.event(Source::File, event_type, &record);
            let ended = codex.advance(1_000);
            reported.extend(assertions.into_iter().chain(ended).filter(|assertion| *assertion != NO_DIALOG));
        }
    }
    let mut turns = reported.chunks(2).map(|turn| {
        assert_eq!(turn[0], Assertion::Running);
        turn[1]
    });
    let counted = |turns: &mut dyn Iterator<Item = Assertion>| {
        let all: Vec<Assertion> = turns.collect();
        [Assertion::Completed, Assertion::Failed, Assertion::Idle]
            .map(|end| all.iter().filter(|assertion| **assertion == end).count())
    };
    assert_eq!(counted(&mut turns), [6, 4, 3], "{reported:?}");
    assert_eq!(codex.memory.session.as_deref(), Some("01a1ddf7-75c2-7cb2-9199-69961f5f6ed6"));
    assert!(!builtin("codex").reads_file_event("token_count"));
}
