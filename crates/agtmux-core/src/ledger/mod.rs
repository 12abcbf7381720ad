//! From statements of many sources to one state that is never confidently wrong.
//!
//! For each source and claim only the newest statement is kept, and the newest one that may stand for itself; and of
//! those before them, what they have made untrue. What the state is follows from those alone, so the order in which
//! statements arrived does not matter, and neither does a statement that arrives twice.

mod contradictions;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Assertion, Claim, Observation, Source};
use contradictions::TurnContradictions;

pub use verdict::{ObservationStatus, RatedObservation, StateVerdict};

/// What is known of one runtime.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    #[serde(with = "as_list")]
    #[serde(rename = "heard")]
    entries: BTreeMap<(Source, Claim), LedgerEntry>,
    /// Since when a source that is looked at shows nothing that is understood.
    #[serde(default)]
    #[serde(rename = "silent")]
    unrecognized_since: BTreeMap<Source, Timestamp>,
    #[serde(default, skip_serializing_if = "TurnContradictions::is_empty")]
    refuted: TurnContradictions,
}

/// The newest statement of one source about one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerEntry {
    newest: LedgerRecord,
    /// Where the newest may not stand for itself, the last one that might.
    conclusive: Option<LedgerRecord>,
}

/// A statement, and when it reached us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerRecord {
    #[serde(rename = "statement")]
    observation: Observation,
    #[serde(rename = "heard_at")]
    recorded_at: Timestamp,
    /// A completed turn that everybody had time to notice.
    demoted: bool,
}

impl LedgerRecord {
    /// The end of a turn stays on screen for as long as nobody begins another one: it is not a new end each time that
    /// somebody looks.
    fn repeats_demoted(&self, statement: &Observation) -> bool {
        let same = (self.observation.assertion, &self.observation.excerpt) == (statement.assertion, &statement.excerpt);
        self.demoted && statement.source == Source::Screen && same
    }

    fn assertion(&self) -> Assertion {
        if self.demoted { Assertion::Idle } else { self.observation.assertion }
    }
}

impl Ledger {
    /// Takes in a statement. Says whether it was news: an older one than what is known changes nothing.
    pub fn record(&mut self, statement: Observation, now: Timestamp) -> bool {
        let key = (statement.source, statement.assertion.claim());
        self.unrecognized_since.remove(&statement.source);
        self.refuted.record(&statement);
        let demoted = self.entries.get(&key).is_some_and(|heard| heard.newest.repeats_demoted(&statement));
        let kept = LedgerRecord { observation: statement, recorded_at: now, demoted };
        let Some(heard) = self.entries.get_mut(&key) else {
            let conclusive = kept.observation.conclusive.then(|| kept.clone());
            self.entries.insert(key, LedgerEntry { newest: kept, conclusive });
            return true;
        };
        let newer = |than: &LedgerRecord| kept.observation.order.is_newer_than(&than.observation.order);
        let mut news = false;
        if kept.observation.conclusive && heard.conclusive.as_ref().is_none_or(newer) {
            heard.conclusive = Some(kept.clone());
            news = true;
        }
        if newer(&heard.newest) {
            heard.newest = kept;
            news = true;
        }
        news
    }

    /// A source was looked at again and shows nothing that is understood. What it showed before is not believed for much
    /// longer.
    pub fn mark_unrecognized(&mut self, source: Source, at: Timestamp) {
        self.unrecognized_since.entry(source).or_insert(at);
    }

    /// Whether a source was last looked at in vain.
    pub fn is_unrecognized(&self, source: Source) -> bool {
        self.unrecognized_since.contains_key(&source)
    }

    /// A completed turn has been shown for long enough.
    pub fn demote_completed(&mut self) {
        for kept in self.records_mut() {
            kept.demoted |= kept.observation.assertion == Assertion::Completed;
        }
    }
}

/// What is known elsewhere, by another clock.
impl Ledger {
    /// Takes the place of what was known here. What everybody had time to notice here need not be noticed again.
    pub fn replace_with(&mut self, newer: Self) {
        let before = std::mem::replace(self, newer);
        let id = |kept: &LedgerRecord| kept.observation.order.event_id.clone();
        let demoted: Vec<String> = before.records().filter(|kept| kept.demoted).map(id).collect();
        for kept in self.records_mut().filter(|kept| kept.observation.assertion == Assertion::Completed) {
            kept.demoted |= demoted.contains(&kept.observation.order.event_id);
        }
    }

    /// Every time in it by our clock, which is this much ahead of the one that it was told by. Nothing is from the future.
    pub fn shift_clock(&mut self, ahead: SignedDuration, now: Timestamp) {
        let here = |at: &mut Timestamp| *at = at.checked_add(ahead).unwrap_or(now).min(now);
        for kept in self.records_mut() {
            here(&mut kept.recorded_at);
            here(&mut kept.observation.as_of);
            here(&mut kept.observation.order.event_time);
            here(&mut kept.observation.order.ingested_at);
        }
        self.unrecognized_since.values_mut().chain(self.refuted.times_mut()).for_each(here);
    }

    pub fn observations_mut(&mut self) -> impl Iterator<Item = &mut Observation> {
        self.records_mut().map(|kept| &mut kept.observation)
    }

    fn records(&self) -> impl Iterator<Item = &LedgerRecord> {
        self.entries.values().flat_map(|heard| heard.conclusive.iter().chain([&heard.newest]))
    }

    fn records_mut(&mut self) -> impl Iterator<Item = &mut LedgerRecord> {
        self.entries.values_mut().flat_map(|heard| heard.conclusive.iter_mut().chain([&mut heard.newest]))
    }
}

/// JSON has no keys of two parts; each entry tells its own key anyway.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Claim, LedgerEntry, Source};

    pub(super) fn serialize<S: Serializer>(
        heard: &BTreeMap<(Source, Claim), LedgerEntry>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        heard.values().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<(Source, Claim), LedgerEntry>, D::Error> {
        let list = Vec::<LedgerEntry>::deserialize(from)?;
        let keyed = list.into_iter().map(|heard| {
            let statement = &heard.newest.observation;
            ((statement.source, statement.assertion.claim()), heard)
        });
        Ok(keyed.collect())
    }
}
