//! OpenAI chat completions, as many agents speak it.

use serde_json::{Value, json};

use super::{
    AnswerPart, PURPOSE, ParsedRequest, QUESTION_TEXT, StreamFrame, choices, joined_text, next_id, shell_command,
    texts, tool_names,
};
use crate::model::answer_stream::unnamed_event;
use crate::model::script::ScriptedAction;

/// How the name of a model ends that agents ask which offer no tools: what it wants to run, it writes down. From others a
/// request without tools is none of the conversation.
const NO_TOOLS_SUFFIX: &str = "no-tools";

pub(super) fn parse_request(body: &Value) -> ParsedRequest {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user");
    let tools = tool_names(&body["tools"], |tool| &tool["function"]["name"]);
    let has_shape = body["response_format"]["type"] == "json_schema";
    let is_aside = tools.is_empty() && !body["model"].as_str().is_some_and(|model| model.ends_with(NO_TOOLS_SUFFIX));
    ParsedRequest {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        prompt_parts: prompt.map(|message| texts(&message["content"])).unwrap_or_default(),
        after_tool: messages.last().is_some_and(|message| message["role"] == "tool"),
        side_answer: (is_aside || has_shape).then(|| "Mock title".to_owned()),
        tools,
        started_subagent: None,
        stream: body["stream"] == true,
    }
}

fn tool_call(question: &ParsedRequest, act: &ScriptedAction) -> (String, Value) {
    match act {
        ScriptedAction::Ask | ScriptedAction::Many | ScriptedAction::Several | ScriptedAction::Plan => {
            let name = question.tool(&["ask_user", "question", "ask_user_question"]);
            let input = if name == "ask_user" { form() } else { questions() };
            (name, input)
        }
        ScriptedAction::Task(prompt) => {
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
fn command_block(act: &ScriptedAction) -> String {
    format!("\n```bash\n{} >/dev/null\n```\n", shell_command(act).unwrap_or("true"))
}

fn questions() -> Value {
    json!({"questions": [{"question": QUESTION_TEXT, "header": "Colour", "options": choices(), "multiSelect": false}]})
}

/// Copilot asks with the shape of the answer.
fn form() -> Value {
    let colour = json!({"type": "string", "title": "Colour", "enum": ["Red", "Blue"]});
    let schema = json!({"type": "object", "properties": {"colour": colour}, "required": ["colour"]});
    json!({"message": QUESTION_TEXT, "requestedSchema": schema})
}

pub(super) fn frames(question: &ParsedRequest, pieces: &[AnswerPart]) -> Vec<StreamFrame> {
    let id = next_id("chatcmpl");
    let chunk = |delta: Value, finish: Option<&str>| {
        unnamed_event(&json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": question.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut finish = "stop";
    for piece in pieces {
        match piece {
            AnswerPart::Text(text) => frames.push(chunk(json!({"content": text}), None)),
            AnswerPart::Wait(time) => frames.push(StreamFrame::Wait(*time)),
            AnswerPart::Cut => return [frames, vec![StreamFrame::Cut]].concat(),
            AnswerPart::Tool(act) if question.tools.is_empty() => {
                frames.push(chunk(json!({"content": command_block(act)}), None));
            }
            AnswerPart::Tool(act) => {
                let (name, input) = tool_call(question, act);
                let function = json!({"name": name, "arguments": input.to_string()});
                let call = json!({"index": 0, "id": next_id("call"), "type": "function", "function": function});
                frames.push(chunk(json!({"tool_calls": [call]}), None));
                finish = "tool_calls";
            }
        }
    }
    frames.push(chunk(json!({}), Some(finish)));
    frames.push(StreamFrame::Send("data: [DONE]\n\n".into()));
    frames
}

pub(super) fn complete_answer(question: &ParsedRequest, pieces: &[AnswerPart]) -> Value {
    let message = json!({"role": "assistant", "content": joined_text(pieces)});
    json!({"id": next_id("chatcmpl"), "object": "chat.completion", "created": 0, "model": question.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
}
