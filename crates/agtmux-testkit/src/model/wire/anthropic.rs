//! The Anthropic Messages protocol.

use serde_json::{Value, json};

use super::{
    AnswerPart, PURPOSE, ParsedRequest, QUESTION_TEXT, StreamFrame, choices, joined_text, mcp_arguments, next_id,
    shell_command, texts, tool_names,
};
use crate::model::answer_stream::named_event;
use crate::model::script::ScriptedAction;

const SHAPES_QUESTION: &str = "Which shapes may the buttons have?";

pub(super) fn parse_request(body: &Value) -> ParsedRequest {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap_or(&Value::Null);
    let prompt_parts = texts_after_tool_result(&last["content"]);
    let tools = tool_names(&body["tools"], |tool| &tool["name"]);
    // A request without tools is a side request: it asks for a title or a summary, or it is a probe.
    let side = tools.is_empty().then(|| json!({"title": "Mock session title", "isNewTopic": false}).to_string());
    ParsedRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        after_tool: is_tool_result(last) && ScriptedAction::find(&prompt_parts.join("\n")).is_none(),
        prompt_parts,
        side_answer: side,
        tools,
        started_subagent: None,
        stream: body["stream"] == true,
    }
}

fn is_tool_result(message: &Value) -> bool {
    let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().any(|part| part["type"] == "tool_result")
}

/// The texts after the last tool result in a message. After the user denied a tool call, one message contains both the
/// denial and the next prompt.
fn texts_after_tool_result(content: &Value) -> Vec<String> {
    let Some(parts) = content.as_array() else { return texts(content) };
    let after_result = parts.rsplit(|part| part["type"] == "tool_result").next().unwrap_or_default();
    texts(&Value::from(after_result.to_vec()))
}

fn tool_call(request: &ParsedRequest, action: &ScriptedAction) -> (String, Value) {
    match action {
        ScriptedAction::Mcp(tool, arguments) => (request.mcp_tool(tool), mcp_arguments(arguments)),
        ScriptedAction::Ask | ScriptedAction::Many | ScriptedAction::Several => {
            (request.tool(&["AskUserQuestion"]), json!({"questions": questions(action)}))
        }
        ScriptedAction::Plan => (request.tool(&["ExitPlanMode"]), json!({})),
        ScriptedAction::Task(prompt) => {
            let input = json!({"description": "mock sub task", "prompt": prompt, "subagent_type": "general-purpose"});
            (request.tool(&["Agent", "Task"]), input)
        }
        action => {
            let mut input = json!({"command": shell_command(action), "description": PURPOSE});
            if matches!(action, ScriptedAction::Background(_)) {
                input["run_in_background"] = json!(true);
            }
            (request.tool(&["Bash"]), input)
        }
    }
}

fn questions(action: &ScriptedAction) -> Value {
    let one = json!({"question": QUESTION_TEXT, "header": "Colour", "options": choices(), "multiSelect": false});
    let shapes = ["Round", "Square", "Oval"].map(|label| json!({"label": label, "description": "A shape"}));
    let many = json!({"question": SHAPES_QUESTION, "header": "Shape", "options": shapes, "multiSelect": true});
    match action {
        ScriptedAction::Several => json!([many, one]),
        ScriptedAction::Many => json!([many]),
        _ => json!([one]),
    }
}

pub(super) fn frames(request: &ParsedRequest, parts: &[AnswerPart]) -> Vec<StreamFrame> {
    let message = json!({
        "id": next_id("msg"), "type": "message", "role": "assistant", "model": request.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1},
    });
    let mut frames = vec![named_event("message_start", &json!({"type": "message_start", "message": message}))];
    let (mut index, mut in_text, mut stop) = (0, false, "end_turn");
    for part in parts {
        match part {
            AnswerPart::Text(text) => {
                if !in_text {
                    frames.push(block_start(index, &json!({"type": "text", "text": ""})));
                    in_text = true;
                }
                frames.push(block_delta(index, &json!({"type": "text_delta", "text": text})));
            }
            AnswerPart::Wait(time) => frames.push(StreamFrame::Wait(*time)),
            AnswerPart::Cut => return [frames, vec![StreamFrame::Cut]].concat(),
            AnswerPart::Tool(action) => {
                if in_text {
                    frames.push(block_stop(index));
                    (index, in_text) = (index + 1, false);
                }
                let (name, input) = tool_call(request, action);
                let block = json!({"type": "tool_use", "id": next_id("toolu"), "name": name, "input": {}});
                frames.push(block_start(index, &block));
                let input = json!({"type": "input_json_delta", "partial_json": input.to_string()});
                frames.extend([block_delta(index, &input), block_stop(index)]);
                (index, stop) = (index + 1, "tool_use");
            }
        }
    }
    if in_text {
        frames.push(block_stop(index));
    }
    let over = json!({"stop_reason": stop, "stop_sequence": null});
    let usage = json!({"output_tokens": 20});
    frames.push(named_event("message_delta", &json!({"type": "message_delta", "delta": over, "usage": usage})));
    frames.push(named_event("message_stop", &json!({"type": "message_stop"})));
    frames
}

fn block_start(index: usize, block: &Value) -> StreamFrame {
    named_event("content_block_start", &json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn block_delta(index: usize, delta: &Value) -> StreamFrame {
    named_event("content_block_delta", &json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn block_stop(index: usize) -> StreamFrame {
    named_event("content_block_stop", &json!({"type": "content_block_stop", "index": index}))
}

pub(super) fn complete_answer(request: &ParsedRequest, parts: &[AnswerPart]) -> Value {
    json!({
        "id": next_id("msg"), "type": "message", "role": "assistant", "model": request.model,
        "content": [{"type": "text", "text": joined_text(parts)}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    })
}

/// Anthropic's name for an HTTP status.
pub(super) fn error_type(code: u16) -> &'static str {
    match code {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}
