use serde_json::json;

use super::*;
use crate::AgentRegistry;

/// The turns that these records of an agent contain: prompt, answer and ending.
fn turns(agent: &str, records: &[Value]) -> Vec<(Option<String>, Option<String>, TurnEnding)> {
    let registry = AgentRegistry::builtin();
    let store = registry.agent(agent).and_then(|agent| agent.conversation()).expect("the agent stores conversations");
    let mut reader = ConversationReader::new(store);
    reader.push(b"not json");
    for record in records {
        reader.push(record.to_string().as_bytes());
    }
    reader.turns().into_iter().map(|turn| (turn.prompt, turn.answer, turn.ending)).collect()
}

fn turn(prompt: &str, answer: &str, ending: TurnEnding) -> (Option<String>, Option<String>, TurnEnding) {
    (Some(prompt.to_owned()), Some(answer.to_owned()).filter(|answer| !answer.is_empty()), ending)
}

#[test]
fn claude_messages_of_several_records_are_joined_and_generated_ones_left_out() {
    let user =
        |content: Value| json!({"type": "user", "isSidechain": false, "message": {"role": "user", "content": content}});
    let agent = |id: &str, part: Value| json!({"type": "assistant", "isSidechain": false, "message": {"id": id, "content": [part]}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let tool = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}});
    let mut error = agent("m9", text("API Error: 500"));
    error["isApiErrorMessage"] = json!(true);
    let mut of_subagent = agent("m8", text("from a subagent"));
    of_subagent["isSidechain"] = json!(true);
    let records = [
        user(json!("<command-name>/clear</command-name>")),
        user(json!("first\n<command-name> is a tag")),
        json!({"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": "Environment"}]}}),
        agent("m1", text("one")),
        agent("m1", text("two")),
        of_subagent,
        user(json!("second")),
        agent("m2", text("I will use a tool.")),
        agent("m2", tool),
        user(json!([{"type": "tool_result", "content": "denied"}])),
        user(json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}])),
        user(json!("third")),
        error,
    ];
    let expected = [
        turn("first\n<command-name> is a tag", "one\n\ntwo", TurnEnding::Answered),
        turn("second", "I will use a tool.", TurnEnding::Interrupted),
        turn("third", "", TurnEnding::Open),
    ];
    assert_eq!(turns("claude", &records), expected);
    // Only the end of a long file was read.
    let rest = turns("claude", &records[3..6]);
    assert_eq!(rest, [(None, Some("one\n\ntwo".to_owned()), TurnEnding::Answered)]);
    assert_eq!(
        turns("claude", &records[6..10])[0].2,
        TurnEnding::Open,
        "the tool has ended, and no answer follows yet"
    );
}

#[test]
fn a_codex_turn_ends_with_its_answer_or_an_interruption() {
    let event = |payload: Value| json!({"type": "event_msg", "timestamp": "2026-11-15T06:49:36Z", "payload": payload});
    let item = |payload: Value| json!({"type": "response_item", "payload": payload});
    let user = |text: &str| {
        event(
            json!({"type": "item_completed", "item": {"type": "UserMessage", "id": text, "content": [{"type": "text", "text": text}]}}),
        )
    };
    let agent = |text: &str| {
        item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}))
    };
    let records = [
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]}),
        ),
        user("SAY hello"),
        agent("hello"),
        user("RUN x"),
        agent("I will use a tool."),
        item(json!({"type": "function_call", "name": "exec_command"})),
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<turn_aborted>"}]})),
        event(json!({"type": "turn_aborted"})),
        event(json!({"type": "user_message", "message": "old format"})),
        agent("reply"),
    ];
    let expected = [
        turn("SAY hello", "hello", TurnEnding::Answered),
        turn("RUN x", "I will use a tool.", TurnEnding::Interrupted),
        turn("old format", "reply", TurnEnding::Answered),
    ];
    assert_eq!(turns("codex", &records), expected);
}

#[test]
fn gemini_replaces_messages_and_whole_conversations() {
    let user = |text: &str| json!({"id": text, "type": "user", "content": [{"text": text}]});
    let calls = json!({"id": "a", "type": "gemini", "content": "I will use a tool.", "toolCalls": [{"id": "c"}]});
    let set = |prompt: &str| {
        json!({"$set": {"messages": [user("<session_context>\nx"), user(prompt), {"id": "n", "type": "gemini",
            "content": [{"text": "half "}, {"text": "answer"}]}]}})
    };
    let records = [
        user("<session_context>\nThis is the Gemini CLI."),
        user("RUN x"),
        json!({"id": "a", "type": "gemini", "content": "", "thoughts": []}),
        calls,
        json!({"id": "r", "type": "user", "content": [{"functionResponse": {"id": "c"}}]}),
        json!({"$set": {"lastUpdated": "x"}}),
    ];
    assert_eq!(turns("gemini", &records), [turn("RUN x", "I will use a tool.", TurnEnding::Open)]);
    let cancelled = json!({"type": "info", "content": "Request cancelled."});
    let records = [&records[..], &[cancelled]].concat();
    assert_eq!(turns("gemini", &records), [turn("RUN x", "I will use a tool.", TurnEnding::Interrupted)]);
    let with = |more: Value| turns("gemini", &[&records[..], &[more]].concat());
    assert_eq!(with(set("RUN x")), [turn("RUN x", "half answer", TurnEnding::Answered)]);
    let without_it = with(set("before"));
    assert_eq!(without_it[0], turn("before", "half answer", TurnEnding::Answered));
    assert_eq!(without_it[1..], [turn("RUN x", "I will use a tool.", TurnEnding::Interrupted)], "the turn stays");
}

#[test]
fn messages_of_the_other_agents_are_read() {
    let copilot = [
        json!({"type": "user.message", "data": {"content": "RUN x", "transformedContent": "<now>RUN x"}}),
        json!({"type": "assistant.message", "data": {"messageId": "1", "content": "I will", "toolRequests": [{}]}}),
        json!({"type": "assistant.message", "agentId": "sub", "data": {"messageId": "2", "content": "of a subagent"}}),
        json!({"type": "assistant.message", "data": {"messageId": "3", "content": "done", "toolRequests": []}}),
    ];
    assert_eq!(turns("copilot", &copilot), [turn("RUN x", "done", TurnEnding::Answered)]);
    let abort = json!({"type": "abort", "data": {}});
    assert_eq!(turns("copilot", &[&copilot[..], &[abort]].concat())[0].2, TurnEnding::Interrupted);

    let opencode = [
        json!({"role": "user", "at": 1000, "parts": [{"type": "text", "text": "hi"}, {"type": "text", "text": "x", "synthetic": true}]}),
        json!({"role": "assistant", "error": null, "parts": [{"type": "step-start"}, {"type": "text", "text": "I will"}, {"type": "tool"}]}),
    ];
    assert_eq!(turns("opencode", &opencode), [turn("hi", "I will", TurnEnding::Open)]);
    let aborted =
        json!({"role": "assistant", "error": "MessageAbortedError", "parts": [{"type": "text", "text": "wo"}]});
    assert_eq!(turns("opencode", &[&opencode[..], &[aborted]].concat()), [turn("hi", "wo", TurnEnding::Interrupted)]);

    let pi = |message: Value| json!({"type": "message", "timestamp": "2026-11-19T20:29:42.741Z", "message": message});
    let pi = [
        pi(json!({"role": "system", "content": "You are"})),
        pi(json!({"role": "user", "content": [{"type": "text", "text": "hi"}]})),
        pi(json!({"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall"}]})),
        pi(json!({"role": "toolResult", "content": [{"type": "text", "text": "(no output)"}]})),
        pi(json!({"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": "there"}]})),
    ];
    assert_eq!(turns("pi", &pi), [turn("hi", "there", TurnEnding::Answered)]);

    let qwen = |kind: &str, parts: Value| json!({"type": kind, "message": {"parts": parts}});
    let qwen = [
        qwen("user", json!([{"text": "hi"}])),
        qwen("assistant", json!([{"text": "hm", "thought": true}, {"text": "the"}, {"text": "re"}])),
        json!({"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}),
    ];
    assert_eq!(turns("qwen", &qwen), [turn("hi", "there", TurnEnding::Answered)]);
}

#[test]
fn an_id_that_is_no_plain_word_names_no_file() {
    let registry = AgentRegistry::builtin();
    let path = |agent: &str, session: &str| {
        registry.agent(agent).and_then(|agent| agent.conversation()).expect("a store").path_of(session)
    };
    assert_eq!(path("claude", "ab-1").as_deref(), Some("projects/*/ab-1.jsonl"));
    assert_eq!(path("gemini", "54db9b6a-46ac").as_deref(), Some("tmp/*/chats/session-*-54db9b6a.jsonl"));
    for bad in ["", "..", "../x", "a/b", "*", "a b", "é", &"a".repeat(129)] {
        assert_eq!(path("claude", bad), None, "{bad:?}");
    }
}
