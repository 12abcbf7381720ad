//! What an adapter makes of raw evidence: a statement about one runtime by one source.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::dialog::Dialog;
use crate::ordering::OrderKey;
use crate::state::State;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// Where a statement comes from.
    Source {
        Hook => "hook",
        Notify => "notify",
        Wrapper => "wrapper",
        File => "file",
        Screen => "screen",
        Title => "title",
        Process => "process",
        Osc => "osc",
        Bell => "bell",
    }
);

impl Source {
    /// `poller` is what others call a screen that is looked at.
    pub fn parse(word: &str) -> Result<Self, crate::wire_enum::UnknownVariantError> {
        if word == "poller" { Ok(Self::Screen) } else { word.parse() }
    }

    /// The agent itself said it.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Hook | Self::Notify | Self::Wrapper | Self::File | Self::Osc)
    }
}

wire_enum!(
    /// What a statement is about. Statements about different things do not contradict each other.
    Claim {
        /// Whether a turn is under way, and how the last one ended.
        Turn => "turn",
        /// Whether the agent asks something.
        Dialog => "dialog",
    }
);

wire_enum!(
    /// What kind of answer a dialog waits for.
    DialogKind {
        Approval => "approval",
        Input => "input",
    }
);

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assertion {
    Running,
    Completed,
    Idle,
    Failed,
    #[serde(rename = "asks")]
    DialogOpen(DialogKind),
    #[serde(rename = "asks_nothing")]
    NoDialog,
}

impl Assertion {
    pub fn claim(self) -> Claim {
        match self {
            Self::Running | Self::Completed | Self::Idle | Self::Failed => Claim::Turn,
            Self::DialogOpen(_) | Self::NoDialog => Claim::Dialog,
        }
    }

    /// The state it speaks for. An agent that asks nothing may be doing anything.
    pub fn state(self) -> Option<State> {
        match self {
            Self::Running => Some(State::Running),
            Self::Completed => Some(State::Completed),
            Self::Idle => Some(State::Idle),
            Self::Failed => Some(State::Error),
            Self::DialogOpen(DialogKind::Approval) => Some(State::WaitingApproval),
            Self::DialogOpen(DialogKind::Input) => Some(State::WaitingInput),
            Self::NoDialog => None,
        }
    }

    /// Whether this, said later, makes the other untrue. That nothing runs says nothing about how the last turn ended.
    pub fn contradicts(self, other: Self) -> bool {
        let only_rests = self == Self::Idle && matches!(other, Self::Completed | Self::Failed);
        self.claim() == other.claim() && self != other && !only_rests
    }
}

/// One statement about one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub source: Source,
    #[serde(rename = "stand")]
    pub assertion: Assertion,
    /// Whether it may stand for itself. A hint that may not never makes a state.
    pub conclusive: bool,
    /// When it was true: the time of the event, or when the capture of the screen began.
    pub as_of: Timestamp,
    /// For a screen: whether output had settled when it was captured.
    pub settled: bool,
    /// How long it may be trusted without being said again. None: until it is contradicted.
    pub ttl: Option<SignedDuration>,
    pub order: OrderKey,
    pub rule: RuleRef,
    /// The line of evidence, as it was found.
    pub excerpt: String,
    /// Most likely so, but other things look the same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tentative: bool,
    /// It was concluded from what is not to be seen: it makes no turn untrue that the agent itself says is under way.
    #[serde(default, skip_serializing_if = "is_false")]
    #[serde(rename = "yields")]
    pub inferred_from_absence: bool,
    /// Nothing of any turn is left: how the last one ended no longer counts.
    #[serde(default, skip_serializing_if = "is_false")]
    #[serde(rename = "anew")]
    pub no_turn_visible: bool,
    /// What is asked, where the source shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Box<Dialog>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What decided, so that a person can look it up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    pub name: String,
    pub version: u32,
}
