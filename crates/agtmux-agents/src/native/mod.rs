//! What an agent says of itself: events in, statements out. It takes a memory, because one event alone is often not
//! enough: which of several questions was answered, whether more prompts are queued.

mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use agtmux_core::evidence::{DialogKind, Rule, Source, Stand};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use rule::{EventRule, NativeRules};

use crate::generic;
pub(crate) use rule::at;
use rule::{Closes, text_at};

/// More questions than anybody has open at a time.
const MOST_OPEN: usize = 64;
/// What nobody confirms is said nevertheless: an agent gives others no more time than this to decide.
const UNCONFIRMED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// What is remembered of one runtime between its events.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The agent's own name for its session.
    pub session: Option<String>,
    open: Vec<Open>,
    /// Prompts whose turns have not ended.
    prompts: u32,
    /// How the last turn ended, or will, if a hook has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Stand>,
    /// Said when its time comes, unless its source says something else first.
    held: Vec<Held>,
    /// Who last said that a turn is under way.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    under_way: BTreeSet<Source>,
    /// How far its log has been read: what is older is known, however often it is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logged: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    key: String,
    kind: DialogKind,
    owner: Option<String>,
    /// Since when it is open: that it is still open when another one closes is nothing new.
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    due: Timestamp,
    said: Told,
    /// Said as soon as this source no longer says that the turn is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<Source>,
}

/// One thing that an agent told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub source: Source,
    pub stand: Stand,
    pub as_of: Timestamp,
    /// Most likely so, but other things look the same.
    pub tentative: bool,
    pub rule: Rule,
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
pub(crate) struct Reader<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: u32,
    pub(crate) native: &'a NativeRules,
    pub(crate) events: &'a [EventRule],
}

impl Memory {
    /// Takes note of a record of the agent's log. Says whether it is older than one that was noted before.
    pub fn has_logged(&mut self, at: Timestamp) -> bool {
        let known = self.logged.is_some_and(|logged| at < logged);
        self.logged = self.logged.max(Some(at));
        known
    }

    /// When [`recall`](Self::recall) has something.
    pub fn due(&self) -> Option<Timestamp> {
        self.held.iter().map(|held| held.due).min()
    }

    /// What was held back until now, one after the other.
    pub fn recall(&mut self, now: Timestamp) -> Option<Told> {
        let due = self.held.iter().position(|held| held.due <= now)?;
        let told = self.held.remove(due).said;
        if told.source == Source::Hook {
            self.prompts = 0;
        }
        Some(told)
    }
}

impl Reader<'_> {
    pub(crate) fn reduce(&self, memory: &mut Memory, event: NativeEvent<'_>, now: Timestamp) -> Vec<Told> {
        let session = self.native.session.text(event.payload);
        let known = memory.session.as_deref().or(session.as_deref());
        let rule = self.events.iter().find(|rule| rule.fits(event.source, event.event_type, event.payload, known));
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
            None => generic(event),
        }
    }

    fn apply(
        &self,
        rule: &EventRule,
        memory: &mut Memory,
        event: NativeEvent<'_>,
        owner: Option<String>,
        now: Timestamp,
    ) -> Vec<Told> {
        let since = rule.since_ms.as_deref().and_then(|path| at(event.payload, path)?.as_i64());
        let since = since.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let told = |stand| Told {
            source: event.source,
            stand,
            as_of: since.unwrap_or(event.at),
            tentative: rule.tentative,
            rule: Rule { name: format!("{}.{}", self.name, event.event_type), version: self.version },
            excerpt: event.event_type.to_owned(),
        };
        let mut all = Vec::new();
        if let Some(turn) = rule.turn {
            let stand = memory.ended.filter(|_| rule.as_ended).unwrap_or(turn.stand());
            all.extend(memory.turn(rule, told(stand), now));
        }
        if let Some(ends) = rule.ends {
            memory.ended = Some(ends.stand());
        }
        all.extend(memory.questions(rule, event, owner).map(|(stand, at)| Told { as_of: at, ..told(stand) }));
        all.extend(rule.asks.map(|asks| told(asks.stand())));
        all
    }
}

impl Memory {
    /// What is to be said now that this is known of the turn.
    fn turn(&mut self, rule: &EventRule, said: Told, now: Timestamp) -> Vec<Told> {
        let (source, stand) = (said.source, said.stand);
        self.held.retain(|held| held.said.source != source);
        let queued = self.prompts > 1;
        // Between two queued turns it rests as well.
        let confirmed_by = rule.confirmed_by.filter(|by| !queued && self.under_way.contains(by));
        self.prompts = match stand {
            Stand::Running => self.prompts + u32::from(rule.prompt),
            _ if source == Source::Hook => self.prompts.saturating_sub(1),
            _ => self.prompts,
        };
        if source == Source::Hook {
            self.ended = Some(stand).filter(|stand| *stand != Stand::Running);
        }
        let mut all = self.confirmed(source, stand, said.as_of);
        let hold = if confirmed_by.is_some() { UNCONFIRMED_FOR } else { rule.hold(queued) };
        if hold.is_zero() {
            all.push(said);
        } else {
            self.held.push(Held { due: now.checked_add(hold).unwrap_or(now), said, confirmed_by });
        }
        all
    }

    /// What was held back until this source said that no turn is under way: true from then on.
    fn confirmed(&mut self, by: Source, stand: Stand, as_of: Timestamp) -> Vec<Told> {
        if stand == Stand::Running {
            self.under_way.insert(by);
            return Vec::new();
        }
        self.under_way.remove(&by);
        let (confirmed, held) = self.held.drain(..).partition(|held| held.confirmed_by == Some(by));
        self.held = held;
        let told = |Held { said, .. }: Held| Told { as_of: said.as_of.max(as_of), ..said };
        Vec::into_iter(confirmed).map(told).collect()
    }

    /// What is open after this event, if the event has anything to do with it.
    fn questions(
        &mut self,
        rule: &EventRule,
        NativeEvent { payload, at: now, .. }: NativeEvent<'_>,
        owner: Option<String>,
    ) -> Option<(Stand, Timestamp)> {
        let key = || rule.key.iter().map(|path| at(payload, path).unwrap_or(&Value::Null)).collect::<Vec<_>>();
        let before = self.open.len();
        match rule.closes {
            Closes::Nothing => {}
            Closes::Same => {
                let key = written(&key());
                if let Some(found) = self.open.iter().position(|open| open.key == key) {
                    self.open.remove(found);
                }
            }
            // Sources are not equally quick: what was asked after this happened is not answered by it.
            Closes::Own => self.open.retain(|open| open.owner.is_some() || open.at > now),
            Closes::All => self.open.retain(|open| open.at > now),
        }
        if let Some(kind) = rule.opens {
            let key = written(&key());
            self.open.retain(|open| open.key != key);
            self.open.push(Open { key, kind, owner, at: now });
            let excess = self.open.len().saturating_sub(MOST_OPEN);
            self.open.drain(..excess);
        }
        let touched =
            rule.opens.is_some() || matches!(rule.closes, Closes::Own | Closes::All) || self.open.len() != before;
        touched.then(|| match self.open.last() {
            Some(open) => (Stand::Asks(open.kind), open.at),
            None => (Stand::AsksNothing, now),
        })
    }
}

/// The text there, or none.
pub(crate) fn text_of(payload: &Value, path: &str) -> String {
    text_at(payload, path).unwrap_or_default()
}

/// Payloads may be large; what is kept of them is not.
fn written(key: &[&Value]) -> String {
    let text = serde_json::to_string(key).unwrap_or_default();
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string()
}

/// What anybody may say of an agent.
pub(crate) fn generic(event: NativeEvent<'_>) -> Vec<Told> {
    let told = |stand: &Stand| Told {
        source: event.source,
        stand: *stand,
        as_of: event.at,
        tentative: false,
        rule: Rule { name: generic::RULE.into(), version: generic::RULE_VERSION },
        excerpt: event.event_type.to_owned(),
    };
    generic::stands(event.event_type).iter().map(told).collect()
}
