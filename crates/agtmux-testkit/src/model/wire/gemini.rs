//! Gemini's generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::{ASKED, Frame, PURPOSE, Piece, Question, choices, joined, names, shell_command, texts};
use crate::model::play::data;
use crate::model::script::Act;

/// How a subagent says that it is done; text alone is not enough.
const FINISH: &str = "complete_task";

pub(super) fn question(path: &str, body: &Value) -> Question {
    let contents = body["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_prompt = |content: &&Value| content["role"] == "user" && !texts(&content["parts"]).concat().is_empty();
    let answers = |content: &Value| {
        content["parts"].as_array().is_some_and(|parts| parts.iter().any(|part| part.get("functionResponse").is_some()))
    };
    let declared = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools = declared.iter().flat_map(|tool| names(&tool["functionDeclarations"], |function| &function["name"]));
    let config = &body["generationConfig"];
    let is_shaped = config["responseMimeType"] == "application/json" || config.get("responseJsonSchema").is_some();
    // Who speaks next, which model to take: asked with the shape of the answer.
    let side = json!({"reasoning": "mock", "next_speaker": "user", "model_choice": "flash"}).to_string();
    Question {
        model: path.rsplit('/').next().and_then(|name| name.split(':').next()).unwrap_or_default().to_owned(),
        said: contents.iter().rev().find(is_prompt).map(|content| texts(&content["parts"])).unwrap_or_default(),
        after_tool: contents.last().is_some_and(answers),
        side: is_shaped.then_some(side),
        tools: tools.collect(),
        begun_agent: None,
        stream: path.ends_with(":streamGenerateContent"),
    }
}

fn call(question: &Question, act: &Act) -> (String, Value) {
    match act {
        Act::Ask | Act::Many | Act::Several | Act::Plan => {
            let asked = json!({"question": ASKED, "header": "Colour", "type": "choice", "options": choices()});
            (question.tool(&["ask_user"]), json!({"questions": [asked]}))
        }
        Act::Task(prompt) => (question.tool(&["invoke_agent"]), json!({"agent_name": "generalist", "prompt": prompt})),
        act => (question.tool(&["run_shell_command"]), json!({"command": shell_command(act), "description": PURPOSE})),
    }
}

pub(super) fn frames(question: &Question, pieces: &[Piece]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => frames.push(data(&chunk(&json!({"text": text}), None))),
            Piece::Wait(time) => frames.push(Frame::Wait(*time)),
            Piece::Cut => return [frames, vec![Frame::Cut]].concat(),
            Piece::Tool(act) => {
                let (name, args) = call(question, act);
                frames.push(data(&chunk(&json!({"functionCall": {"name": name, "args": args}}), None)));
            }
        }
    }
    if question.tools.iter().any(|tool| tool == FINISH) {
        let done = json!({"functionCall": {"name": FINISH, "args": {"result": "done"}}});
        frames.push(data(&chunk(&done, None)));
    }
    frames.push(data(&chunk(&json!({"text": ""}), Some("STOP"))));
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

pub(super) fn whole(_question: &Question, pieces: &[Piece]) -> Value {
    chunk(&json!({"text": joined(pieces)}), Some("STOP"))
}

/// Google's word for an HTTP status.
pub(super) fn status(code: u16) -> &'static str {
    match code {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}
