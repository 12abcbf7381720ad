//! How an agent's input box handles keys.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct TypingRules {
    /// If the typed text ends with this text, Enter begins a new line instead of submitting.
    pub continued_by: Option<String>,
    /// Whether a single Escape keeps the typed text while the agent is idle. A second Escape may erase the text.
    pub escape_keeps: bool,
    /// Whether the agent understands bracketed paste even before it has enabled that mode, for example right after its
    /// start.
    pub knows_brackets: bool,
    /// Whether submitted text stays in the box until the agent prints something. If so, text in the box may have been
    /// submitted already.
    pub leaves_text: bool,
    /// How long the agent treats Enter as a part of a paste after it has drawn the pasted text.
    pub settle_ms: Option<u64>,
}
