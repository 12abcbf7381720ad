use std::collections::VecDeque;

use jiff::Timestamp;

use super::agents::AgentKey;
use super::overlay::AgentTarget;

/// The keyboard is in the pane of an agent.
#[derive(Debug)]
pub struct PaneTyping {
    pub agent: AgentTarget,
    /// Keys that wait until the key before has been typed, by their tmux names.
    pub queue: VecDeque<TypedKey>,
    /// Whether a key is on its way.
    pub is_sending: bool,
    /// When a single Escape goes to the pane, unless a second one ends the typing.
    pub escape_at: Option<Timestamp>,
}

/// A key for a pane, and the dialog that was on the screen when it was pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedKey {
    pub name: String,
    pub dialog: Option<String>,
}

impl PaneTyping {
    pub fn new(agent: AgentTarget) -> Self {
        Self { agent, queue: VecDeque::new(), is_sending: false, escape_at: None }
    }

    pub fn key(&self) -> &AgentKey {
        &self.agent.key
    }
}
