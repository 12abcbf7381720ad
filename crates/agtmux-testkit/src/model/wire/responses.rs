//! The OpenAI Responses protocol.

use serde_json::{Value, json};

use super::{
    AnswerPart, PURPOSE, ParsedRequest, QUESTION_TEXT, StreamFrame, choices, joined_text, mcp_arguments, next_id,
    shell_command, texts, tool_names,
};
use crate::model::answer_stream::named_event;
use crate::model::script::ScriptedAction;

/// The namespace to which the tools for subagents belong.
const SUBAGENT_NAMESPACE: &str = "multi_agent_v1";
/// The namespace of the tools of the MCP server `agtmux`.
const MCP_NAMESPACE: &str = "mcp__agtmux";

pub(super) fn parse_request(body: &Value) -> ParsedRequest {
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_prompt = |item: &&Value| item["role"] == "user";
    let prompt_parts = input.iter().rev().find(is_prompt).map(|item| texts(&item["content"])).unwrap_or_default();
    let after_prompt = input.iter().rev().take_while(|item| item["role"] != "user");
    let is_output = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    // A request for a title contains a JSON schema.
    let has_shape = body["text"]["format"]["type"] == "json_schema";
    ParsedRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        prompt_parts,
        after_tool: after_prompt.into_iter().any(is_output),
        side_answer: has_shape.then(|| json!({"title": "Run mock task"}).to_string()),
        tools: tool_names(&body["tools"], |tool| &tool["name"]),
        started_subagent: input.last().and_then(started_subagent),
        stream: body["stream"] == true,
    }
}

/// The subagent id in a tool output, if the tool started a subagent.
fn started_subagent(item: &Value) -> Option<String> {
    let output: Value = serde_json::from_str(item["output"].as_str()?).ok()?;
    output["agent_id"].as_str().map(str::to_owned)
}

fn tool_call(request: &ParsedRequest, action: &ScriptedAction) -> (String, Value) {
    match action {
        ScriptedAction::Mcp(tool, arguments) => (request.mcp_tool(tool), mcp_arguments(arguments)),
        ScriptedAction::Ask | ScriptedAction::Many | ScriptedAction::Several | ScriptedAction::Plan => {
            let asked = json!({"id": "q1", "header": "Colour", "question": QUESTION_TEXT, "options": choices()});
            (request.tool(&["request_user_input"]), json!({"questions": [asked]}))
        }
        ScriptedAction::Task(prompt) => ("spawn_agent".into(), json!({"message": prompt})),
        ScriptedAction::Await(agent) => ("wait_agent".into(), json!({"targets": [agent], "timeout_ms": 60_000})),
        action => {
            let name = request.tool(&["exec_command", "shell_command"]);
            let field = if name == "exec_command" { "cmd" } else { "command" };
            let mut input = json!({});
            input[field] = json!(shell_command(action));
            if name == "exec_command" {
                // By default, Codex goes on after 10 s and leaves the command in the background.
                input["yield_time_ms"] = json!(30_000);
            }
            if !matches!(action, ScriptedAction::Do(_)) {
                // Request to leave the sandbox, because the agent asks for approval only then.
                input["sandbox_permissions"] = json!("require_escalated");
                input["justification"] = json!(PURPOSE);
            }
            (name, input)
        }
    }
}

pub(super) fn frames(request: &ParsedRequest, parts: &[AnswerPart]) -> Vec<StreamFrame> {
    let response =
        json!({"id": next_id("resp"), "object": "response", "status": "in_progress", "model": request.model});
    let mut frames = vec![named_event("response.created", &json!({"type": "response.created", "response": response}))];
    let mut message: Option<(String, String)> = None;
    for part in parts {
        match part {
            AnswerPart::Text(text) => {
                let (id, message_text) = message.get_or_insert_with(|| {
                    let id = next_id("msg");
                    frames.push(output_item("added", &message_item(&id, "")));
                    (id, String::new())
                });
                message_text.push_str(text);
                let delta = json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0,
                    "content_index": 0, "delta": text});
                frames.push(named_event("response.output_text.delta", &delta));
            }
            AnswerPart::Wait(time) => frames.push(StreamFrame::Wait(*time)),
            AnswerPart::Cut => return [frames, vec![StreamFrame::Cut]].concat(),
            AnswerPart::Tool(action) => {
                frames.extend(
                    message.take().map(|(id, message_text)| output_item("done", &message_item(&id, &message_text))),
                );
                let (name, input) = tool_call(request, action);
                let mut call = json!({"type": "function_call", "id": next_id("fc"), "call_id": next_id("call"), "name": name,
                    "arguments": input.to_string(), "status": "completed"});
                if matches!(action, ScriptedAction::Task(_) | ScriptedAction::Await(_)) {
                    call["namespace"] = json!(SUBAGENT_NAMESPACE);
                }
                if matches!(action, ScriptedAction::Mcp(..)) {
                    call["namespace"] = json!(MCP_NAMESPACE);
                }
                frames.extend([output_item("added", &call), output_item("done", &call)]);
            }
        }
    }
    frames.extend(message.take().map(|(id, message_text)| output_item("done", &message_item(&id, &message_text))));
    let response = json!({"id": next_id("resp"), "object": "response", "status": "completed", "model": request.model,
        "output": [], "usage": usage()});
    frames.push(named_event("response.completed", &json!({"type": "response.completed", "response": response})));
    frames
}

fn usage() -> Value {
    json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110})
}

fn output_item(what: &str, item: &Value) -> StreamFrame {
    let name = format!("response.output_item.{what}");
    named_event(&name, &json!({"type": name, "output_index": 0, "item": item}))
}

fn message_item(id: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content})
}

pub(super) fn complete_answer(request: &ParsedRequest, parts: &[AnswerPart]) -> Value {
    json!({"id": next_id("resp"), "object": "response", "status": "completed", "model": request.model,
        "output": [message_item(&next_id("msg"), &joined_text(parts))], "usage": usage()})
}
