//! Observations: what an adapter concludes about one runtime from raw evidence of one source.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::asked_command::AskedCommand;
use crate::dialog::Dialog;
use crate::ordering::OrderKey;
use crate::state::State;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// The source of an observation.
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
    /// Parses a source name. Accepts `poller` as another name for `screen`.
    pub fn parse(word: &str) -> Result<Self, crate::wire_enum::UnknownVariantError> {
        if word == "poller" { Ok(Self::Screen) } else { word.parse() }
    }

    /// Whether the evidence of this source is the agent's own report.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Hook | Self::Notify | Self::Wrapper | Self::File | Self::Osc)
    }
}

wire_enum!(
    /// The subject of an observation. Observations with different claims do not contradict each other.
    Claim {
        /// Whether a turn is running, and how the last turn ended.
        Turn => "turn",
        /// Whether a dialog is open.
        Dialog => "dialog",
    }
);

wire_enum!(
    /// The kind of answer that a dialog expects.
    DialogKind {
        Approval => "approval",
        Input => "input",
    }
);

/// The state that an observation asserts.
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

    /// The agent state that follows from this assertion. `NoDialog` implies no state.
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

    /// The assertions that a source makes when it reports this state. A waiting agent may be in the middle of a turn,
    /// so a waiting state asserts nothing about the turn. All other states except `unknown` assert that no dialog is
    /// open, in addition to their assertion about the turn.
    pub fn for_state(state: State) -> &'static [Self] {
        match state {
            State::Running => &[Self::Running, Self::NoDialog],
            State::Idle => &[Self::Idle, Self::NoDialog],
            State::Completed => &[Self::Completed, Self::NoDialog],
            State::Error => &[Self::Failed, Self::NoDialog],
            State::WaitingApproval => &[Self::DialogOpen(DialogKind::Approval)],
            State::WaitingInput => &[Self::DialogOpen(DialogKind::Input)],
            State::Unknown => &[],
        }
    }

    /// Whether this assertion refutes the earlier assertion `other`. `Idle` does not refute `Completed` or `Failed`,
    /// because an idle agent may still show the result of its last turn.
    pub fn contradicts(self, other: Self) -> bool {
        let keeps_turn_result = self == Self::Idle && matches!(other, Self::Completed | Self::Failed);
        self.claim() == other.claim() && self != other && !keeps_turn_result
    }
}

/// One observation about one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub source: Source,
    #[serde(rename = "stand", alias = "assertion")]
    pub assertion: Assertion,
    /// Whether this observation can decide the state. If false, the observation is only a hint.
    #[serde(default = "yes")]
    pub conclusive: bool,
    /// The time of the event. For a screen, the time when the capture began.
    pub as_of: Timestamp,
    /// Used only for a screen: whether the pane's output had stopped changing before the capture.
    #[serde(default = "yes")]
    pub settled: bool,
    /// How long the observation stays valid if it is not repeated. If `None`, it stays valid until another observation
    /// contradicts it.
    pub ttl: Option<SignedDuration>,
    /// Decides which of two observations is newer. The engine sets this field when the observation arrives.
    #[serde(default)]
    pub order: OrderKey,
    pub rule: RuleRef,
    /// The line of the evidence that led to the assertion, or a short description of the evidence.
    pub excerpt: String,
    /// Whether the assertion is only probable, because the evidence can also have another explanation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tentative: bool,
    /// Whether the adapter made the assertion because a text is missing on the screen. Such an observation does not
    /// refute the agent's own report that a turn is running or that a dialog is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", rename = "yields")]
    pub inferred_from_absence: bool,
    /// Whether the source shows no trace of any turn. Such an observation refutes the result of the last turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", rename = "anew")]
    pub no_turn_visible: bool,
    /// Until this time, the observation decides nothing. Set when the agent reports a dialog before agtmux has read the
    /// dialog from the screen. The waiting state then appears together with the content of the dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_from: Option<Timestamp>,
    /// The content of the open dialog, if the source shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Box<Dialog>>,
    /// The open requests for approval, if the source is the agent itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AskedCommand>,
}

impl Observation {
    /// Creates a conclusive observation of settled evidence. The observation stays valid until another one contradicts
    /// it.
    pub fn new(source: Source, assertion: Assertion, as_of: Timestamp, rule: RuleRef) -> Self {
        Self {
            source,
            assertion,
            conclusive: true,
            as_of,
            settled: true,
            ttl: None,
            order: OrderKey::default(),
            rule,
            excerpt: String::new(),
            tentative: false,
            inferred_from_absence: false,
            no_turn_visible: false,
            counts_from: None,
            dialog: None,
            asked: Vec::new(),
        }
    }

    /// All times in this observation.
    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        [&mut self.as_of].into_iter().chain(self.order.times_mut())
    }

    /// The key of this observation in the ledger, which keeps one entry per source and claim.
    pub(crate) fn key(&self) -> (Source, Claim) {
        (self.source, self.assertion.claim())
    }
}

fn yes() -> bool {
    true
}

/// The adapter rule that produced an observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    pub name: String,
    pub version: u32,
}

impl RuleRef {
    pub fn new(name: impl Into<String>, version: u32) -> Self {
        Self { name: name.into(), version }
    }
}
