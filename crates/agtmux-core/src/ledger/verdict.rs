use jiff::Timestamp;

use super::{Ledger, LedgerRecord};
use crate::dialog::Dialog;
use crate::evidence::{Assertion, Claim, Observation, Source};
use crate::state::{Confidence, ReasonCode, State};

/// What a runtime's state is, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateVerdict {
    pub state: State,
    pub reason: Option<ReasonCode>,
    pub confidence: Confidence,
    /// The statement that carried it.
    pub decided_by: Option<(Source, Claim)>,
}

/// Why a statement counts or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationStatus {
    Fresh,
    /// A hint only.
    Inconclusive,
    /// Not repeated for too long.
    Expired,
    /// Another source said otherwise, later.
    Contradicted(Source),
    /// Its own source said otherwise, later.
    Replaced,
}

/// One statement as `explain` shows it.
#[derive(Debug, Clone, Copy)]
pub struct RatedObservation<'a> {
    pub observation: &'a Observation,
    pub assertion: Assertion,
    pub recorded_at: Timestamp,
    pub status: ObservationStatus,
}

impl Ledger {
    /// The state by precedence among what is fresh. Without any, unknown and why.
    pub fn verdict(&self, now: Timestamp) -> StateVerdict {
        let standings: Vec<RatedObservation<'_>> = self.rated_observations(now).collect();
        let fresh = standings.iter().filter(|s| s.status == ObservationStatus::Fresh);
        let strongest = fresh.filter_map(|s| Some((s.assertion.state()?, s))).min_by_key(|(state, _)| *state);
        match strongest {
            Some((state, standing)) => StateVerdict {
                state,
                reason: None,
                confidence: confidence(standing.observation),
                decided_by: Some((standing.observation.source, standing.assertion.claim())),
            },
            None => StateVerdict {
                state: State::Unknown,
                reason: Some(self.unknown_reason(&standings)),
                confidence: Confidence::Low,
                decided_by: None,
            },
        }
    }

    /// What is asked in this state, where a source shows it.
    pub fn dialog(&self, state: State, now: Timestamp) -> Option<&Dialog> {
        let asking =
            |s: &RatedObservation<'_>| s.status == ObservationStatus::Fresh && s.assertion.state() == Some(state);
        self.rated_observations(now)
            .filter(asking)
            .filter_map(|s| Some((s.observation.as_of, s.observation.dialog.as_deref()?)))
            .max_by_key(|(as_of, _)| *as_of)
            .map(|(_, dialog)| dialog)
    }

    /// Whether a statement would change anything: it says something else than the last one of its source, or says it
    /// again after others have disagreed.
    pub fn is_new_information(&self, statement: &Observation) -> bool {
        let Some(known) = self.entries.get(&(statement.source, statement.assertion.claim())).map(|heard| &heard.newest)
        else {
            return true;
        };
        let before = &known.observation;
        let words =
            |s: &Observation| (s.assertion, s.conclusive, s.tentative, s.inferred_from_absence, s.no_turn_visible);
        let same = (words(before), &before.rule, &before.dialog)
            == (words(statement), &statement.rule, &statement.dialog)
            && before.settled >= statement.settled
            && (statement.assertion != Assertion::Completed || before.excerpt == statement.excerpt);
        let ages = self.expires_at(known).is_some();
        let others = self.entries.values().filter(|heard| heard.newest.observation.source != statement.source);
        let disagrees = |kept: &LedgerRecord| {
            let since = before.as_of <= kept.observation.as_of && kept.observation.as_of < statement.as_of;
            since
                && (kept.assertion().contradicts(statement.assertion)
                    || statement.assertion.contradicts(kept.assertion()))
        };
        let spoke_since = |heard: &super::LedgerEntry| heard.conclusive.iter().chain([&heard.newest]).any(disagrees);
        let refuted = |as_of| self.refuted.contradicted_by(statement.source, known.assertion(), as_of);
        !same || ages || refuted(before.as_of) != refuted(statement.as_of) || others.into_iter().any(spoke_since)
    }

    /// Every statement that is remembered, with its part in the verdict.
    pub fn rated_observations(&self, now: Timestamp) -> impl Iterator<Item = RatedObservation<'_>> {
        self.entries.values().flat_map(move |heard| {
            let newest = self.rate(&heard.newest, now);
            let before = heard.conclusive.as_ref().filter(|kept| **kept != heard.newest);
            // A hint after a conclusive statement leaves that one standing.
            let before = before.map(|kept| self.rate(kept, now));
            [Some(newest), before].into_iter().flatten()
        })
    }

    /// When a verdict may change without anything new being heard.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let conclusive = self.entries.values().filter_map(|heard| heard.conclusive.as_ref());
        conclusive.filter_map(|kept| self.expires_at(kept)).filter(|at| *at > now).min()
    }

    fn rate<'a>(&self, kept: &'a LedgerRecord, now: Timestamp) -> RatedObservation<'a> {
        let aging = if !kept.observation.conclusive {
            ObservationStatus::Inconclusive
        } else if let Some(source) = self.contradicted_by(kept) {
            if source == kept.observation.source {
                ObservationStatus::Replaced
            } else {
                ObservationStatus::Contradicted(source)
            }
        } else if self.expires_at(kept).is_some_and(|at| at <= now) {
            ObservationStatus::Expired
        } else {
            ObservationStatus::Fresh
        };
        RatedObservation {
            observation: &kept.observation,
            assertion: kept.assertion(),
            recorded_at: kept.recorded_at,
            status: aging,
        }
    }

    /// What is on a screen, in a title or in a file is as true as when it was read until something else stands there. Everything
    /// else ages.
    fn expires_at(&self, kept: &LedgerRecord) -> Option<Timestamp> {
        let ttl = kept.observation.ttl?;
        let silent = self.unrecognized_since.get(&kept.observation.source).copied();
        let from = match kept.observation.source {
            Source::Screen | Source::Title | Source::File => silent?,
            _ => kept.recorded_at,
        };
        from.checked_add(ttl).ok()
    }

    fn unknown_reason(&self, standings: &[RatedObservation<'_>]) -> ReasonCode {
        let any = |wanted: fn(&ObservationStatus) -> bool| standings.iter().any(|s| wanted(&s.status));
        if standings.is_empty() {
            // Looked at, and not understood; or nobody has looked yet.
            if self.unrecognized_since.is_empty() { ReasonCode::NoAdapter } else { ReasonCode::UnsupportedSignal }
        } else if any(|a| *a == ObservationStatus::Expired) {
            ReasonCode::StaleSignal
        } else if any(|a| *a == ObservationStatus::Inconclusive) {
            ReasonCode::UnsupportedSignal
        } else {
            ReasonCode::StaleSignal
        }
    }

    fn contradicted_by(&self, kept: &LedgerRecord) -> Option<Source> {
        let others = self.entries.values().filter_map(|heard| heard.conclusive.as_ref());
        let overruling = others.filter(|other| overrules(other, kept)).map(|other| other.observation.source).min();
        overruling
            .or_else(|| self.refuted.contradicted_by(kept.observation.source, kept.assertion(), kept.observation.as_of))
    }
}

/// Whether the later statement makes the earlier one untrue.
fn overrules(later: &LedgerRecord, earlier: &LedgerRecord) -> bool {
    let (new, old) = (&later.observation, &earlier.observation);
    if new.as_of <= old.as_of || !later.assertion().contradicts(earlier.assertion()) {
        return false;
    }
    match (new.source, old.source) {
        // It would rather have overlooked something.
        (_, other) if new.inferred_from_absence && other.is_native() && earlier.assertion() == Assertion::Running => {
            false
        }
        // While output still flows a screen may show what was, not what is.
        (Source::Screen, other) if other != Source::Screen => new.settled,
        // A dialog that is on screen is open, whatever ended: only the screen can say that it is gone.
        (other, Source::Screen) if other != Source::Screen => later.assertion() != Assertion::NoDialog,
        _ => true,
    }
}

fn confidence(statement: &Observation) -> Confidence {
    match statement.source {
        _ if statement.tentative => Confidence::Medium,
        source if source.is_native() => Confidence::High,
        Source::Process => Confidence::High,
        Source::Screen if statement.settled => Confidence::High,
        _ => Confidence::Medium,
    }
}
