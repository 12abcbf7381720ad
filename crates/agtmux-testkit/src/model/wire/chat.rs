//! The OpenAI chat completions protocol, which many agents use.

use serde_json::{Value, json};

use super::{
    AnswerPart, PURPOSE, ParsedRequest, QUESTION_TEXT, StreamFrame, choices, joined_text, mcp_arguments, next_id,
    shell_command, texts, tool_names,
};
use crate::model::answer_stream::unnamed_event;
use crate::model::script::ScriptedAction;

/// Tests give this suffix to the model name of agents that offer no tools. The mock model then writes commands into the
/// text of its answer. With any other model name, a request without tools is a side request.
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

fn tool_call(request: &ParsedRequest, action: &ScriptedAction) -> (String, Value) {
    match action {
        ScriptedAction::Mcp(tool, arguments) => (request.mcp_tool(tool), mcp_arguments(arguments)),
        ScriptedAction::Ask | ScriptedAction::Many | ScriptedAction::Several | ScriptedAction::Plan => {
            let name = request.tool(&["ask_user", "question", "ask_user_question"]);
            let input = if name == "ask_user" { form() } else { questions() };
            (name, input)
        }
        ScriptedAction::Call(tool, input) => (tool.clone(), serde_json::from_str(input).unwrap_or_default()),
        ScriptedAction::Task(prompt) => {
            let name = request.tool(&["task", "agent"]);
            // opencode's tool `task` knows only the type `general`. Copilot has a tool of the same name, but it reads
            // `agent_type`.
            let kind = if name == "task" { "general" } else { "general-purpose" };
            let input = json!({"description": "mock sub task", "prompt": prompt, "subagent_type": kind,
                "agent_type": "general-purpose", "name": "mock-sub", "mode": "sync"});
            (name, input)
        }
        action => {
            let name = request.tool(&["bash", "shell", "run_shell_command"]);
            (name, json!({"command": shell_command(action), "description": PURPOSE}))
        }
    }
}

/// A command as a code block. The command discards its output, because some agents ask what to do with output.
fn command_block(action: &ScriptedAction) -> String {
    format!("\n```bash\n{} >/dev/null\n```\n", shell_command(action).unwrap_or("true"))
}

fn questions() -> Value {
    json!({"questions": [{"question": QUESTION_TEXT, "header": "Colour", "options": choices(), "multiSelect": false}]})
}

/// The input of Copilot's question tool, which contains a schema of the answer.
fn form() -> Value {
    let colour = json!({"type": "string", "title": "Colour", "enum": ["Red", "Blue"]});
    let schema = json!({"type": "object", "properties": {"colour": colour}, "required": ["colour"]});
    json!({"message": QUESTION_TEXT, "requestedSchema": schema})
}

pub(super) fn frames(request: &ParsedRequest, parts: &[AnswerPart]) -> Vec<StreamFrame> {
    let id = next_id("chatcmpl");
    let chunk = |delta: Value, finish: Option<&str>| {
        unnamed_event(&json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": request.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut finish = "stop";
    for part in parts {
        match part {
            AnswerPart::Text(text) => frames.push(chunk(json!({"content": text}), None)),
            AnswerPart::Wait(time) => frames.push(StreamFrame::Wait(*time)),
            AnswerPart::Cut => return [frames, vec![StreamFrame::Cut]].concat(),
            AnswerPart::Tool(action) if request.tools.is_empty() => {
                frames.push(chunk(json!({"content": command_block(action)}), None));
            }
            AnswerPart::Tool(action) => {
                let (name, input) = tool_call(request, action);
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

pub(super) fn complete_answer(request: &ParsedRequest, parts: &[AnswerPart]) -> Value {
    let message = json!({"role": "assistant", "content": joined_text(parts)});
    json!({"id": next_id("chatcmpl"), "object": "chat.completion", "created": 0, "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
}
