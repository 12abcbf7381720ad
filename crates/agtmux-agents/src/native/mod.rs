//! What an agent says of itself: events in, statements out. It takes a memory, because one event alone is often not
//! enough: which of several questions was answered, whether more prompts are queued.

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

/// More questions than anybody has open at a time.
const MAX_OPEN_QUESTIONS: usize = 64;
/// What nobody confirms is said nevertheless: an agent gives others no more time than this to decide.
const CONFIRMATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// What is remembered of one runtime between its events.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterMemory {
    /// The agent's own name for its session.
    pub session: Option<String>,
    #[serde(alias = "open")]
    open_questions: Vec<OpenQuestion>,
    /// Prompts whose turns have not ended.
    #[serde(alias = "prompts")]
    pending_prompts: u32,
    /// How the last turn ended, or will, if a hook has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "ended")]
    turn_end: Option<Assertion>,
    /// Said when its time comes, unless its source says something else first.
    held: Vec<HeldObservation>,
    /// Who last said that a turn is under way.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[serde(alias = "under_way")]
    running_sources: BTreeSet<Source>,
    /// How far its log has been read: what is older is known, however often it is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "logged")]
    log_read_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenQuestion {
    key: String,
    kind: DialogKind,
    owner: Option<String>,
    /// Since when it is open: that it is still open when another one closes is nothing new.
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeldObservation {
    due: Timestamp,
    #[serde(alias = "said")]
    observation: NativeObservation,
    /// Said as soon as this source no longer says that the turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<Source>,
}

/// One thing that an agent told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeObservation {
    pub source: Source,
    #[serde(alias = "stand")]
    pub assertion: Assertion,
    pub as_of: Timestamp,
    /// Most likely so, but other things look the same.
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

/// The rules of one agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventReducer<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: u32,
    pub(crate) native: &'a NativeRules,
    pub(crate) events: &'a [EventRule],
}

impl AdapterMemory {
    /// Takes note of a record of the agent's log. Says whether it is older than one that was noted before.
    pub fn record_log_time(&mut self, at: Timestamp) -> bool {
        let known = self.log_read_until.is_some_and(|logged| at < logged);
        self.log_read_until = self.log_read_until.max(Some(at));
        known
    }

    /// When [`recall`](Self::recall) has something.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.held.iter().map(|held| held.due).min()
    }

    /// What was held back until now, one after the other.
    pub fn take_due(&mut self, now: Timestamp) -> Option<NativeObservation> {
        let due = self.held.iter().position(|held| held.due <= now)?;
        let told = self.held.remove(due).observation;
        if told.source == Source::Hook {
            self.pending_prompts = 0;
        }
        Some(told)
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
            // What is no event of this agent may be a word of those who wrap it.
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
        let told = |stand| NativeObservation {
            source: event.source,
            assertion: stand,
            as_of: since.unwrap_or(event.at),
            tentative: rule.tentative,
            rule: RuleRef { name: format!("{}.{}", self.name, event.event_type), version: self.version },
            excerpt: event.event_type.to_owned(),
        };
        let mut all = Vec::new();
        if let Some(turn) = rule.turn {
            let stand = memory.turn_end.filter(|_| rule.as_ended).unwrap_or(turn.assertion());
            all.extend(memory.apply_turn(rule, told(stand), now));
        }
        if let Some(ends) = rule.ends {
            memory.turn_end = Some(ends.assertion());
        }
        all.extend(
            memory
                .update_questions(rule, event, owner)
                .map(|(stand, at)| NativeObservation { as_of: at, ..told(stand) }),
        );
        all.extend(rule.asks.map(|asks| told(asks.assertion())));
        all
    }
}

impl AdapterMemory {
    /// What is to be said now that this is known of the turn.
    fn apply_turn(&mut self, rule: &EventRule, said: NativeObservation, now: Timestamp) -> Vec<NativeObservation> {
        let (source, stand) = (said.source, said.assertion);
        self.held.retain(|held| held.observation.source != source);
        let queued = self.pending_prompts > 1;
        // Between two queued turns it rests as well.
        let confirmed_by = rule.confirmed_by.filter(|by| !queued && self.running_sources.contains(by));
        self.pending_prompts = match stand {
            Assertion::Running => self.pending_prompts + u32::from(rule.prompt),
            _ if source == Source::Hook => self.pending_prompts.saturating_sub(1),
            _ => self.pending_prompts,
        };
        if source == Source::Hook {
            self.turn_end = Some(stand).filter(|stand| *stand != Assertion::Running);
        }
        let mut all = self.release_confirmed(source, stand, said.as_of);
        let hold = if confirmed_by.is_some() { CONFIRMATION_TIMEOUT } else { rule.hold_time(queued) };
        if hold.is_zero() {
            all.push(said);
        } else {
            self.held.push(HeldObservation {
                due: now.checked_add(hold).unwrap_or(now),
                observation: said,
                confirmed_by,
            });
        }
        all
    }

    /// What was held back until this source said that no turn is under way: true from then on.
    fn release_confirmed(&mut self, by: Source, stand: Assertion, as_of: Timestamp) -> Vec<NativeObservation> {
        if stand == Assertion::Running {
            self.running_sources.insert(by);
            return Vec::new();
        }
        self.running_sources.remove(&by);
        let (confirmed, held) = self.held.drain(..).partition(|held| held.confirmed_by == Some(by));
        self.held = held;
        let told = |HeldObservation { observation: said, .. }: HeldObservation| NativeObservation {
            as_of: said.as_of.max(as_of),
            ..said
        };
        Vec::into_iter(confirmed).map(told).collect()
    }

    /// What is open after this event, if the event has anything to do with it.
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
            // Sources are not equally quick: what was asked after this happened is not answered by it.
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

/// The text there, or none.
pub(crate) fn text_or_empty(payload: &Value, path: &str) -> String {
    text_at(payload, path).unwrap_or_default()
}

/// Payloads may be large; what is kept of them is not.
fn key_digest(key: &[&Value]) -> String {
    let text = serde_json::to_string(key).unwrap_or_default();
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string()
}

/// What anybody may say of an agent.
pub(crate) fn generic_observations(event: NativeEvent<'_>) -> Vec<NativeObservation> {
    let told = |stand: &Assertion| NativeObservation {
        source: event.source,
        assertion: *stand,
        as_of: event.at,
        tentative: false,
        rule: RuleRef { name: generic::RULE_NAME.into(), version: generic::RULE_VERSION },
        excerpt: event.event_type.to_owned(),
    };
    generic::assertions(event.event_type).iter().map(told).collect()
}
