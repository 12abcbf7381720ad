//! OpenAI chat completions, as many agents speak it.

use serde_json::{Value, json};

use super::{ASKED, Frame, PURPOSE, Piece, Question, choices, joined, names, next, shell_command, texts};
use crate::model::play::data;
use crate::model::script::Act;

/// How the name of a model ends that agents ask which offer no tools: what it wants to run, it writes down. From others a
/// request without tools is none of the conversation.
const NO_TOOLS: &str = "no-tools";

pub(super) fn question(body: &Value) -> Question {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user");
    let tools = names(&body["tools"], |tool| &tool["function"]["name"]);
    let has_shape = body["response_format"]["type"] == "json_schema";
    let is_aside = tools.is_empty() && !body["model"].as_str().is_some_and(|model| model.ends_with(NO_TOOLS));
    Question {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        said: prompt.map(|message| texts(&message["content"])).unwrap_or_default(),
        after_tool: messages.last().is_some_and(|message| message["role"] == "tool"),
        side: (is_aside || has_shape).then(|| "Mock title".to_owned()),
        tools,
        begun_agent: None,
        stream: body["stream"] == true,
    }
}

fn call(question: &Question, act: &Act) -> (String, Value) {
    match act {
        Act::Ask | Act::Many | Act::Several | Act::Plan => {
            let name = question.tool(&["ask_user", "question", "ask_user_question"]);
            let input = if name == "ask_user" { form() } else { questions() };
            (name, input)
        }
        Act::Task(prompt) => {
            let name = question.tool(&["task", "agent"]);
            // opencode has a kind of that name only; Copilot, whose tool has the same name, asks for another field.
            let kind = if name == "task" { "general" } else { "general-purpose" };
            let input = json!({"description": "mock sub task", "prompt": prompt, "subagent_type": kind,
                "agent_type": "general-purpose", "name": "mock-sub", "mode": "sync"});
            (name, input)
        }
        act => {
            let name = question.tool(&["bash", "shell", "run_shell_command"]);
            (name, json!({"command": shell_command(act), "description": PURPOSE}))
        }
    }
}

/// A command for whoever reads it. In silence: some agents ask what to do with what it says.
fn written(act: &Act) -> String {
    format!("\n```bash\n{} >/dev/null\n```\n", shell_command(act).unwrap_or("true"))
}

fn questions() -> Value {
    json!({"questions": [{"question": ASKED, "header": "Colour", "options": choices(), "multiSelect": false}]})
}

/// Copilot asks with the shape of the answer.
fn form() -> Value {
    let colour = json!({"type": "string", "title": "Colour", "enum": ["Red", "Blue"]});
    let schema = json!({"type": "object", "properties": {"colour": colour}, "required": ["colour"]});
    json!({"message": ASKED, "requestedSchema": schema})
}

pub(super) fn frames(question: &Question, pieces: &[Piece]) -> Vec<Frame> {
    let id = next("chatcmpl");
    let chunk = |delta: Value, finish: Option<&str>| {
        data(&json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": question.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut finish = "stop";
    for piece in pieces {
        match piece {
            Piece::Text(text) => frames.push(chunk(json!({"content": text}), None)),
            Piece::Wait(time) => frames.push(Frame::Wait(*time)),
            Piece::Cut => return [frames, vec![Frame::Cut]].concat(),
            Piece::Tool(act) if question.tools.is_empty() => {
                frames.push(chunk(json!({"content": written(act)}), None));
            }
            Piece::Tool(act) => {
                let (name, input) = call(question, act);
                let function = json!({"name": name, "arguments": input.to_string()});
                let call = json!({"index": 0, "id": next("call"), "type": "function", "function": function});
                frames.push(chunk(json!({"tool_calls": [call]}), None));
                finish = "tool_calls";
            }
        }
    }
    frames.push(chunk(json!({}), Some(finish)));
    frames.push(Frame::Send("data: [DONE]\n\n".into()));
    frames
}

pub(super) fn whole(question: &Question, pieces: &[Piece]) -> Value {
    let message = json!({"role": "assistant", "content": joined(pieces)});
    json!({"id": next("chatcmpl"), "object": "chat.completion", "created": 0, "model": question.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
}
