use serde_json::Value;

/// The types of parts that contain text. Their names are compared without case.
const TEXT_TYPES: [&str; 3] = ["text", "output_text", "input_text"];
/// The types of parts that call a tool.
const CALL_TYPES: [&str; 5] = ["tool_use", "toolcall", "tool_call", "function_call", "tool"];
/// Fields of a part whose text is not a part of the message, such as a thought.
const HIDDEN_FIELDS: [&str; 3] = ["thought", "synthetic", "ignored"];

/// The content of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MessageParts {
    /// None if the message has no text, or only blanks.
    pub(super) text: Option<String>,
    /// Whether a tool call follows the text.
    pub(super) calls_tool: bool,
}

impl MessageParts {
    /// Reads a content: a text, or a list of parts.
    pub(super) fn of(content: &Value, separator: &str) -> Self {
        let (mut texts, mut calls_tool) = (Vec::new(), false);
        if let Some(text) = content.as_str() {
            texts.push(text);
        }
        for part in content.as_array().into_iter().flatten() {
            let kind = part["type"].as_str().unwrap_or_default().to_ascii_lowercase();
            if CALL_TYPES.contains(&kind.as_str()) || part.get("functionCall").is_some() {
                calls_tool = true;
            }
            let is_hidden = HIDDEN_FIELDS.iter().any(|field| part[*field] == true);
            let is_text = (kind.is_empty() || TEXT_TYPES.contains(&kind.as_str())) && !is_hidden;
            if let Some(text) = part["text"].as_str().filter(|text| is_text && !text.is_empty()) {
                texts.push(text);
                calls_tool = false;
            }
        }
        let text = texts.join(separator);
        Self { text: (!text.trim().is_empty()).then_some(text), calls_tool }
    }
}
