use jiff::Timestamp;

use super::{Kept, Mind};
use crate::dialog::Dialog;
use crate::evidence::{Claim, Source, Stand, Statement};
use crate::state::{Confidence, ReasonCode, State};

/// What a runtime's state is, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub state: State,
    pub reason: Option<ReasonCode>,
    pub confidence: Confidence,
    /// The statement that carried it.
    pub by: Option<(Source, Claim)>,
}

/// Why a statement counts or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aging {
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
pub struct Standing<'a> {
    pub statement: &'a Statement,
    pub stand: Stand,
    pub heard_at: Timestamp,
    pub aging: Aging,
}

impl Mind {
    /// The state by precedence among what is fresh. Without any, unknown and why.
    pub fn verdict(&self, now: Timestamp) -> Verdict {
        let standings: Vec<Standing<'_>> = self.standings(now).collect();
        let fresh = standings.iter().filter(|s| s.aging == Aging::Fresh);
        let strongest = fresh.filter_map(|s| Some((s.stand.state()?, s))).min_by_key(|(state, _)| *state);
        match strongest {
            Some((state, standing)) => Verdict {
                state,
                reason: None,
                confidence: confidence(standing.statement),
                by: Some((standing.statement.source, standing.stand.claim())),
            },
            None => Verdict {
                state: State::Unknown,
                reason: Some(self.why_unknown(&standings)),
                confidence: Confidence::Low,
                by: None,
            },
        }
    }

    /// What is asked in this state, where a source shows it.
    pub fn dialog(&self, state: State, now: Timestamp) -> Option<&Dialog> {
        let asking = |s: &Standing<'_>| s.aging == Aging::Fresh && s.stand.state() == Some(state);
        self.standings(now)
            .filter(asking)
            .filter_map(|s| Some((s.statement.as_of, s.statement.dialog.as_deref()?)))
            .max_by_key(|(as_of, _)| *as_of)
            .map(|(_, dialog)| dialog)
    }

    /// Whether a statement would change anything: it says something else than the last one of its source, or says it
    /// again after others have disagreed.
    pub fn is_news(&self, statement: &Statement) -> bool {
        let Some(known) = self.heard.get(&(statement.source, statement.stand.claim())).map(|heard| &heard.newest)
        else {
            return true;
        };
        let before = &known.statement;
        let words = |s: &Statement| (s.stand, s.conclusive, s.tentative, s.yields, s.anew);
        let same = (words(before), &before.rule, &before.dialog)
            == (words(statement), &statement.rule, &statement.dialog)
            && before.settled >= statement.settled
            && (statement.stand != Stand::Completed || before.excerpt == statement.excerpt);
        let ages = self.expires_at(known).is_some();
        let others = self.heard.values().filter(|heard| heard.newest.statement.source != statement.source);
        let disagrees = |kept: &Kept| {
            let since = before.as_of <= kept.statement.as_of && kept.statement.as_of < statement.as_of;
            since && (kept.stand().contradicts(statement.stand) || statement.stand.contradicts(kept.stand()))
        };
        let spoke_since = |heard: &super::Heard| heard.conclusive.iter().chain([&heard.newest]).any(disagrees);
        let refuted = |as_of| self.refuted.by(statement.source, known.stand(), as_of);
        !same || ages || refuted(before.as_of) != refuted(statement.as_of) || others.into_iter().any(spoke_since)
    }

    /// Every statement that is remembered, with its part in the verdict.
    pub fn standings(&self, now: Timestamp) -> impl Iterator<Item = Standing<'_>> {
        self.heard.values().flat_map(move |heard| {
            let newest = self.standing(&heard.newest, now);
            let before = heard.conclusive.as_ref().filter(|kept| **kept != heard.newest);
            // A hint after a conclusive statement leaves that one standing.
            let before = before.map(|kept| self.standing(kept, now));
            [Some(newest), before].into_iter().flatten()
        })
    }

    /// When a verdict may change without anything new being heard.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let conclusive = self.heard.values().filter_map(|heard| heard.conclusive.as_ref());
        conclusive.filter_map(|kept| self.expires_at(kept)).filter(|at| *at > now).min()
    }

    fn standing<'a>(&self, kept: &'a Kept, now: Timestamp) -> Standing<'a> {
        let aging = if !kept.statement.conclusive {
            Aging::Inconclusive
        } else if let Some(source) = self.contradicted_by(kept) {
            if source == kept.statement.source { Aging::Replaced } else { Aging::Contradicted(source) }
        } else if self.expires_at(kept).is_some_and(|at| at <= now) {
            Aging::Expired
        } else {
            Aging::Fresh
        };
        Standing { statement: &kept.statement, stand: kept.stand(), heard_at: kept.heard_at, aging }
    }

    /// What is on a screen, in a title or in a file is as true as when it was read until something else stands there. Everything
    /// else ages.
    fn expires_at(&self, kept: &Kept) -> Option<Timestamp> {
        let ttl = kept.statement.ttl?;
        let silent = self.silent.get(&kept.statement.source).copied();
        let from = match kept.statement.source {
            Source::Screen | Source::Title | Source::File => silent?,
            _ => kept.heard_at,
        };
        from.checked_add(ttl).ok()
    }

    fn why_unknown(&self, standings: &[Standing<'_>]) -> ReasonCode {
        let any = |wanted: fn(&Aging) -> bool| standings.iter().any(|s| wanted(&s.aging));
        if standings.is_empty() {
            // Looked at, and not understood; or nobody has looked yet.
            if self.silent.is_empty() { ReasonCode::NoAdapter } else { ReasonCode::UnsupportedSignal }
        } else if any(|a| *a == Aging::Expired) {
            ReasonCode::StaleSignal
        } else if any(|a| *a == Aging::Inconclusive) {
            ReasonCode::UnsupportedSignal
        } else {
            ReasonCode::StaleSignal
        }
    }

    fn contradicted_by(&self, kept: &Kept) -> Option<Source> {
        let others = self.heard.values().filter_map(|heard| heard.conclusive.as_ref());
        let overruling = others.filter(|other| overrules(other, kept)).map(|other| other.statement.source).min();
        overruling.or_else(|| self.refuted.by(kept.statement.source, kept.stand(), kept.statement.as_of))
    }
}

/// Whether the later statement makes the earlier one untrue.
fn overrules(later: &Kept, earlier: &Kept) -> bool {
    let (new, old) = (&later.statement, &earlier.statement);
    if new.as_of <= old.as_of || !later.stand().contradicts(earlier.stand()) {
        return false;
    }
    match (new.source, old.source) {
        // It would rather have overlooked something.
        (_, other) if new.yields && other.is_native() && earlier.stand() == Stand::Running => false,
        // While output still flows a screen may show what was, not what is.
        (Source::Screen, other) if other != Source::Screen => new.settled,
        // A dialog that is on screen is open, whatever ended: only the screen can say that it is gone.
        (other, Source::Screen) if other != Source::Screen => later.stand() != Stand::AsksNothing,
        _ => true,
    }
}

fn confidence(statement: &Statement) -> Confidence {
    match statement.source {
        _ if statement.tentative => Confidence::Medium,
        source if source.is_native() => Confidence::High,
        Source::Process => Confidence::High,
        Source::Screen if statement.settled => Confidence::High,
        _ => Confidence::Medium,
    }
}
