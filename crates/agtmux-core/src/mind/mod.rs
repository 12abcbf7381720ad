//! From statements of many sources to one state that is never confidently wrong.
//!
//! For each source and claim only the newest statement is kept, and the newest one that may stand for itself; and of
//! those before them, what they have made untrue. What the state is follows from those alone, so the order in which
//! statements arrived does not matter, and neither does a statement that arrives twice.

mod refuted;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::evidence::{Claim, Source, Stand, Statement};
use refuted::Refuted;

pub use verdict::{Aging, Standing, Verdict};

/// What is known of one runtime.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mind {
    #[serde(with = "as_list")]
    heard: BTreeMap<(Source, Claim), Heard>,
    /// Since when a source that is looked at shows nothing that is understood.
    #[serde(default)]
    silent: BTreeMap<Source, Timestamp>,
    #[serde(default, skip_serializing_if = "Refuted::is_nothing")]
    refuted: Refuted,
}

/// The newest statement of one source about one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    newest: Kept,
    /// Where the newest may not stand for itself, the last one that might.
    conclusive: Option<Kept>,
}

/// A statement, and when it reached us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    statement: Statement,
    heard_at: Timestamp,
    /// A completed turn that everybody had time to notice.
    demoted: bool,
}

impl Kept {
    /// The end of a turn stays on screen for as long as nobody begins another one: it is not a new end each time that
    /// somebody looks.
    fn is_seen_again(&self, statement: &Statement) -> bool {
        let same = (self.statement.stand, &self.statement.excerpt) == (statement.stand, &statement.excerpt);
        self.demoted && statement.source == Source::Screen && same
    }

    fn stand(&self) -> Stand {
        if self.demoted { Stand::Idle } else { self.statement.stand }
    }
}

impl Mind {
    /// Takes in a statement. Says whether it was news: an older one than what is known changes nothing.
    pub fn hear(&mut self, statement: Statement, now: Timestamp) -> bool {
        let key = (statement.source, statement.stand.claim());
        self.silent.remove(&statement.source);
        self.refuted.note(&statement);
        let demoted = self.heard.get(&key).is_some_and(|heard| heard.newest.is_seen_again(&statement));
        let kept = Kept { statement, heard_at: now, demoted };
        let Some(heard) = self.heard.get_mut(&key) else {
            let conclusive = kept.statement.conclusive.then(|| kept.clone());
            self.heard.insert(key, Heard { newest: kept, conclusive });
            return true;
        };
        let newer = |than: &Kept| kept.statement.order.is_newer_than(&than.statement.order);
        let mut news = false;
        if kept.statement.conclusive && heard.conclusive.as_ref().is_none_or(newer) {
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
    pub fn silent(&mut self, source: Source, at: Timestamp) {
        self.silent.entry(source).or_insert(at);
    }

    /// Whether a source was last looked at in vain.
    pub fn is_silent(&self, source: Source) -> bool {
        self.silent.contains_key(&source)
    }

    /// A completed turn has been shown for long enough.
    pub fn demote_completed(&mut self) {
        for kept in self.kept_mut() {
            kept.demoted |= kept.statement.stand == Stand::Completed;
        }
    }
}

/// What is known elsewhere, by another clock.
impl Mind {
    /// Takes the place of what was known here. What everybody had time to notice here need not be noticed again.
    pub fn recall(&mut self, newer: Self) {
        let before = std::mem::replace(self, newer);
        let id = |kept: &Kept| kept.statement.order.event_id.clone();
        let demoted: Vec<String> = before.kept().filter(|kept| kept.demoted).map(id).collect();
        for kept in self.kept_mut().filter(|kept| kept.statement.stand == Stand::Completed) {
            kept.demoted |= demoted.contains(&kept.statement.order.event_id);
        }
    }

    /// Every time in it by our clock, which is this much ahead of the one that it was told by. Nothing is from the future.
    pub fn shift(&mut self, ahead: SignedDuration, now: Timestamp) {
        let here = |at: &mut Timestamp| *at = at.checked_add(ahead).unwrap_or(now).min(now);
        for kept in self.kept_mut() {
            here(&mut kept.heard_at);
            here(&mut kept.statement.as_of);
            here(&mut kept.statement.order.event_time);
            here(&mut kept.statement.order.ingested_at);
        }
        self.silent.values_mut().chain(self.refuted.times_mut()).for_each(here);
    }

    pub fn statements_mut(&mut self) -> impl Iterator<Item = &mut Statement> {
        self.kept_mut().map(|kept| &mut kept.statement)
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.heard.values().flat_map(|heard| heard.conclusive.iter().chain([&heard.newest]))
    }

    fn kept_mut(&mut self) -> impl Iterator<Item = &mut Kept> {
        self.heard.values_mut().flat_map(|heard| heard.conclusive.iter_mut().chain([&mut heard.newest]))
    }
}

/// JSON has no keys of two parts; each entry tells its own key anyway.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Claim, Heard, Source};

    pub(super) fn serialize<S: Serializer>(heard: &BTreeMap<(Source, Claim), Heard>, to: S) -> Result<S::Ok, S::Error> {
        heard.values().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<(Source, Claim), Heard>, D::Error> {
        let list = Vec::<Heard>::deserialize(from)?;
        let keyed = list.into_iter().map(|heard| {
            let statement = &heard.newest.statement;
            ((statement.source, statement.stand.claim()), heard)
        });
        Ok(keyed.collect())
    }
}
