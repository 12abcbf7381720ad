//! The wire protocols, one file each.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::answer_stream::StreamFrame;
use super::script::{AnswerPart, ScriptedAction};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireProtocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// The parts of a request that the mock model needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ParsedRequest {
    pub(super) model: String,
    /// The parts of the last user message.
    pub(super) prompt_parts: Vec<String>,
    /// Whether the last message is a tool result.
    pub(super) after_tool: bool,
    /// The fixed answer, if the request is not part of the conversation.
    pub(super) side_answer: Option<String>,
    pub(super) tools: Vec<String>,
    /// The id of a subagent that has just started, if the agent must wait for it.
    pub(super) started_subagent: Option<String>,
    pub(super) stream: bool,
}

impl ParsedRequest {
    pub(super) fn prompt(&self) -> String {
        self.prompt_parts.join("\n")
    }

    /// The first of these names that the agent offers as a tool, or `names[0]` if the agent offers none of them. Agents
    /// rename their tools between versions.
    fn tool(&self, names: &[&str]) -> String {
        let offered = names.iter().find(|name| self.tools.iter().any(|tool| tool == *name));
        (*offered.unwrap_or(&names[0])).to_owned()
    }

    /// The tool of the MCP server under the name that the agent offers: `mcp__agtmux__tool`, `mcp_agtmux_tool` and others.
    fn mcp_tool(&self, tool: &str) -> String {
        let is_it = |offered: &&String| {
            offered
                .strip_suffix(tool)
                .is_some_and(|server| server.contains("agtmux") && !server.ends_with(char::is_alphanumeric))
        };
        self.tools.iter().find(is_it).cloned().unwrap_or_else(|| tool.to_owned())
    }
}

impl WireProtocol {
    pub(super) fn from_path(path: &str) -> Option<Self> {
        match path {
            _ if path.contains("/messages") => Some(Self::Anthropic),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.contains(":streamGenerateContent") || path.contains(":generateContent") => Some(Self::Gemini),
            _ if path.contains(":countTokens") => Some(Self::Gemini),
            _ => None,
        }
    }

    pub(super) fn parse_request(self, path: &str, body: &Value) -> ParsedRequest {
        match self {
            Self::Anthropic => anthropic::parse_request(body),
            Self::Responses => responses::parse_request(body),
            Self::Chat => chat::parse_request(body),
            Self::Gemini => gemini::parse_request(path, body),
        }
    }

    pub(super) fn frames(self, request: &ParsedRequest, parts: &[AnswerPart]) -> Vec<StreamFrame> {
        match self {
            Self::Anthropic => anthropic::frames(request, parts),
            Self::Responses => responses::frames(request, parts),
            Self::Chat => chat::frames(request, parts),
            Self::Gemini => gemini::frames(request, parts),
        }
    }

    pub(super) fn complete_answer(self, request: &ParsedRequest, parts: &[AnswerPart]) -> Value {
        match self {
            Self::Anthropic => anthropic::complete_answer(request, parts),
            Self::Responses => responses::complete_answer(request, parts),
            Self::Chat => chat::complete_answer(request, parts),
            Self::Gemini => gemini::complete_answer(request, parts),
        }
    }

    pub(super) fn error_body(self, code: u16) -> Value {
        let message = format!("mock failure {code}");
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": anthropic::error_type(code), "message": message}})
            }
            Self::Gemini => json!({"error": {"code": code, "message": message, "status": gemini::status(code)}}),
            _ => {
                // Agents retry after a `server_error` even if the status is below 500, so such a status needs another
                // type.
                let kind = if code < 500 { "invalid_request_error" } else { "server_error" };
                json!({"error": {"message": message, "type": kind, "code": "mock"}})
            }
        }
    }

    /// The answer to a token count request.
    pub(super) fn token_count(self, path: &str) -> Option<Value> {
        match self {
            Self::Anthropic if path.ends_with("/count_tokens") => Some(json!({"input_tokens": 100})),
            Self::Gemini if path.ends_with(":countTokens") => Some(json!({"totalTokens": 100})),
            _ => None,
        }
    }
}

/// A new unique id. Agents would merge two messages or tool calls with the same id.
fn next_id(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}_mock{:08}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The texts of a message content, which is either a string or a list of parts.
fn texts(content: &Value) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).map(str::to_owned).collect()
}

fn tool_names<'a>(tools: &'a Value, name: impl Fn(&'a Value) -> &'a Value) -> Vec<String> {
    let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| name(tool).as_str().map(str::to_owned)).collect()
}

/// The complete text, for answers without streaming.
fn joined_text(parts: &[AnswerPart]) -> String {
    let text = |part: &AnswerPart| if let AnswerPart::Text(text) = part { text.clone() } else { String::new() };
    parts.iter().map(text).collect()
}

fn choices() -> Value {
    json!([{"label": "Red", "description": "A warm one"}, {"label": "Blue", "description": "A cold one"}])
}

const QUESTION_TEXT: &str = "Which colour should the button be?";

fn mcp_arguments(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|error| panic!("the prompt has no JSON ({error}): {arguments}"))
}

/// The description that the mock model adds to each tool call.
const PURPOSE: &str = "Run mock command";

fn shell_command(action: &ScriptedAction) -> Option<&str> {
    match action {
        ScriptedAction::Run(command) | ScriptedAction::Do(command) | ScriptedAction::Background(command) => {
            Some(command)
        }
        _ => None,
    }
}
