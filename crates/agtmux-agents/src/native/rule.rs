//! What an agent's own events mean, as data.

use std::collections::BTreeMap;

use agtmux_core::evidence::{Assertion, DialogKind, Source};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::Value;

/// How to read what an agent says of itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct NativeRules {
    /// Where an event names the agent's session; the first place of several that names one.
    #[serde(default)]
    pub(super) session: PayloadPaths,
    /// It may start others of its kind, whose events come from the same pane: those of another session say nothing,
    /// unless their rule says that the session changes.
    #[serde(default)]
    pub(super) one_session: bool,
    /// Where an event names the sub-agent that it is about; absent or empty for the agent itself.
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// One process may serve the agents of several panes, and speak from where the first of them is.
    #[serde(default)]
    pub(crate) shared_process: bool,
}

/// One kind of event. The first rule that fits decides; an event that fits none is kept and says nothing.
#[derive(Debug, Deserialize)]
pub(crate) struct EventRule {
    #[serde(default = "default_source")]
    pub(super) source: Source,
    #[serde(rename = "type")]
    pub(super) event_type: String,
    /// Paths into the payload and what must be found there, all of it.
    #[serde(default)]
    when: BTreeMap<String, PayloadCondition>,
    /// Where the payload names its session, which must be the one that is known: side threads have others.
    #[serde(default)]
    of_session: Option<String>,
    #[serde(default)]
    pub(super) turn: Option<TurnState>,
    /// A question of this kind is open from now on, until an event with the same key closes it.
    #[serde(default)]
    pub(super) opens: Option<DialogKind>,
    #[serde(default)]
    pub(super) closes: ClosedQuestions,
    /// The agent goes on in another session.
    #[serde(default)]
    pub(super) changes_session: bool,
    /// The agent's session is over; the next one that is named is its own.
    #[serde(default)]
    pub(super) ends_session: bool,
    /// What tells one open question from another.
    #[serde(default)]
    pub(super) key: Vec<String>,
    /// What the source knows of questions as a whole, for one that reports what is instead of what happens.
    #[serde(default)]
    pub(super) asks: Option<AskedQuestion>,
    /// A prompt goes in: one more turn that has to end.
    #[serde(default)]
    pub(super) prompt: bool,
    /// It tells that a prompt was submitted, and this is where the payload has its text.
    #[serde(default)]
    pub(crate) submits: Option<String>,
    /// How the turn will have ended when its end is told by a rule with `as_ended`.
    #[serde(default)]
    pub(super) ends: Option<TurnState>,
    /// It is said only if nothing else about the turn comes within this time.
    #[serde(default)]
    hold_ms: u32,
    /// As before, but only while prompts are queued.
    #[serde(default)]
    queued_hold_ms: u32,
    /// While this source says that the turn is under way, it is said only when that source says otherwise: others may
    /// still decide that the turn goes on.
    #[serde(default)]
    pub(super) confirmed_by: Option<Source>,
    /// Where the payload tells since when it is so, in milliseconds; the time of the event otherwise.
    #[serde(default)]
    pub(super) since_ms: Option<String>,
    /// Most likely so, but other things look the same.
    #[serde(default)]
    pub(super) tentative: bool,
    /// Where an event before it has told how the turn ended, it says that instead. An agent that was stopped or failed may
    /// say so and then that it is done; and what it shows may have said otherwise in between, for it is drawn later.
    #[serde(default)]
    pub(super) as_ended: bool,
}

/// One path into a payload, or several of which the first that leads to a text counts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PayloadPaths {
    One(String),
    FirstOf(Vec<String>),
}

impl Default for PayloadPaths {
    fn default() -> Self {
        Self::FirstOf(Vec::new())
    }
}

impl PayloadPaths {
    pub(super) fn text(&self, payload: &Value) -> Option<String> {
        let paths = match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::FirstOf(paths) => paths.as_slice(),
        };
        paths.iter().find_map(|path| text_at(payload, path))
    }
}

/// What stands there, unless it is empty.
pub(super) fn text_at(payload: &Value, path: &str) -> Option<String> {
    value_at(payload, path)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PayloadCondition {
    /// Something that is not empty is there, or is not.
    Present(bool),
    /// This text; with `*` at its end, text that begins with it.
    Text(String),
    AnyOf(Vec<String>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TurnState {
    Running,
    Completed,
    Idle,
    Error,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClosedQuestions {
    #[default]
    Nothing,
    /// The question with the same key.
    Same,
    /// The agent's own questions, not those of its sub-agents.
    Own,
    All,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AskedQuestion {
    Approval,
    Input,
    Nothing,
}

fn default_source() -> Source {
    Source::Hook
}

impl EventRule {
    pub(crate) fn matches(&self, source: Source, event_type: &str, payload: &Value, session: Option<&str>) -> bool {
        let its_own = |path: &String| session.is_some() && value_at(payload, path).and_then(Value::as_str) == session;
        self.source == source
            && self.event_type == event_type
            && self.of_session.as_ref().is_none_or(its_own)
            && self.when.iter().all(|(path, wanted)| wanted.matches(value_at(payload, path)))
    }

    pub(super) fn hold_time(&self, queued: bool) -> SignedDuration {
        let millis = if queued { self.hold_ms.max(self.queued_hold_ms) } else { self.hold_ms };
        SignedDuration::from_millis(i64::from(millis))
    }

    pub(crate) fn event_type(&self) -> &str {
        &self.event_type
    }

    pub(crate) fn source(&self) -> Source {
        self.source
    }

    /// What it can say.
    pub(crate) fn assertions(&self) -> impl Iterator<Item = Assertion> {
        let turn = self.turn.map(TurnState::assertion);
        turn.into_iter().chain(self.opens.map(Assertion::DialogOpen)).chain(self.asks.map(AskedQuestion::assertion))
    }

    /// A rule that can never say anything is a mistake, unless it is there to keep others from fitting.
    pub(crate) fn problem(&self) -> Option<String> {
        let named = |what: &str| Some(format!("the event rule for '{}' {what}", self.event_type));
        if self.event_type.is_empty() {
            return Some("an event rule has an empty 'type'".into());
        }
        if self.opens.is_some() && self.asks.is_some() {
            return named("has both 'opens' and 'asks'");
        }
        if matches!(self.ends, Some(TurnState::Running | TurnState::Completed)) {
            return named("has an 'ends' that is neither 'idle' nor 'error'");
        }
        if self.closes == ClosedQuestions::Same && self.key.is_empty() {
            return named("closes the same question but has no 'key'");
        }
        None
    }
}

impl PayloadCondition {
    fn matches(&self, found: Option<&Value>) -> bool {
        match self {
            Self::Present(wanted) => *wanted == found.is_some_and(|value| !is_empty(value)),
            Self::Text(text) => found.is_some_and(|value| value_matches(value, text)),
            Self::AnyOf(texts) => found.is_some_and(|value| texts.iter().any(|text| value_matches(value, text))),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn value_matches(value: &Value, wanted: &str) -> bool {
    let Some(text) = value.as_str() else {
        return serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *value);
    };
    match wanted.strip_suffix('*') {
        Some(beginning) => text.trim_start().starts_with(beginning),
        None => text == wanted,
    }
}

/// `a.b` is the field `b` of the field `a`.
pub(crate) fn value_at<'v>(payload: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(payload, |value, field| value.get(field))
}

impl TurnState {
    pub(super) fn assertion(self) -> Assertion {
        match self {
            Self::Running => Assertion::Running,
            Self::Completed => Assertion::Completed,
            Self::Idle => Assertion::Idle,
            Self::Error => Assertion::Failed,
        }
    }
}

impl AskedQuestion {
    pub(super) fn assertion(self) -> Assertion {
        match self {
            Self::Approval => Assertion::DialogOpen(DialogKind::Approval),
            Self::Input => Assertion::DialogOpen(DialogKind::Input),
            Self::Nothing => Assertion::NoDialog,
        }
    }
}
