//! The Gemini protocol: generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::{
    AnswerPart, PURPOSE, ParsedRequest, QUESTION_TEXT, StreamFrame, choices, joined_text, mcp_arguments, shell_command,
    texts, tool_names,
};
use crate::model::answer_stream::unnamed_event;
use crate::model::script::ScriptedAction;

/// The tool that a subagent must call to finish. A text answer alone does not finish the subagent.
const FINISH_TOOL: &str = "complete_task";

pub(super) fn parse_request(path: &str, body: &Value) -> ParsedRequest {
    let contents = body["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_prompt = |content: &&Value| content["role"] == "user" && !texts(&content["parts"]).concat().is_empty();
    let answers = |content: &Value| {
        content["parts"].as_array().is_some_and(|parts| parts.iter().any(|part| part.get("functionResponse").is_some()))
    };
    let declared = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools =
        declared.iter().flat_map(|tool| tool_names(&tool["functionDeclarations"], |function| &function["name"]));
    let config = &body["generationConfig"];
    let is_shaped = config["responseMimeType"] == "application/json" || config.get("responseJsonSchema").is_some();
    // A request with a schema is a side request: it asks for the next speaker or for the choice of a model.
    let side = json!({"reasoning": "mock", "next_speaker": "user", "model_choice": "flash"}).to_string();
    ParsedRequest {
        model: path.rsplit('/').next().and_then(|name| name.split(':').next()).unwrap_or_default().to_owned(),
        prompt_parts: contents.iter().rev().find(is_prompt).map(|content| texts(&content["parts"])).unwrap_or_default(),
        after_tool: contents.last().is_some_and(answers),
        side_answer: is_shaped.then_some(side),
        tools: tools.collect(),
        started_subagent: None,
        stream: path.ends_with(":streamGenerateContent"),
    }
}

fn tool_call(request: &ParsedRequest, action: &ScriptedAction) -> (String, Value) {
    match action {
        ScriptedAction::Mcp(tool, arguments) => (request.mcp_tool(tool), mcp_arguments(arguments)),
        ScriptedAction::Ask | ScriptedAction::Many | ScriptedAction::Several | ScriptedAction::Plan => {
            let asked = json!({"question": QUESTION_TEXT, "header": "Colour", "type": "choice", "options": choices()});
            (request.tool(&["ask_user"]), json!({"questions": [asked]}))
        }
        ScriptedAction::Task(prompt) => {
            (request.tool(&["invoke_agent"]), json!({"agent_name": "generalist", "prompt": prompt}))
        }
        action => {
            (request.tool(&["run_shell_command"]), json!({"command": shell_command(action), "description": PURPOSE}))
        }
    }
}

pub(super) fn frames(request: &ParsedRequest, parts: &[AnswerPart]) -> Vec<StreamFrame> {
    let mut frames = Vec::new();
    for part in parts {
        match part {
            AnswerPart::Text(text) => frames.push(unnamed_event(&chunk(&json!({"text": text}), None))),
            AnswerPart::Wait(time) => frames.push(StreamFrame::Wait(*time)),
            AnswerPart::Cut => return [frames, vec![StreamFrame::Cut]].concat(),
            AnswerPart::Tool(action) => {
                let (name, args) = tool_call(request, action);
                frames.push(unnamed_event(&chunk(&json!({"functionCall": {"name": name, "args": args}}), None)));
            }
        }
    }
    if request.tools.iter().any(|tool| tool == FINISH_TOOL) {
        let done = json!({"functionCall": {"name": FINISH_TOOL, "args": {"result": "done"}}});
        frames.push(unnamed_event(&chunk(&done, None)));
    }
    frames.push(unnamed_event(&chunk(&json!({"text": ""}), Some("STOP"))));
    frames
}

fn chunk(part: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock"})
}

pub(super) fn complete_answer(_request: &ParsedRequest, parts: &[AnswerPart]) -> Value {
    chunk(&json!({"text": joined_text(parts)}), Some("STOP"))
}

/// Google's name for an HTTP status.
pub(super) fn status(code: u16) -> &'static str {
    match code {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
