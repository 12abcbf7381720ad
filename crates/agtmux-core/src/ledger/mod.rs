//! The ledger of one runtime: derives one state from the observations of many sources.
//!
//! Per source and claim, the ledger keeps the newest observation and the newest conclusive one. Of older observations,
//! it keeps only the times in [`TurnContradictions`]. The state depends only on this data, so neither the order of
//! arrival nor duplicates matter.

mod contradictions;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Assertion, Claim, Observation, Source};
pub use contradictions::TurnContradictions;
pub use verdict::{ObservationStatus, RatedObservation, StateVerdict};

/// The longest time for which the ledger holds back an observation from another host.
const MAX_REMOTE_HOLD: SignedDuration = SignedDuration::from_secs(1);

/// All observations that count for one runtime.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    #[serde(with = "as_list", rename = "heard")]
    entries: BTreeMap<(Source, Claim), LedgerEntry>,
    /// The sources whose latest evidence matched no rule, each with the time since which no rule has matched.
    #[serde(default, rename = "silent")]
    unrecognized_since: BTreeMap<Source, Timestamp>,
    #[serde(default, skip_serializing_if = "TurnContradictions::is_empty")]
    refuted: TurnContradictions,
}

/// The newest observations of one source about one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerEntry {
    newest: LedgerRecord,
    /// The newest conclusive observation.
    conclusive: Option<LedgerRecord>,
}

/// An observation and its arrival time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRecord {
    #[serde(rename = "statement")]
    pub observation: Observation,
    #[serde(rename = "heard_at")]
    pub recorded_at: Timestamp,
    /// Set when the turn has been shown as completed for long enough. The record then asserts `idle`.
    pub demoted: bool,
}

impl LedgerRecord {
    /// Whether `observation` shows the same completed turn as this record, which was already demoted to idle. A screen
    /// shows the end of a turn until the next turn starts, so the same screen does not mean that another turn ended.
    fn repeats_demoted(&self, observation: &Observation) -> bool {
        let same =
            (self.observation.assertion, &self.observation.excerpt) == (observation.assertion, &observation.excerpt);
        self.demoted && observation.source == Source::Screen && same
    }

    fn assertion(&self) -> Assertion {
        if self.demoted { Assertion::Idle } else { self.observation.assertion }
    }
}

impl Ledger {
    /// Records an observation. Returns false if the ledger already contains newer observations of the same source and
    /// claim.
    pub fn record(&mut self, observation: Observation, now: Timestamp) -> bool {
        self.unrecognized_since.remove(&observation.source);
        self.refuted.record(&observation);
        let demoted =
            self.entries.get(&observation.key()).is_some_and(|entry| entry.newest.repeats_demoted(&observation));
        self.insert(LedgerRecord { observation, recorded_at: now, demoted })
    }

    fn insert(&mut self, record: LedgerRecord) -> bool {
        let key = record.observation.key();
        let Some(entry) = self.entries.get_mut(&key) else {
            let conclusive = record.observation.conclusive.then(|| record.clone());
            self.entries.insert(key, LedgerEntry { newest: record, conclusive });
            return true;
        };
        let newer = |than: &LedgerRecord| record.observation.order.is_newer_than(&than.observation.order);
        let mut changed = false;
        if record.observation.conclusive && entry.conclusive.as_ref().is_none_or(newer) {
            entry.conclusive = Some(record.clone());
            changed = true;
        }
        if newer(&entry.newest) {
            entry.newest = record;
            changed = true;
        }
        changed
    }

    /// Records that the evidence of a source has matched no rule since `at`. For a screen, a title or a file, the TTL
    /// of earlier observations starts at this time.
    pub fn mark_unrecognized(&mut self, source: Source, at: Timestamp) {
        self.unrecognized_since.entry(source).or_insert(at);
    }

    /// Whether the latest evidence of a source matched no rule.
    pub fn is_unrecognized(&self, source: Source) -> bool {
        self.unrecognized_since.contains_key(&source)
    }

    /// Releases every observation that is held back, so that it counts from now on.
    pub fn end_holds(&mut self) {
        self.records_mut().for_each(|record| record.observation.counts_from = None);
    }

    /// When the held-back observation of this source begins to count. `None` if no observation of this source is held
    /// back.
    pub fn held_until(&self, source: Source, now: Timestamp) -> Option<Timestamp> {
        let records = self.records().filter(|record| record.observation.source == source);
        records.filter_map(|record| record.observation.counts_from).find(|from| *from > now)
    }

    /// Marks every observation of a completed turn as demoted, so that it asserts `idle` from now on.
    pub fn demote_completed(&mut self) {
        for record in self.records_mut() {
            record.demoted |= record.observation.assertion == Assertion::Completed;
        }
    }
}

/// Functions for the exchange of ledgers between hosts.
impl Ledger {
    /// Restores a ledger from its parts. The records may be in any order.
    pub fn from_parts(
        records: impl IntoIterator<Item = LedgerRecord>,
        unrecognized_since: BTreeMap<Source, Timestamp>,
        refuted: TurnContradictions,
    ) -> Self {
        let mut ledger = Self { unrecognized_since, refuted, ..Self::default() };
        for record in records {
            ledger.insert(record);
        }
        ledger
    }

    /// For each source and claim, the newest conclusive observation, if any, and the newest observation of all. Both
    /// may be the same observation.
    pub fn records(&self) -> impl Iterator<Item = &LedgerRecord> {
        self.entries.values().flat_map(|entry| entry.conclusive.iter().chain([&entry.newest]))
    }

    pub fn unrecognized_since(&self) -> &BTreeMap<Source, Timestamp> {
        &self.unrecognized_since
    }

    pub fn contradictions(&self) -> &TurnContradictions {
        &self.refuted
    }

    /// Replaces this ledger with `newer`. A completed turn that was already demoted in the old ledger stays demoted.
    pub fn replace_with(&mut self, newer: Self) {
        let before = std::mem::replace(self, newer);
        let id = |record: &LedgerRecord| record.observation.order.event_id.clone();
        let demoted: Vec<String> = before.records().filter(|record| record.demoted).map(id).collect();
        for record in self.records_mut().filter(|record| record.observation.assertion == Assertion::Completed) {
            record.demoted |= demoted.contains(&record.observation.order.event_id);
        }
    }

    /// Converts all times to the current clock of this machine. The times come from another clock: the clock of
    /// another host, or this machine's clock before it was set. `ahead` is how far the current clock is ahead of the
    /// other clock. Except for `counts_from`, no converted time is later than `now`.
    pub fn shift_clock(&mut self, ahead: SignedDuration, now: Timestamp) {
        let shift = |at: &mut Timestamp| *at = at.checked_add(ahead).unwrap_or(now).min(now);
        for record in self.records_mut() {
            shift(&mut record.recorded_at);
            record.observation.times_mut().for_each(shift);
            // This time may be in the future, but a remote host must not hold a state back for long.
            let latest = now.checked_add(MAX_REMOTE_HOLD).unwrap_or(now);
            let counts_from = record.observation.counts_from.and_then(|from| from.checked_add(ahead).ok());
            record.observation.counts_from = counts_from.map(|from| from.min(latest));
        }
        self.unrecognized_since.values_mut().chain(self.refuted.times_mut()).for_each(shift);
    }

    /// Extends every TTL by the skipped time `by`, because no source could repeat its observation during this time.
    pub(crate) fn skip_time(&mut self, by: SignedDuration, now: Timestamp) {
        let skip = |at: &mut Timestamp| *at = at.checked_add(by).unwrap_or(now).min(now);
        self.records_mut().for_each(|record| skip(&mut record.recorded_at));
        self.unrecognized_since.values_mut().for_each(skip);
    }

    fn records_mut(&mut self) -> impl Iterator<Item = &mut LedgerRecord> {
        self.entries.values_mut().flat_map(|entry| entry.conclusive.iter_mut().chain([&mut entry.newest]))
    }
}

/// Serializes the map as a list: JSON has no tuple keys, and each entry contains its own key.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Claim, LedgerEntry, Source};

    pub(super) fn serialize<S: Serializer>(
        entries: &BTreeMap<(Source, Claim), LedgerEntry>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        entries.values().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<(Source, Claim), LedgerEntry>, D::Error> {
        let list = Vec::<LedgerEntry>::deserialize(from)?;
        Ok(list.into_iter().map(|entry| (entry.newest.observation.key(), entry)).collect())
    }
}
