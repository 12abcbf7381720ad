//! What an agent's input box makes of keys.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct TypingRules {
    /// Right behind this, Enter makes a new line instead of sending.
    pub continued_by: Option<String>,
    /// One Escape leaves alone what was typed, while the agent rests. Two may not.
    #[serde(default)]
    pub escape_keeps: bool,
    /// It knows the brackets around a paste also before it has asked for them, as when it has just been started.
    #[serde(default)]
    pub knows_brackets: bool,
    /// What was sent stays where it was typed until something else is printed: that it is seen there tells nothing.
    #[serde(default)]
    pub leaves_text: bool,
    /// So long after a paste is drawn, Enter is still taken for a part of it.
    pub settle_ms: Option<u64>,
}
