//! What an agent's input box makes of keys.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct TypingRules {
    /// Right behind this, Enter makes a new line instead of sending.
    pub continued_by: Option<String>,
    /// One Escape leaves alone what was typed, while the agent rests. Two may not.
    #[serde(default)]
    pub escape_keeps: bool,
    /// What was sent stays where it was typed until something else is printed: that it is seen there tells nothing.
    #[serde(default)]
    pub leaves_text: bool,
    /// So long after a paste is drawn, Enter is still taken for a part of it.
    pub settle_ms: Option<u64>,
}
