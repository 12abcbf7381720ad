//! How an agent's input box handles keys.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct TypingRules {
    /// Right after this text, Enter makes a new line instead of submitting.
    pub continued_by: Option<String>,
    /// A single Escape keeps the typed text while the agent is idle. A second Escape may erase it.
    pub escape_keeps: bool,
    /// The agent understands bracketed paste even before it has enabled the mode, for example right after its start.
    pub knows_brackets: bool,
    /// Submitted text stays in the box until the agent prints something. Text in the box may therefore be submitted
    /// already.
    pub leaves_text: bool,
    /// For this long after it has drawn a paste, the agent treats Enter as part of the paste.
    pub settle_ms: Option<u64>,
}
