//! Turns an agent's own events into observations. The reducer keeps a memory, because a single event is often not
//! enough: it does not say which of several questions was answered, or whether more prompts are queued.

mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use agtmux_core::evidence::{Assertion, DialogKind, RuleRef, Source};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use rule::{EventRule, NativeRules};

use crate::generic;
pub(crate) use rule::value_at;
use rule::{ClosedQuestions, text_at};

/// The maximum number of open questions per runtime. The oldest ones are dropped.
const MAX_OPEN_QUESTIONS: usize = 64;
/// An observation that waits for confirmation is released after this time, because an agent gives its hooks at most
/// this long.
const CONFIRMATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// The adapter's memory of one runtime between events.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterMemory {
    /// The agent's own session id.
    pub session: Option<String>,
    #[serde(alias = "open")]
    open_questions: Vec<OpenQuestion>,
    /// The number of prompts whose turns have not ended.
    #[serde(alias = "prompts")]
    pending_prompts: u32,
    /// How the last turn ended or will end, if a hook has reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "ended")]
    turn_end: Option<Assertion>,
    /// Observations to release later, unless their source reports something else first.
    held: Vec<HeldObservation>,
    /// The sources whose last report was a running turn.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[serde(alias = "under_way")]
    running_sources: BTreeSet<Source>,
    /// The time of the newest log record read. Older records are known, even if they are read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "logged")]
    log_read_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenQuestion {
    key: String,
    kind: DialogKind,
    owner: Option<String>,
    /// When the question was opened. It keeps this time when another question closes.
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeldObservation {
    due: Timestamp,
    #[serde(alias = "said")]
    observation: NativeObservation,
    /// Release the observation as soon as this source no longer reports a running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<Source>,
}

/// One observation from an agent's own event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeObservation {
    pub source: Source,
    #[serde(alias = "stand")]
    pub assertion: Assertion,
    pub as_of: Timestamp,
    /// Probable, but other situations produce the same event.
    pub tentative: bool,
    pub rule: RuleRef,
    pub excerpt: String,
}

#[derive(Debug, Clone, Copy)]
pub struct NativeEvent<'a> {
    pub source: Source,
    pub event_type: &'a str,
    pub payload: &'a Value,
    pub at: Timestamp,
}

/// Applies the event rules of one agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventReducer<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: u32,
    pub(crate) native: &'a NativeRules,
    pub(crate) events: &'a [EventRule],
}

impl AdapterMemory {
    /// Stores the time of a log record. Returns whether the record is older than an earlier one.
    pub fn record_log_time(&mut self, at: Timestamp) -> bool {
        let known = self.log_read_until.is_some_and(|logged| at < logged);
        self.log_read_until = self.log_read_until.max(Some(at));
        known
    }

    /// The next time at which [`take_due`](Self::take_due) returns an observation.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.held.iter().map(|held| held.due).min()
    }

    /// Removes and returns one held observation that is due.
    pub fn take_due(&mut self, now: Timestamp) -> Option<NativeObservation> {
        let due = self.held.iter().position(|held| held.due <= now)?;
        let observation = self.held.remove(due).observation;
        if observation.source == Source::Hook {
            self.pending_prompts = 0;
        }
        Some(observation)
    }
}

impl EventReducer<'_> {
    pub(crate) fn reduce(
        &self,
        memory: &mut AdapterMemory,
        event: NativeEvent<'_>,
        now: Timestamp,
    ) -> Vec<NativeObservation> {
        let session = self.native.session.text(event.payload);
        let known = memory.session.as_deref().or(session.as_deref());
        let rule = self.events.iter().find(|rule| rule.matches(event.source, event.event_type, event.payload, known));
        let another = self.native.one_session && session.is_some() && session.as_deref() != known;
        if another && !rule.is_some_and(|rule| rule.changes_session) {
            return Vec::new();
        }
        if rule.is_some_and(|rule| rule.ends_session) {
            memory.session = None;
        } else if session.is_some() {
            memory.session = session;
        }
        match rule {
            Some(rule) => {
                let owner = self.native.owner.as_deref().and_then(|path| text_at(event.payload, path));
                self.apply(rule, memory, event, owner, now)
            }
            // An event without a rule may be a generic event of a wrapper.
            None => generic_observations(event),
        }
    }

    fn apply(
        &self,
        rule: &EventRule,
        memory: &mut AdapterMemory,
        event: NativeEvent<'_>,
        owner: Option<String>,
        now: Timestamp,
    ) -> Vec<NativeObservation> {
        let since = rule.since_ms.as_deref().and_then(|path| value_at(event.payload, path)?.as_i64());
        let since = since.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let observe = |assertion| NativeObservation {
            source: event.source,
            assertion,
            as_of: since.unwrap_or(event.at),
            tentative: rule.tentative,
            rule: RuleRef { name: format!("{}.{}", self.name, event.event_type), version: self.version },
            excerpt: event.event_type.to_owned(),
        };
        let mut all = Vec::new();
        if let Some(turn) = rule.turn {
            let assertion = memory.turn_end.filter(|_| rule.as_ended).unwrap_or(turn.assertion());
            all.extend(memory.apply_turn(rule, observe(assertion), now));
        }
        if let Some(ends) = rule.ends {
            memory.turn_end = Some(ends.assertion());
        }
        all.extend(
            memory
                .update_questions(rule, event, owner)
                .map(|(assertion, at)| NativeObservation { as_of: at, ..observe(assertion) }),
        );
        all.extend(rule.asks.map(|asks| observe(asks.assertion())));
        all
    }
}

impl AdapterMemory {
    /// Records an observation about the turn and returns the observations to report now.
    fn apply_turn(
        &mut self,
        rule: &EventRule,
        observation: NativeObservation,
        now: Timestamp,
    ) -> Vec<NativeObservation> {
        let (source, assertion) = (observation.source, observation.assertion);
        self.held.retain(|held| held.observation.source != source);
        let queued = self.pending_prompts > 1;
        // Between two queued turns, the confirming source also reports no running turn.
        let confirmed_by = rule.confirmed_by.filter(|by| !queued && self.running_sources.contains(by));
        self.pending_prompts = match assertion {
            Assertion::Running => self.pending_prompts + u32::from(rule.prompt),
            _ if source == Source::Hook => self.pending_prompts.saturating_sub(1),
            _ => self.pending_prompts,
        };
        if source == Source::Hook {
            self.turn_end = Some(assertion).filter(|assertion| *assertion != Assertion::Running);
        }
        let mut all = self.release_confirmed(source, assertion, observation.as_of);
        let hold = if confirmed_by.is_some() { CONFIRMATION_TIMEOUT } else { rule.hold_time(queued) };
        if hold.is_zero() {
            all.push(observation);
        } else {
            self.held.push(HeldObservation { due: now.checked_add(hold).unwrap_or(now), observation, confirmed_by });
        }
        all
    }

    /// Releases the observations that waited until this source reports no running turn. They are true from then on.
    fn release_confirmed(&mut self, by: Source, assertion: Assertion, as_of: Timestamp) -> Vec<NativeObservation> {
        if assertion == Assertion::Running {
            self.running_sources.insert(by);
            return Vec::new();
        }
        self.running_sources.remove(&by);
        let (confirmed, held) = self.held.drain(..).partition(|held| held.confirmed_by == Some(by));
        self.held = held;
        let release = |HeldObservation { observation, .. }: HeldObservation| NativeObservation {
            as_of: observation.as_of.max(as_of),
            ..observation
        };
        Vec::into_iter(confirmed).map(release).collect()
    }

    /// Opens and closes questions. Returns the newest open question, or that none is open, if the event concerns
    /// questions.
    fn update_questions(
        &mut self,
        rule: &EventRule,
        NativeEvent { payload, at: now, .. }: NativeEvent<'_>,
        owner: Option<String>,
    ) -> Option<(Assertion, Timestamp)> {
        let key = || rule.key.iter().map(|path| value_at(payload, path).unwrap_or(&Value::Null)).collect::<Vec<_>>();
        let before = self.open_questions.len();
        match rule.closes {
            ClosedQuestions::Nothing => {}
            ClosedQuestions::Same => {
                let key = key_digest(&key());
                if let Some(found) = self.open_questions.iter().position(|open| open.key == key) {
                    self.open_questions.remove(found);
                }
            }
            // Sources have different delays: a question that was opened after this event stays open.
            ClosedQuestions::Own => self.open_questions.retain(|open| open.owner.is_some() || open.at > now),
            ClosedQuestions::All => self.open_questions.retain(|open| open.at > now),
        }
        if let Some(kind) = rule.opens {
            let key = key_digest(&key());
            self.open_questions.retain(|open| open.key != key);
            self.open_questions.push(OpenQuestion { key, kind, owner, at: now });
            let excess = self.open_questions.len().saturating_sub(MAX_OPEN_QUESTIONS);
            self.open_questions.drain(..excess);
        }
        let touched = rule.opens.is_some()
            || matches!(rule.closes, ClosedQuestions::Own | ClosedQuestions::All)
            || self.open_questions.len() != before;
        touched.then(|| match self.open_questions.last() {
            Some(open) => (Assertion::DialogOpen(open.kind), open.at),
            None => (Assertion::NoDialog, now),
        })
    }
}

/// The text at this path, or an empty text.
pub(crate) fn text_or_empty(payload: &Value, path: &str) -> String {
    text_at(payload, path).unwrap_or_default()
}

/// A short digest of a question key. The payload itself may be large.
fn key_digest(key: &[&Value]) -> String {
    let text = serde_json::to_string(key).unwrap_or_default();
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string()
}

/// The observations of a generic event, for any agent.
pub(crate) fn generic_observations(event: NativeEvent<'_>) -> Vec<NativeObservation> {
    let observe = |assertion: &Assertion| NativeObservation {
        source: event.source,
        assertion: *assertion,
        as_of: event.at,
        tentative: false,
        rule: RuleRef { name: generic::RULE_NAME.into(), version: generic::RULE_VERSION },
        excerpt: event.event_type.to_owned(),
    };
    generic::assertions(event.event_type).iter().map(observe).collect()
}
