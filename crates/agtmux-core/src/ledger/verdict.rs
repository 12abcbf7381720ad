use jiff::Timestamp;

use super::{Ledger, LedgerRecord};
use crate::asked_command::AskedCommand;
use crate::dialog::Dialog;
use crate::evidence::{Assertion, Observation, Source};
use crate::state::{Confidence, ReasonCode, State};

/// The state of a runtime, derived from its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateVerdict<'a> {
    pub state: State,
    pub reason: Option<ReasonCode>,
    pub confidence: Confidence,
    /// The open dialog of a waiting agent.
    pub dialog: Option<&'a Dialog>,
    /// The requests for approval that the agent itself reports.
    pub asked: &'a [AskedCommand],
}

impl StateVerdict<'_> {
    pub fn unknown(reason: ReasonCode) -> Self {
        Self { state: State::Unknown, reason: Some(reason), confidence: Confidence::Low, dialog: None, asked: &[] }
    }
}

/// Whether an observation can decide the state, or why it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationStatus {
    Fresh,
    /// The observation is not conclusive, so it is only a hint.
    Inconclusive,
    /// The TTL of the observation has passed.
    Expired,
    /// A later observation of this other source refutes the observation.
    Contradicted(Source),
    /// A later observation of the same source refutes the observation.
    Replaced,
    /// The observation does not count yet, because agtmux has not read the content of its dialog. This lasts only a
    /// short time.
    Held,
}

/// One observation with its status, as `explain` shows it.
#[derive(Debug, Clone, Copy)]
pub struct RatedObservation<'a> {
    pub observation: &'a Observation,
    pub assertion: Assertion,
    pub recorded_at: Timestamp,
    pub status: ObservationStatus,
}

impl Ledger {
    /// Returns the strongest state among the fresh observations, with the newest dialog of that state. Without a fresh
    /// observation, returns `unknown` with a reason.
    pub fn verdict(&self, now: Timestamp) -> StateVerdict<'_> {
        let mut all_rated: Vec<RatedObservation<'_>> = self.rated_observations(now).collect();
        let is_known = |s: &RatedObservation<'_>| s.status == ObservationStatus::Fresh && s.assertion.state().is_some();
        // Leave out held-back observations if a fresh observation gives a state, or if every observation is held back.
        // Otherwise held-back observations count at once, so that a known state does not become unknown.
        let holds = all_rated.iter().any(is_known) || all_rated.iter().all(|s| s.status == ObservationStatus::Held);
        if holds {
            all_rated.retain(|s| s.status != ObservationStatus::Held);
        }
        let counts = |s: &&RatedObservation<'_>| matches!(s.status, ObservationStatus::Fresh | ObservationStatus::Held);
        let fresh = all_rated.iter().filter(counts);
        let with_state = fresh.filter_map(|s| Some((s.assertion.state()?, s.observation)));
        let Some((state, strongest)) = with_state.clone().min_by_key(|(state, _)| *state) else {
            return StateVerdict::unknown(self.unknown_reason(&all_rated));
        };
        let dialogs = with_state
            .clone()
            .filter(|(of, _)| *of == state && state.needs_action())
            .filter_map(|(_, observation)| Some((observation.as_of, observation.dialog.as_deref()?)));
        let dialog = dialogs.max_by_key(|(as_of, _)| *as_of).map(|(_, dialog)| dialog);
        let reports = with_state.filter(|(of, observation)| *of == state && !observation.asked.is_empty());
        let asked =
            reports.max_by_key(|(_, observation)| observation.as_of).map_or(&[][..], |(_, last)| &last.asked[..]);
        StateVerdict { state, reason: None, confidence: confidence(strongest), dialog, asked }
    }

    /// Whether an observation could change the verdict. If the observation repeats the last one of the same source, the
    /// verdict can change only in two cases: the last observation would expire without the repeat, or another source
    /// has disagreed since.
    pub fn is_new_information(&self, observation: &Observation) -> bool {
        let Some(last) = self.entries.get(&observation.key()).map(|entry| &entry.newest) else { return true };
        let previous = &last.observation;
        let fields =
            |s: &Observation| (s.assertion, s.conclusive, s.tentative, s.inferred_from_absence, s.no_turn_visible);
        let same = (fields(previous), &previous.rule, &previous.dialog, &previous.asked)
            == (fields(observation), &observation.rule, &observation.dialog, &observation.asked)
            && previous.settled >= observation.settled
            && (observation.assertion != Assertion::Completed || previous.excerpt == observation.excerpt);
        let ages = self.expires_at(last).is_some();
        let others = self.entries.values().filter(|entry| entry.newest.observation.source != observation.source);
        let disagrees = |record: &LedgerRecord| {
            let since = previous.as_of <= record.observation.as_of && record.observation.as_of < observation.as_of;
            since
                && (record.assertion().contradicts(observation.assertion)
                    || observation.assertion.contradicts(record.assertion())
                    || outlives_failure(observation.assertion, record.assertion()))
        };
        let disagreed_since =
            |entry: &super::LedgerEntry| entry.conclusive.iter().chain([&entry.newest]).any(disagrees);
        let refuted = |as_of| self.refuted.contradicted_by(observation.source, last.assertion(), as_of);
        !same
            || ages
            || refuted(previous.as_of) != refuted(observation.as_of)
            || others.into_iter().any(disagreed_since)
    }

    /// Returns every recorded observation with its status.
    pub fn rated_observations(&self, now: Timestamp) -> impl Iterator<Item = RatedObservation<'_>> {
        self.entries.values().flat_map(move |entry| {
            let newest = self.rate(&entry.newest, now);
            let previous = entry.conclusive.as_ref().filter(|record| **record != entry.newest);
            // A newer hint does not displace the conclusive observation before it.
            let previous = previous.map(|record| self.rate(record, now));
            [Some(newest), previous].into_iter().flatten()
        })
    }

    /// When the verdict may next change without a new observation, because an observation expires or its hold ends.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let conclusive = self.entries.values().filter_map(|entry| entry.conclusive.as_ref());
        let times = |record| [self.expires_at(record), record.observation.counts_from].into_iter().flatten();
        conclusive.flat_map(times).filter(|at| *at > now).min()
    }

    fn rate<'a>(&self, record: &'a LedgerRecord, now: Timestamp) -> RatedObservation<'a> {
        let status = if !record.observation.conclusive {
            ObservationStatus::Inconclusive
        } else if let Some(source) = self.contradicted_by(record) {
            if source == record.observation.source {
                ObservationStatus::Replaced
            } else {
                ObservationStatus::Contradicted(source)
            }
        } else if self.expires_at(record).is_some_and(|at| at <= now) {
            ObservationStatus::Expired
        } else if record.observation.counts_from.is_some_and(|from| from > now) {
            ObservationStatus::Held
        } else {
            ObservationStatus::Fresh
        };
        RatedObservation {
            observation: &record.observation,
            assertion: record.assertion(),
            recorded_at: record.recorded_at,
            status,
        }
    }

    /// When an observation with a TTL expires. For a screen, a title or a file, the TTL starts when the evidence stops
    /// matching a rule. For all other sources, the TTL starts when the observation arrives.
    fn expires_at(&self, record: &LedgerRecord) -> Option<Timestamp> {
        let ttl = record.observation.ttl?;
        let unrecognized_since = self.unrecognized_since.get(&record.observation.source).copied();
        let from = match record.observation.source {
            Source::Screen | Source::Title | Source::File => unrecognized_since?,
            _ => record.recorded_at,
        };
        from.checked_add(ttl).ok()
    }

    fn unknown_reason(&self, all_rated: &[RatedObservation<'_>]) -> ReasonCode {
        let has_status = |matches: fn(&ObservationStatus) -> bool| all_rated.iter().any(|s| matches(&s.status));
        if all_rated.is_empty() {
            // The ledger has no observation: either the evidence matched no rule, or no source has reported yet.
            if self.unrecognized_since.is_empty() { ReasonCode::NoAdapter } else { ReasonCode::UnsupportedSignal }
        } else if has_status(|a| *a == ObservationStatus::Expired) {
            ReasonCode::StaleSignal
        } else if has_status(|a| *a == ObservationStatus::Inconclusive) {
            ReasonCode::UnsupportedSignal
        } else {
            ReasonCode::StaleSignal
        }
    }

    fn contradicted_by(&self, record: &LedgerRecord) -> Option<Source> {
        let others = self.entries.values().filter_map(|entry| entry.conclusive.as_ref());
        let overruling = others.filter(|other| overrules(other, record)).map(|other| other.observation.source).min();
        overruling.or_else(|| {
            self.refuted.contradicted_by(record.observation.source, record.assertion(), record.observation.as_of)
        })
    }
}

/// Whether the later observation refutes the earlier one.
fn overrules(later: &LedgerRecord, earlier: &LedgerRecord) -> bool {
    let (new, old) = (&later.observation, &earlier.observation);
    if new.as_of <= old.as_of || !later.assertion().contradicts(earlier.assertion()) {
        return false;
    }
    match (new.source, old.source) {
        // A text that is missing on the screen is weaker evidence than the agent's own report.
        (_, other)
            if new.inferred_from_absence
                && other.is_native()
                && matches!(earlier.assertion(), Assertion::Running | Assertion::DialogOpen(_)) =>
        {
            false
        }
        // While output is still arriving, a screen may show an earlier state.
        (Source::Screen, other) if other != Source::Screen => new.settled,
        // Only the screen itself can show that its dialog has closed. Another source may report the end of the turn
        // while the dialog is still open.
        (other, Source::Screen) if other != Source::Screen => later.assertion() != Assertion::NoDialog,
        _ => true,
    }
}

/// Whether a repeated report of an open dialog is new information, because another source has reported a failed turn in
/// the meantime. The open dialog shows that the agent has gone on after the failure.
fn outlives_failure(seen: Assertion, since: Assertion) -> bool {
    matches!(seen, Assertion::DialogOpen(_)) && since == Assertion::Failed
}

fn confidence(observation: &Observation) -> Confidence {
    match observation.source {
        _ if observation.tentative => Confidence::Medium,
        source if source.is_native() => Confidence::High,
        Source::Process => Confidence::High,
        Source::Screen if observation.settled => Confidence::High,
        _ => Confidence::Medium,
    }
}
