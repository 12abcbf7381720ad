//! The results of scenarios and their steps.

use std::fmt;
use std::time::Duration;

use agtmux_testkit::real_agents::states::{EvidenceMode, ReportedState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConformanceVerdict {
    Ok,
    /// agtmux reported `unknown`.
    Unknown,
    /// agtmux reported a wrong state.
    Wrong,
    /// The agent behaved differently from the pinned version.
    Drift,
    /// The scenario could not run.
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
    /// Milliseconds from the actual change to the report. Negative if agtmux reported the change before the screen
    /// showed it.
    pub(crate) lag: Option<i64>,
    /// Wrong states that were reported, each with its duration in milliseconds.
    pub(crate) wrong_states: Vec<(ReportedState, i64)>,
    /// All reports during the step, as text.
    pub(crate) timeline: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ScenarioOutcome {
    pub(crate) agent: &'static str,
    pub(crate) scenario: &'static str,
    pub(crate) mode: EvidenceMode,
    pub(crate) steps: Vec<StepOutcome>,
    /// Why steps are missing.
    pub(crate) failure: Option<(ConformanceVerdict, String)>,
    pub(crate) took: Duration,
}

impl ScenarioOutcome {
    pub(crate) fn verdict(&self) -> ConformanceVerdict {
        let trouble = self.failure.iter().map(|(verdict, _)| *verdict);
        self.steps.iter().map(|step| step.verdict).chain(trouble).max().unwrap_or(ConformanceVerdict::Skip)
    }

    /// The longest lag of its steps.
    pub(crate) fn lag(&self) -> Option<i64> {
        self.steps.iter().filter_map(|step| step.lag).max()
    }

    /// One line of text for each problem.
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
    let accepted: Vec<&str> = step.accepted.iter().map(|state| state.as_str()).collect();
    let mut parts = Vec::new();
    if !step.accepted.contains(&step.reported) {
        let reason = step.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        parts.push(format!("reported {}{reason} instead of {}", step.reported, accepted.join(" or ")));
    }
    parts.extend(step.wrong_states.iter().map(|(state, ms)| format!("reported {state} for {ms} ms before that")));
    Some(format!("{}: {} [{}]", step.name, parts.join("; "), step.timeline))
}
