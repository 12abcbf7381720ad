//! The rules for an agent's own events, as data.

use std::collections::BTreeMap;

use agtmux_core::asked_command::AskedCommand;
use agtmux_core::evidence::{Assertion, DialogKind, Source};
use agtmux_core::redact;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::Value;

/// The maximum length of a command in a request for approval. A longer command is dropped, because every observation of
/// the agent would contain a copy of it.
const MAX_ASKED_BYTES: usize = 32 << 10;
/// The maximum number of texts that are kept from the fields beside the command in the payload.
const MAX_ABOUT: usize = 8;

/// How to read the agent's own events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NativeRules {
    /// The paths of the session id in a payload. The first path that leads to a text is used.
    pub(super) session: Option<PayloadPaths>,
    /// Whether the agent may start other agents of its type in the same pane. If so, events of other sessions are
    /// ignored, unless their rule has `changes_session`.
    pub(super) one_session: bool,
    /// The path of the sub-agent id in a payload. If a payload has no text at this path, the event is from the agent
    /// itself.
    pub(super) owner: Option<String>,
    /// Whether one process may serve the agents of several panes. All events of such a process name the pane of its
    /// first agent.
    pub(crate) shared_process: bool,
}

/// The rule for one kind of event. The first matching rule decides. An event without a rule is read as a generic event.
#[derive(Debug, Deserialize)]
pub(crate) struct EventRule {
    #[serde(default = "default_source")]
    pub(crate) source: Source,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    /// Conditions that the payload must meet: for each path, a condition on the value at that path.
    #[serde(default)]
    when: BTreeMap<String, PayloadCondition>,
    /// The path of a session id in the payload. The rule matches only if that id is the agent's session id. This
    /// excludes events of side threads, which have other ids.
    of_session: Option<String>,
    pub(super) turn: Option<TurnState>,
    /// The event means that the agent asks a question of this kind. The question stays open until an event closes it.
    pub(super) opens: Option<DialogKind>,
    /// The path of the shell command that the question asks to run. The dialog on the screen may show only a part of
    /// the command.
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) closes: ClosedQuestions,
    /// The event means that the agent continues in another session.
    #[serde(default)]
    pub(super) changes_session: bool,
    /// The event means that the agent's session has ended. The next session that an event names is the agent's new one.
    #[serde(default)]
    pub(super) ends_session: bool,
    /// The paths of the payload values that together identify a question.
    #[serde(default)]
    pub(super) key: Vec<String>,
    /// The question that is open while the source reports this state. Set only for sources that report states, not
    /// events.
    pub(super) asks: Option<AskedQuestion>,
    /// Whether the event reports a new prompt. Each prompt has its own turn, so one more turn must end before the agent
    /// is done.
    #[serde(default)]
    pub(super) prompt: bool,
    /// The path of the prompt's text. Set only if the event reports that a prompt was submitted.
    pub(crate) submits: Option<String>,
    /// How the running turn will end. The event only announces this. A later event, whose rule has `as_ended`, reports
    /// the end itself.
    pub(super) ends: Option<TurnState>,
    /// How long to wait before `turn` is reported. If the same source sends another event about the turn during that
    /// time, `turn` is not reported.
    #[serde(default)]
    hold_ms: u32,
    /// How long to wait before `turn` is reported if more prompts are queued. The longer one of this time and `hold_ms`
    /// counts.
    #[serde(default)]
    queued_hold_ms: u32,
    /// The end of the turn is not reported while this source still reports a running turn, because other hooks of the
    /// agent may continue the turn.
    pub(super) confirmed_by: Option<Source>,
    /// The path of a time in milliseconds: what the event reports has been true since then. If not set, since the time
    /// of the event.
    pub(super) since_ms: Option<String>,
    /// Whether the agent sends this event in other situations too. What the event reports is then only probable.
    #[serde(default)]
    pub(super) tentative: bool,
    /// The event reports the end of a turn, but not how the turn ended. If an earlier event has announced that, for
    /// example by `ends`, this rule reports the announced ending instead of its own `turn`.
    #[serde(default)]
    pub(super) as_ended: bool,
}

/// One path into a payload, or several. The first path that leads to a text is used.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PayloadPaths {
    One(String),
    FirstOf(Vec<String>),
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

/// The text at this path. None if it is missing or empty.
pub(crate) fn text_at(payload: &Value, path: &str) -> Option<String> {
    value_at(payload, path)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum PayloadCondition {
    /// True: the value must be present and not empty. False: it must be absent or empty.
    Present(bool),
    /// The value must be this text. A `*` at the end matches any remaining text.
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
    /// The question with the same key as the event.
    Same,
    /// The questions of the agent itself, not those of its sub-agents.
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
            && self.when.iter().all(|(path, wanted)| wanted.holds(payload, path))
    }

    /// The command that the agent asks to run, and the texts in the neighbouring fields of the payload.
    pub(super) fn asked(&self, payload: &Value) -> AskedCommand {
        let redacted = |text: &str| redact::text_with_code(text).into_owned();
        let path = self.command.as_deref();
        let command = path.and_then(|path| text_at(payload, path)).filter(|command| command.len() <= MAX_ASKED_BYTES);
        let object = path.and_then(|path| path.rsplit_once('.')).map_or(Some(payload), |(at, _)| value_at(payload, at));
        let beside = object.and_then(Value::as_object).into_iter().flat_map(|fields| fields.values());
        let texts = beside.filter_map(Value::as_str).filter(|text| command.as_deref() != Some(*text));
        let about = texts.filter(|text| !text.is_empty() && text.len() <= MAX_ASKED_BYTES).map(redacted);
        AskedCommand {
            about: if command.is_some() { about.take(MAX_ABOUT).collect() } else { Vec::new() },
            command: command.map(|command| redacted(&command)),
        }
    }

    pub(super) fn hold_time(&self, queued: bool) -> SignedDuration {
        let millis = if queued { self.hold_ms.max(self.queued_hold_ms) } else { self.hold_ms };
        SignedDuration::from_millis(i64::from(millis))
    }

    /// The assertions that the rule can make.
    pub(crate) fn assertions(&self) -> impl Iterator<Item = Assertion> {
        let turn = self.turn.map(TurnState::assertion);
        turn.into_iter().chain(self.opens.map(Assertion::DialogOpen)).chain(self.asks.map(AskedQuestion::assertion))
    }

    /// Why the rule is invalid. None if the rule is valid. A rule without any effect is valid: if it matches, the rules
    /// after it are not tried.
    pub(crate) fn problem(&self) -> Option<String> {
        let named = |what: &str| Some(format!("the event rule for '{}' {what}", self.event_type));
        if self.event_type.is_empty() {
            return Some("an event rule has an empty 'type'".into());
        }
        if self.opens.is_some() && self.asks.is_some() {
            return named("has both 'opens' and 'asks': use one of them");
        }
        if matches!(self.ends, Some(TurnState::Running | TurnState::Completed)) {
            return named("has an 'ends' that is neither 'idle' nor 'error'");
        }
        if self.command.is_some() && self.opens != Some(DialogKind::Approval) {
            return named("has a 'command', so it requires 'opens' = 'approval'");
        }
        if self.closes == ClosedQuestions::Same && self.key.is_empty() {
            return named("has 'closes' = 'same', so it requires a 'key'");
        }
        None
    }
}

impl PayloadCondition {
    /// Whether the value at this path meets the condition.
    pub(crate) fn holds(&self, payload: &Value, path: &str) -> bool {
        self.matches(value_at(payload, path))
    }

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

/// The value at a path: `a.b` is the field `b` of the field `a`.
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
