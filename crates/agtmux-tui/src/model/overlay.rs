//! What is open above the list: an editor, a text to read, a question, a list to pick from.

use agtmux_api::wire::{KillSignal, RespondAction};

use super::agents::AgentKey;
use super::picker::TuiPicker;
use super::reader::TextReader;
use crate::editor::TextEditor;

#[derive(Debug)]
pub enum TuiOverlay {
    /// The filter is being typed.
    Filter(TextEditor),
    /// A prompt, or the free text that answers a dialog.
    Compose(ComposedText),
    /// A text to read, such as the output of an agent.
    Reader(TextReader),
    /// A question with a key for each answer.
    Menu(TuiMenu),
    /// The commands, the tasks or the targets.
    Picker(TuiPicker),
}

/// The agent that an overlay acts on. The selection may change, the agent of the overlay does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTarget {
    pub key: AgentKey,
    pub reference: String,
    /// How the screen names the agent.
    pub label: String,
}

#[derive(Debug)]
pub struct ComposedText {
    /// The agents that get the text. An answer has one.
    pub agents: Vec<AgentTarget>,
    pub editor: TextEditor,
    pub purpose: ComposePurpose,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposePurpose {
    Send,
    /// Answers the dialog with this fingerprint.
    Answer {
        fingerprint: String,
    },
}

/// A question. Every other key closes it.
#[derive(Debug)]
pub struct TuiMenu {
    pub title: String,
    /// Lines above the answers, such as the agents that are meant.
    pub body: Vec<String>,
    pub items: Vec<MenuItem>,
    /// What the last row says after any other key.
    pub dismissed: &'static str,
}

#[derive(Debug)]
pub struct MenuItem {
    pub key: char,
    pub label: String,
    pub choice: MenuChoice,
}

#[derive(Debug, Clone)]
pub enum MenuChoice {
    Kill {
        agents: Vec<AgentTarget>,
        signal: KillSignal,
    },
    /// Gives each of these agents its answer.
    AnswerAll(Vec<(AgentKey, RespondAction)>),
    Copy {
        what: &'static str,
        text: String,
    },
    Snooze(SnoozeEnd),
}

/// How long an agent is put last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnoozeEnd {
    Change,
    After(std::time::Duration),
}
