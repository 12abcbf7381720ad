//! Turns an agent's own events into observations. Keeps a memory of earlier events: a single event may not say which of
//! several questions was answered, or whether more prompts are queued.

mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use agtmux_core::asked_command::AskedCommand;
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use rule::{EventRule, NativeRules, PayloadCondition, text_at, value_at};

use crate::generic;
use crate::known_agent::KnownAgent;
use crate::manifest::Manifest;
use rule::ClosedQuestions;

/// The maximum number of open questions per runtime. If there are more, the oldest ones are dropped.
const MAX_OPEN_QUESTIONS: usize = 64;
/// The longest time that an observation waits for another source to confirm it. This is also the longest time that an
/// agent lets its hooks run.
const CONFIRMATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// The adapter's memory of one runtime between events.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterMemory {
    /// The agent's own session id.
    pub session: Option<String>,
    /// Whether the session id comes from the agent's status file. A session id from one of the agent's events replaces
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    session_from_file: bool,
    #[serde(alias = "open")]
    open_questions: Vec<OpenQuestion>,
    /// The number of prompts whose turns have not ended.
    #[serde(alias = "prompts")]
    pending_prompts: u32,
    /// How the last turn ended. While a turn runs, this is how it will end, if a hook has already announced that.
    /// `None` if no hook has reported an end.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "ended")]
    turn_end: Option<Assertion>,
    /// Observations to report later. An observation is dropped if its source reports something else about the turn
    /// before the observation is due.
    held: Vec<HeldObservation>,
    /// The sources that last reported a running turn.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", alias = "under_way")]
    running_sources: BTreeSet<Source>,
    /// The time of the newest log record that was read. Older records are ignored, because they have been read before.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "logged")]
    log_read_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenQuestion {
    key: String,
    kind: DialogKind,
    owner: Option<String>,
    /// When the agent asked the question. This time stays the same when another question closes.
    at: Timestamp,
    /// The command that the agent asks to run. Set only for requests for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<AskedCommand>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeldObservation {
    due: Timestamp,
    #[serde(alias = "said")]
    observation: Observation,
    /// Release the observation as soon as this source no longer reports a running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<Source>,
}

/// Evidence from the agent itself, or the passing of time.
#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    Event(NativeEvent<'a>),
    /// An entry of the agent's log. The same entry may be read more than once.
    LogEntry(NativeEvent<'a>),
    TimePassed,
}

#[derive(Debug, Clone, Copy)]
pub struct NativeEvent<'a> {
    pub source: Source,
    pub event_type: &'a str,
    pub payload: &'a Value,
    pub at: Timestamp,
}

impl NativeEvent<'_> {
    fn observation(&self, assertion: Assertion, rule: RuleRef) -> Observation {
        let excerpt = self.event_type.to_owned();
        Observation { excerpt, ..Observation::new(self.source, assertion, self.at, rule) }
    }
}

/// Turns evidence into observations by the rules of the agent's manifest. Without a manifest, every event is read as a
/// generic event. Also returns the time at which the next held observation is due.
pub fn reduce(
    agent: Option<&KnownAgent>,
    memory: &mut AdapterMemory,
    evidence: Evidence<'_>,
    now: Timestamp,
) -> (Vec<Observation>, Option<Timestamp>) {
    let observations = match evidence {
        Evidence::TimePassed => memory.take_due(now),
        // A record that was written before the clock was set back may have a time in the future. `min` keeps this time
        // from hiding the records after it.
        Evidence::LogEntry(entry) if memory.is_known_log_entry(entry.at.min(now)) => Vec::new(),
        Evidence::Event(event) | Evidence::LogEntry(event) => {
            let event = NativeEvent { at: event.at.min(now), ..event };
            agent.map_or_else(|| generic_observations(event), |agent| agent.manifest.reduce(memory, event, now))
        }
    };
    (observations, memory.next_due())
}

impl AdapterMemory {
    /// Whether a newer log record has already been read, so that this record is not new. Also remembers the time of
    /// this record if it is the newest one.
    fn is_known_log_entry(&mut self, at: Timestamp) -> bool {
        let known = self.log_read_until.is_some_and(|logged| at < logged);
        self.log_read_until = self.log_read_until.max(Some(at));
        known
    }

    /// The next time at which a held observation is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.held.iter().map(|held| held.due).min()
    }

    /// Whether the end of a turn is not reported yet, because the agent may start the next turn at once.
    pub fn holds_turn_end(&self) -> bool {
        let is_turn_end =
            |held: &HeldObservation| held.confirmed_by.is_none() && held.observation.assertion == Assertion::Completed;
        self.held.iter().any(is_turn_end)
    }

    /// Moves all times by `by`, because the clock of this machine was set. No moved time is later than `now`, except
    /// the times at which held observations are due.
    pub fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) {
        let moved = |at: Timestamp| at.checked_add(by).unwrap_or(now);
        let shift = |at: &mut Timestamp| *at = moved(*at).min(now);
        self.open_questions.iter_mut().map(|open| &mut open.at).chain(&mut self.log_read_until).for_each(shift);
        for held in &mut self.held {
            held.due = moved(held.due);
            held.observation.times_mut().for_each(shift);
        }
    }

    /// Delays the release of held observations by `by`, because this machine slept or the daemon was stopped for that
    /// long. The agent could not report anything during that time.
    pub fn skip_time(&mut self, by: SignedDuration) {
        self.held.iter_mut().for_each(|held| held.due = held.due.checked_add(by).unwrap_or(held.due));
    }

    /// Removes and returns the held observations that are due.
    fn take_due(&mut self, now: Timestamp) -> Vec<Observation> {
        let due: Vec<HeldObservation> = self.held.extract_if(.., |held| held.due <= now).collect();
        if due.iter().any(|held| held.observation.source == Source::Hook) {
            self.pending_prompts = 0;
        }
        due.into_iter().map(|held| held.observation).collect()
    }
}

impl Manifest {
    fn reduce(&self, memory: &mut AdapterMemory, event: NativeEvent<'_>, now: Timestamp) -> Vec<Observation> {
        // A status file describes one process, so a status event never comes from another agent.
        let status_event = self.status_file.as_ref().map(|file| file.event.as_str());
        let is_status = event.source == Source::File && status_event == Some(event.event_type);
        let session = self.native.session.as_ref().and_then(|paths| paths.text(event.payload));
        let is_certain = !memory.session_from_file;
        let known = memory.session.as_deref().filter(|_| is_certain || is_status).or(session.as_deref());
        let rule = self.event.iter().find(|rule| rule.matches(event.source, event.event_type, event.payload, known));
        let another = self.native.one_session && !is_status && session.is_some() && session.as_deref() != known;
        if another && !rule.is_some_and(|rule| rule.changes_session) {
            return Vec::new();
        }
        if rule.is_some_and(|rule| rule.ends_session) {
            memory.session = None;
        } else if session.is_some() && !(is_status && memory.session.is_some() && is_certain) {
            (memory.session, memory.session_from_file) = (session, is_status);
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
    ) -> Vec<Observation> {
        let since = rule.since_ms.as_deref().and_then(|path| value_at(event.payload, path)?.as_i64());
        let since = since.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let name = format!("{}.{}", self.name, event.event_type);
        let observe = |assertion| Observation {
            as_of: since.unwrap_or(event.at),
            tentative: rule.tentative,
            ..event.observation(assertion, RuleRef::new(name.clone(), self.version))
        };
        let mut all = Vec::new();
        if let Some(turn) = rule.turn {
            let assertion = memory.turn_end.filter(|_| rule.as_ended).unwrap_or(turn.assertion());
            all.extend(memory.apply_turn(rule, observe(assertion), now));
        }
        if let Some(ends) = rule.ends {
            memory.turn_end = Some(ends.assertion());
        }
        all.extend(memory.update_questions(rule, event, owner).map(|(assertion, at)| Observation {
            as_of: at,
            asked: memory.asked(assertion),
            ..observe(assertion)
        }));
        all.extend(rule.asks.map(|asks| observe(asks.assertion())));
        all
    }
}

impl AdapterMemory {
    /// Records an observation about the turn and returns the observations to report now.
    fn apply_turn(&mut self, rule: &EventRule, observation: Observation, now: Timestamp) -> Vec<Observation> {
        let (source, assertion) = (observation.source, observation.assertion);
        self.held.retain(|held| held.observation.source != source);
        let queued = self.pending_prompts > 1;
        // Do not wait for a confirmation while prompts are queued. In the short time between two queued turns, the
        // confirming source also reports that no turn runs.
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

    /// Handles a report of the source `by` about the turn. If the report says that no turn runs, releases the
    /// observations that wait for this confirmation. A released observation gets the time of the report if that time is
    /// later.
    fn release_confirmed(&mut self, by: Source, assertion: Assertion, as_of: Timestamp) -> Vec<Observation> {
        if assertion == Assertion::Running {
            self.running_sources.insert(by);
            return Vec::new();
        }
        self.running_sources.remove(&by);
        let confirmed = self.held.extract_if(.., |held| held.confirmed_by == Some(by)).map(|held| held.observation);
        confirmed.map(|held| Observation { as_of: held.as_of.max(as_of), ..held }).collect()
    }

    /// Opens and closes questions. Returns None if the event does not concern questions. Otherwise returns the
    /// assertion that a dialog is open for the newest open question, or that no dialog is open.
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
            let asked = (kind == DialogKind::Approval).then(|| rule.asked(payload));
            self.open_questions.push(OpenQuestion { key, kind, owner, at: now, asked });
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

/// The maximum number of open approval requests that are reported. If more are open, only the newest ones are reported.
const MAX_ASKED: usize = 8;

impl AdapterMemory {
    /// The open requests for approval, the newest last.
    fn asked(&self, assertion: Assertion) -> Vec<AskedCommand> {
        if assertion != Assertion::DialogOpen(DialogKind::Approval) {
            return Vec::new();
        }
        let open = self.open_questions.iter().filter_map(|open| open.asked.as_ref());
        let skipped = open.clone().count().saturating_sub(MAX_ASKED);
        open.skip(skipped).cloned().collect()
    }
}

/// A short digest of the values that identify a question. The values themselves may be large.
fn key_digest(key: &[&Value]) -> String {
    let text = serde_json::to_string(key).unwrap_or_default();
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string()
}

/// Converts an event whose type means the same for every agent, such as `completed`, into observations.
fn generic_observations(event: NativeEvent<'_>) -> Vec<Observation> {
    let rule = || RuleRef::new(generic::RULE_NAME, generic::RULE_VERSION);
    generic::assertions(event.event_type).iter().map(|assertion| event.observation(*assertion, rule())).collect()
}
