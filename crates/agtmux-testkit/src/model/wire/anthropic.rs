//! Anthropic Messages.

use serde_json::{Value, json};

use super::{ASKED, Frame, PURPOSE, Piece, Question, choices, joined, names, next, shell_command, texts};
use crate::model::play::event;
use crate::model::script::Act;

const SHAPES: &str = "Which shapes may the buttons have?";

pub(super) fn question(body: &Value) -> Question {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap_or(&Value::Null);
    let said = since_tool(&last["content"]);
    let tools = names(&body["tools"], |tool| &tool["name"]);
    // Titles, summaries and probes come without tools.
    let side = tools.is_empty().then(|| json!({"title": "Mock session title", "isNewTopic": false}).to_string());
    Question {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        after_tool: is_tool_result(last) && Act::find(&said.join("\n")).is_none(),
        said,
        side,
        tools,
        begun_agent: None,
        stream: body["stream"] == true,
    }
}

fn is_tool_result(message: &Value) -> bool {
    let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().any(|part| part["type"] == "tool_result")
}

/// What was said after a tool answered: a prompt that follows a denied call comes in one message with the denial.
fn since_tool(content: &Value) -> Vec<String> {
    let Some(parts) = content.as_array() else { return texts(content) };
    let said = parts.rsplit(|part| part["type"] == "tool_result").next().unwrap_or_default();
    texts(&Value::from(said.to_vec()))
}

fn call(question: &Question, act: &Act) -> (String, Value) {
    match act {
        Act::Ask | Act::Many | Act::Several => {
            (question.tool(&["AskUserQuestion"]), json!({"questions": questions(act)}))
        }
        Act::Plan => (question.tool(&["ExitPlanMode"]), json!({})),
        Act::Task(prompt) => {
            let input = json!({"description": "mock sub task", "prompt": prompt, "subagent_type": "general-purpose"});
            (question.tool(&["Agent", "Task"]), input)
        }
        act => {
            let mut input = json!({"command": shell_command(act), "description": PURPOSE});
            if matches!(act, Act::Background(_)) {
                input["run_in_background"] = json!(true);
            }
            (question.tool(&["Bash"]), input)
        }
    }
}

fn questions(act: &Act) -> Value {
    let one = json!({"question": ASKED, "header": "Colour", "options": choices(), "multiSelect": false});
    let shapes = ["Round", "Square", "Oval"].map(|label| json!({"label": label, "description": "A shape"}));
    let many = json!({"question": SHAPES, "header": "Shape", "options": shapes, "multiSelect": true});
    match act {
        Act::Several => json!([many, one]),
        Act::Many => json!([many]),
        _ => json!([one]),
    }
}

pub(super) fn frames(question: &Question, pieces: &[Piece]) -> Vec<Frame> {
    let message = json!({
        "id": next("msg"), "type": "message", "role": "assistant", "model": question.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1},
    });
    let mut frames = vec![event("message_start", &json!({"type": "message_start", "message": message}))];
    let (mut index, mut in_text, mut stop) = (0, false, "end_turn");
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                if !in_text {
                    frames.push(begin(index, &json!({"type": "text", "text": ""})));
                    in_text = true;
                }
                frames.push(delta(index, &json!({"type": "text_delta", "text": text})));
            }
            Piece::Wait(time) => frames.push(Frame::Wait(*time)),
            Piece::Cut => return [frames, vec![Frame::Cut]].concat(),
            Piece::Tool(act) => {
                if in_text {
                    frames.push(end(index));
                    (index, in_text) = (index + 1, false);
                }
                let (name, input) = call(question, act);
                let block = json!({"type": "tool_use", "id": next("toolu"), "name": name, "input": {}});
                frames.push(begin(index, &block));
                let input = json!({"type": "input_json_delta", "partial_json": input.to_string()});
                frames.extend([delta(index, &input), end(index)]);
                (index, stop) = (index + 1, "tool_use");
            }
        }
    }
    if in_text {
        frames.push(end(index));
    }
    let over = json!({"stop_reason": stop, "stop_sequence": null});
    let usage = json!({"output_tokens": 20});
    frames.push(event("message_delta", &json!({"type": "message_delta", "delta": over, "usage": usage})));
    frames.push(event("message_stop", &json!({"type": "message_stop"})));
    frames
}

fn begin(index: usize, block: &Value) -> Frame {
    event("content_block_start", &json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: usize, delta: &Value) -> Frame {
    event("content_block_delta", &json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn end(index: usize) -> Frame {
    event("content_block_stop", &json!({"type": "content_block_stop", "index": index}))
}

pub(super) fn whole(question: &Question, pieces: &[Piece]) -> Value {
    json!({
        "id": next("msg"), "type": "message", "role": "assistant", "model": question.model,
        "content": [{"type": "text", "text": joined(pieces)}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    })
}
