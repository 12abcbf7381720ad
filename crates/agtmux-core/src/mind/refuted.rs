//! What can no longer be true of the last turn, whatever those who made it untrue say by now.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Claim, Source, Stand, Statement};

/// What is drawn may show a turn for so long after the agent has said that it is over.
const DRAWN_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// By source, when it last said so for certain.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refuted {
    /// A turn was under way: how one before it ended is history.
    #[serde(default)]
    ran: BTreeMap<Source, Timestamp>,
    /// None was: one that began before it is over.
    #[serde(default)]
    rested: BTreeMap<Source, Timestamp>,
    /// Nothing was left of any turn: how one before it ended is history as well.
    #[serde(default)]
    anew: BTreeMap<Source, Timestamp>,
}

impl Refuted {
    pub(super) fn is_nothing(&self) -> bool {
        [&self.ran, &self.rested, &self.anew].iter().all(|noted| noted.is_empty())
    }

    pub(super) fn note(&mut self, statement: &Statement) {
        let Statement { source, stand, as_of, .. } = *statement;
        let certain = statement.conclusive && (source != Source::Screen || statement.settled);
        if !certain || stand.claim() != Claim::Turn {
            return;
        }
        if statement.anew {
            note_latest(&mut self.anew, source, as_of);
        }
        if !statement.yields {
            note_latest(if stand == Stand::Running { &mut self.ran } else { &mut self.rested }, source, as_of);
        }
    }

    /// Who else made untrue what a source said of this time. What it said itself, it has replaced.
    pub(super) fn by(&self, source: Source, stand: Stand, as_of: Timestamp) -> Option<Source> {
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
            Stand::Running => later(&self.rested, at_once),
            Stand::Completed | Stand::Failed => later(&self.ran, lag).or_else(|| later(&self.anew, at_once)),
            Stand::Idle | Stand::Asks(_) | Stand::AsksNothing => None,
        }
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        [&mut self.ran, &mut self.rested, &mut self.anew].into_iter().flat_map(BTreeMap::values_mut)
    }
}

fn note_latest(noted: &mut BTreeMap<Source, Timestamp>, source: Source, as_of: Timestamp) {
    let latest = noted.entry(source).or_insert(as_of);
    *latest = as_of.max(*latest);
}

fn lag(source: Source) -> SignedDuration {
    if source.is_native() { SignedDuration::ZERO } else { DRAWN_AFTER }
}
