//! How an agent's input box handles keys.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct TypingRules {
    /// If the typed text ends with this text, Enter begins a new line instead of submitting.
    pub continued_by: Option<String>,
    /// A single Escape keeps the typed text while the agent is idle. A second Escape may erase it.
    pub escape_keeps: bool,
    /// The agent understands bracketed paste even before it has enabled the mode, for example right after its start.
    pub knows_brackets: bool,
    /// Submitted text stays in the box until the agent prints something. Text in the box may therefore have been
    /// submitted already.
    pub leaves_text: bool,
    /// After the agent has drawn a paste, it treats Enter as part of the paste for this long.
    pub settle_ms: Option<u64>,
}
