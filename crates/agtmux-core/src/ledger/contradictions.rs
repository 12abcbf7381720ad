//! What can no longer be true of the last turn, whatever those who made it untrue say by now.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Assertion, Claim, Observation, Source};

/// What is drawn may show a turn for so long after the agent has said that it is over.
const MAX_SCREEN_LAG: SignedDuration = SignedDuration::from_secs(5);

/// By source, when it last said so for certain.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnContradictions {
    /// A turn was under way: how one before it ended is history.
    #[serde(default)]
    #[serde(rename = "ran")]
    last_running: BTreeMap<Source, Timestamp>,
    /// None was: one that began before it is over.
    #[serde(default)]
    #[serde(rename = "rested")]
    last_resting: BTreeMap<Source, Timestamp>,
    /// Nothing was left of any turn: how one before it ended is history as well.
    #[serde(default)]
    #[serde(rename = "anew")]
    last_cleared: BTreeMap<Source, Timestamp>,
}

impl TurnContradictions {
    pub(super) fn is_empty(&self) -> bool {
        [&self.last_running, &self.last_resting, &self.last_cleared].iter().all(|noted| noted.is_empty())
    }

    pub(super) fn record(&mut self, statement: &Observation) {
        let Observation { source, assertion: stand, as_of, .. } = *statement;
        let certain = statement.conclusive && (source != Source::Screen || statement.settled);
        if !certain || stand.claim() != Claim::Turn {
            return;
        }
        if statement.no_turn_visible {
            record_latest(&mut self.last_cleared, source, as_of);
        }
        if !statement.inferred_from_absence {
            record_latest(
                if stand == Assertion::Running { &mut self.last_running } else { &mut self.last_resting },
                source,
                as_of,
            );
        }
    }

    /// Who else made untrue what a source said of this time. What it said itself, it has replaced.
    pub(super) fn contradicted_by(&self, source: Source, stand: Assertion, as_of: Timestamp) -> Option<Source> {
        // What a process was started for holds for as long as it lives, and is said once.
        if source == Source::Process {
            return None;
        }
        let later = |noted: &BTreeMap<Source, Timestamp>, lag: fn(Source) -> SignedDuration| {
            let is_later = |other: Source, at: Timestamp| at.checked_sub(lag(other)).is_ok_and(|at| at > as_of);
            noted.iter().find(|(other, at)| **other != source && is_later(**other, **at)).map(|(other, _)| *other)
        };
        let at_once = |_| SignedDuration::ZERO;
        match stand {
            Assertion::Running => later(&self.last_resting, at_once),
            Assertion::Completed | Assertion::Failed => {
                later(&self.last_running, screen_lag).or_else(|| later(&self.last_cleared, at_once))
            }
            Assertion::Idle | Assertion::DialogOpen(_) | Assertion::NoDialog => None,
        }
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        [&mut self.last_running, &mut self.last_resting, &mut self.last_cleared]
            .into_iter()
            .flat_map(BTreeMap::values_mut)
    }
}

fn record_latest(noted: &mut BTreeMap<Source, Timestamp>, source: Source, as_of: Timestamp) {
    let latest = noted.entry(source).or_insert(as_of);
    *latest = as_of.max(*latest);
}

fn screen_lag(source: Source) -> SignedDuration {
    if source.is_native() { SignedDuration::ZERO } else { MAX_SCREEN_LAG }
}
