//! OpenAI Responses.

use serde_json::{Value, json};

use super::{ASKED, Frame, PURPOSE, Piece, Question, choices, joined, names, next, shell_command, texts};
use crate::model::play::event;
use crate::model::script::Act;

/// The tools for subagents are offered under one name.
const SUBAGENTS: &str = "multi_agent_v1";

pub(super) fn question(body: &Value) -> Question {
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_prompt = |item: &&Value| item["role"] == "user";
    let said = input.iter().rev().find(is_prompt).map(|item| texts(&item["content"])).unwrap_or_default();
    let told_later = input.iter().rev().take_while(|item| item["role"] != "user");
    let is_output = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    // A title is asked for with the shape that it must have.
    let has_shape = body["text"]["format"]["type"] == "json_schema";
    Question {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        said,
        after_tool: told_later.into_iter().any(is_output),
        side: has_shape.then(|| json!({"title": "Run mock task"}).to_string()),
        tools: names(&body["tools"], |tool| &tool["name"]),
        begun_agent: input.last().and_then(begun_agent),
        stream: body["stream"] == true,
    }
}

/// The subagent that this output of a tool tells of, if it was to begin one.
fn begun_agent(item: &Value) -> Option<String> {
    let told: Value = serde_json::from_str(item["output"].as_str()?).ok()?;
    told["agent_id"].as_str().map(str::to_owned)
}

fn call(question: &Question, act: &Act) -> (String, Value) {
    match act {
        Act::Ask | Act::Many | Act::Several | Act::Plan => {
            let asked = json!({"id": "q1", "header": "Colour", "question": ASKED, "options": choices()});
            (question.tool(&["request_user_input"]), json!({"questions": [asked]}))
        }
        Act::Task(prompt) => ("spawn_agent".into(), json!({"message": prompt})),
        Act::Await(agent) => ("wait_agent".into(), json!({"targets": [agent], "timeout_ms": 60_000})),
        act => {
            let name = question.tool(&["exec_command", "shell_command"]);
            let field = if name == "exec_command" { "cmd" } else { "command" };
            let mut input = json!({});
            input[field] = json!(shell_command(act));
            if !matches!(act, Act::Do(_)) {
                // Only what leaves the sandbox is asked for.
                input["sandbox_permissions"] = json!("require_escalated");
                input["justification"] = json!(PURPOSE);
            }
            (name, input)
        }
    }
}

pub(super) fn frames(question: &Question, pieces: &[Piece]) -> Vec<Frame> {
    let response = json!({"id": next("resp"), "object": "response", "status": "in_progress", "model": question.model});
    let mut frames = vec![event("response.created", &json!({"type": "response.created", "response": response}))];
    let mut message: Option<(String, String)> = None;
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let (id, said) = message.get_or_insert_with(|| {
                    let id = next("msg");
                    frames.push(item("added", &written(&id, "")));
                    (id, String::new())
                });
                said.push_str(text);
                let delta = json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0,
                    "content_index": 0, "delta": text});
                frames.push(event("response.output_text.delta", &delta));
            }
            Piece::Wait(time) => frames.push(Frame::Wait(*time)),
            Piece::Cut => return [frames, vec![Frame::Cut]].concat(),
            Piece::Tool(act) => {
                frames.extend(message.take().map(|(id, said)| item("done", &written(&id, &said))));
                let (name, input) = call(question, act);
                let mut call = json!({"type": "function_call", "id": next("fc"), "call_id": next("call"), "name": name,
                    "arguments": input.to_string(), "status": "completed"});
                if matches!(act, Act::Task(_) | Act::Await(_)) {
                    call["namespace"] = json!(SUBAGENTS);
                }
                frames.extend([item("added", &call), item("done", &call)]);
            }
        }
    }
    frames.extend(message.take().map(|(id, said)| item("done", &written(&id, &said))));
    let response = json!({"id": next("resp"), "object": "response", "status": "completed", "model": question.model,
        "output": [], "usage": usage()});
    frames.push(event("response.completed", &json!({"type": "response.completed", "response": response})));
    frames
}

fn usage() -> Value {
    json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110})
}

fn item(what: &str, item: &Value) -> Frame {
    let name = format!("response.output_item.{what}");
    event(&name, &json!({"type": name, "output_index": 0, "item": item}))
}

fn written(id: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content})
}

pub(super) fn whole(question: &Question, pieces: &[Piece]) -> Value {
    json!({"id": next("resp"), "object": "response", "status": "completed", "model": question.model,
        "output": [written(&next("msg"), &joined(pieces))], "usage": usage()})
}
