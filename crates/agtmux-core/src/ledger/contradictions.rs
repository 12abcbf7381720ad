//! Remembers which observations about a turn were refuted, even after the refuting source reports something else.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Assertion, Claim, Observation, Source};

/// A screen may still show a running turn for this long after the agent reported the end of the turn.
const MAX_SCREEN_LAG: SignedDuration = SignedDuration::from_secs(5);

/// For each source, the times of its last conclusive observations that can refute earlier observations.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnContradictions {
    /// When the source last saw a running turn. This refutes the result of an earlier turn.
    #[serde(rename = "ran")]
    pub last_running: BTreeMap<Source, Timestamp>,
    /// When the source last saw that no turn was running. This refutes an earlier report of a running turn.
    #[serde(rename = "rested")]
    pub last_resting: BTreeMap<Source, Timestamp>,
    /// When the source last saw no trace of a turn. This refutes the result of an earlier turn.
    #[serde(rename = "anew")]
    pub last_cleared: BTreeMap<Source, Timestamp>,
    /// When the source last saw an open dialog. This refutes the failure of an earlier turn: the agent has gone on
    /// since, and waits for an answer.
    #[serde(rename = "asked", skip_serializing_if = "BTreeMap::is_empty")]
    pub last_asked: BTreeMap<Source, Timestamp>,
}

impl TurnContradictions {
    pub(super) fn is_empty(&self) -> bool {
        [&self.last_running, &self.last_resting, &self.last_cleared, &self.last_asked]
            .iter()
            .all(|times| times.is_empty())
    }

    pub(super) fn record(&mut self, observation: &Observation) {
        let Observation { source, assertion, as_of, .. } = *observation;
        let certain = observation.conclusive && (source != Source::Screen || observation.settled);
        if !certain {
            return;
        }
        if let Assertion::DialogOpen(_) = assertion {
            record_latest(&mut self.last_asked, source, as_of);
        }
        if assertion.claim() != Claim::Turn {
            return;
        }
        if observation.no_turn_visible {
            record_latest(&mut self.last_cleared, source, as_of);
        }
        if !observation.inferred_from_absence {
            let is_running = assertion == Assertion::Running;
            let times = if is_running { &mut self.last_running } else { &mut self.last_resting };
            record_latest(times, source, as_of);
        }
    }

    /// Returns the source of a later observation that refutes this one, if there is one. A later dialog of the same
    /// source counts too. A later turn observation of the same source does not count, because it has already replaced
    /// this observation in the ledger.
    pub(super) fn contradicted_by(&self, source: Source, assertion: Assertion, as_of: Timestamp) -> Option<Source> {
        // A process observation is made once and stays valid for the lifetime of the process.
        if source == Source::Process {
            return None;
        }
        let later = |times: &BTreeMap<Source, Timestamp>, lag: fn(Source) -> SignedDuration| {
            let is_later = |other: Source, at: Timestamp| at.checked_sub(lag(other)).is_ok_and(|at| at > as_of);
            times.iter().find(|(other, at)| **other != source && is_later(**other, **at)).map(|(other, _)| *other)
        };
        let no_lag = |_| SignedDuration::ZERO;
        let later_turn = || later(&self.last_running, screen_lag).or_else(|| later(&self.last_cleared, no_lag));
        match assertion {
            Assertion::Running => later(&self.last_resting, no_lag),
            Assertion::Completed => later_turn(),
            Assertion::Failed => later_turn().or_else(|| self.asked_after(as_of)),
            Assertion::Idle | Assertion::DialogOpen(_) | Assertion::NoDialog => None,
        }
    }

    fn asked_after(&self, as_of: Timestamp) -> Option<Source> {
        self.last_asked.iter().find(|(_, at)| **at > as_of).map(|(source, _)| *source)
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        [&mut self.last_running, &mut self.last_resting, &mut self.last_cleared, &mut self.last_asked]
            .into_iter()
            .flat_map(BTreeMap::values_mut)
    }
}

fn record_latest(times: &mut BTreeMap<Source, Timestamp>, source: Source, as_of: Timestamp) {
    let latest = times.entry(source).or_insert(as_of);
    *latest = as_of.max(*latest);
}

fn screen_lag(source: Source) -> SignedDuration {
    if source.is_native() { SignedDuration::ZERO } else { MAX_SCREEN_LAG }
}
