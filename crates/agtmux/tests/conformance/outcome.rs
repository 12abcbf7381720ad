//! What came of it.

use std::fmt;
use std::time::Duration;

use super::words::{Mode, Shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Ok,
    /// agtmux does not claim to know.
    Unknown,
    /// agtmux claims what is not so.
    Wrong,
    /// The agent itself did not do what this scenario knows it to do.
    Drift,
    /// It could not be tried.
    Skip,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Drift => "drift",
            Self::Skip => "skip",
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct StepOutcome {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) wanted: Vec<Shown>,
    pub(crate) seen: Shown,
    pub(crate) reason: Option<String>,
    /// From the truth to the line that says it, in milliseconds. Below zero where agtmux knew before the screen.
    pub(crate) lag: Option<i64>,
    /// What it said on the way and should not have, and for how many milliseconds.
    pub(crate) strays: Vec<(Shown, i64)>,
    /// All that it said meanwhile.
    pub(crate) way: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) agent: &'static str,
    pub(crate) scenario: &'static str,
    pub(crate) mode: Mode,
    pub(crate) steps: Vec<StepOutcome>,
    /// Why there are no steps, or fewer than there should be.
    pub(crate) trouble: Option<(Verdict, String)>,
    pub(crate) took: Duration,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        let trouble = self.trouble.iter().map(|(verdict, _)| *verdict);
        self.steps.iter().map(|step| step.verdict).chain(trouble).max().unwrap_or(Verdict::Skip)
    }

    /// The longest of its steps.
    pub(crate) fn lag(&self) -> Option<i64> {
        self.steps.iter().filter_map(|step| step.lag).max()
    }

    /// What is not as it should be, for people.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.steps.iter().filter_map(complaint).collect();
        lines.extend(self.trouble.iter().map(|(_, why)| why.clone()));
        lines
    }
}

fn complaint(step: &StepOutcome) -> Option<String> {
    if step.verdict == Verdict::Ok {
        return None;
    }
    let wanted: Vec<&str> = step.wanted.iter().map(|shown| shown.word()).collect();
    let mut parts = Vec::new();
    if !step.wanted.contains(&step.seen) {
        let reason = step.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        parts.push(format!("{}{reason} instead of {}", step.seen, wanted.join(" or ")));
    }
    parts.extend(step.strays.iter().map(|(shown, ms)| format!("{shown} for {ms} ms on the way")));
    Some(format!("{}: {} [{}]", step.name, parts.join("; "), step.way))
}
