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
}

impl Refuted {
    pub(super) fn is_nothing(&self) -> bool {
        self.ran.is_empty() && self.rested.is_empty()
    }

    pub(super) fn note(&mut self, statement: &Statement) {
        let certain = statement.conclusive && !statement.yields;
        let about_turn = statement.stand.claim() == Claim::Turn;
        if !certain || !about_turn || (statement.source == Source::Screen && !statement.settled) {
            return;
        }
        let noted = if statement.stand == Stand::Running { &mut self.ran } else { &mut self.rested };
        let latest = noted.entry(statement.source).or_insert(statement.as_of);
        *latest = statement.as_of.max(*latest);
    }

    /// Who else made untrue what a source said of this time. What it said itself, it has replaced.
    pub(super) fn by(&self, source: Source, stand: Stand, as_of: Timestamp) -> Option<Source> {
        let (noted, is_end) = match stand {
            Stand::Running => (&self.rested, false),
            Stand::Completed | Stand::Failed => (&self.ran, true),
            Stand::Idle | Stand::Asks(_) | Stand::AsksNothing => return None,
        };
        let later = |(other, at): &(&Source, &Timestamp)| {
            let lags = is_end && !other.is_native();
            let after = if lags { as_of.checked_add(DRAWN_AFTER).unwrap_or(as_of) } else { as_of };
            **other != source && **at > after
        };
        noted.iter().find(later).map(|(other, _)| *other)
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.ran.values_mut().chain(self.rested.values_mut())
    }
}
