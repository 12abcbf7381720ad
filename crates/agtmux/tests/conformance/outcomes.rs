//! What came of it.

use std::fmt;
use std::time::Duration;

use super::states::{EvidenceMode, ReportedState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConformanceVerdict {
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

impl fmt::Display for ConformanceVerdict {
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
    pub(crate) verdict: ConformanceVerdict,
    pub(crate) accepted: Vec<ReportedState>,
    pub(crate) reported: ReportedState,
    pub(crate) reason: Option<String>,
    /// From the truth to the line that says it, in milliseconds. Below zero where agtmux knew before the screen.
    pub(crate) lag: Option<i64>,
    /// What it said on the way and should not have, and for how many milliseconds.
    pub(crate) wrong_states: Vec<(ReportedState, i64)>,
    /// All that it said meanwhile.
    pub(crate) timeline: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ScenarioOutcome {
    pub(crate) agent: &'static str,
    pub(crate) scenario: &'static str,
    pub(crate) mode: EvidenceMode,
    pub(crate) steps: Vec<StepOutcome>,
    /// Why there are no steps, or fewer than there should be.
    pub(crate) failure: Option<(ConformanceVerdict, String)>,
    pub(crate) took: Duration,
}

impl ScenarioOutcome {
    pub(crate) fn verdict(&self) -> ConformanceVerdict {
        let trouble = self.failure.iter().map(|(verdict, _)| *verdict);
        self.steps.iter().map(|step| step.verdict).chain(trouble).max().unwrap_or(ConformanceVerdict::Skip)
    }

    /// The longest of its steps.
    pub(crate) fn lag(&self) -> Option<i64> {
        self.steps.iter().filter_map(|step| step.lag).max()
    }

    /// What is not as it should be, for people.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.steps.iter().filter_map(describe_problem).collect();
        lines.extend(self.failure.iter().map(|(_, why)| why.clone()));
        lines
    }
}

fn describe_problem(step: &StepOutcome) -> Option<String> {
    if step.verdict == ConformanceVerdict::Ok {
        return None;
    }
    let wanted: Vec<&str> = step.accepted.iter().map(|shown| shown.as_str()).collect();
    let mut parts = Vec::new();
    if !step.accepted.contains(&step.reported) {
        let reason = step.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        parts.push(format!("{}{reason} instead of {}", step.reported, wanted.join(" or ")));
    }
    parts.extend(step.wrong_states.iter().map(|(shown, ms)| format!("{shown} for {ms} ms on the way")));
    Some(format!("{}: {} [{}]", step.name, parts.join("; "), step.timeline))
}
