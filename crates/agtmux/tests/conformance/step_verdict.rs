//! What agtmux said in a step, compared with what was so.

use std::time::{Duration, Instant};

use super::outcomes::{ConformanceVerdict, StepOutcome};
use super::scenario::ScenarioStep;
use super::states::ReportedState;
use super::watch::StateReport;

/// The end of a turn can be told in two lines: that it rests, and then that it has finished.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// What was told until the end of a step, and the moments that matter.
pub(crate) struct StepTimeline {
    pub(crate) reports: Vec<StateReport>,
    pub(crate) began: Instant,
    pub(crate) truth_at: Instant,
    pub(crate) held_until: Instant,
}

pub(crate) fn judge_step(step: &ScenarioStep, accepted: Vec<ReportedState>, heard: &StepTimeline) -> StepOutcome {
    let told: Vec<&StateReport> = heard.reports.iter().filter(|told| told.at <= heard.held_until).collect();
    let last = told.last();
    let seen = last.map_or(ReportedState::NoAgent, |told| told.state);
    let reason = last.and_then(|told| told.reason.clone());
    let right = told.iter().rev().take_while(|told| accepted.contains(&told.state)).count();
    // The line since which it has been right without a break.
    let since = told.len() - right;
    let strays = wrong_states(step, &accepted, heard, &told, since);
    let verdict = match seen {
        _ if !strays.is_empty() => ConformanceVerdict::Wrong,
        seen if accepted.contains(&seen) => ConformanceVerdict::Ok,
        ReportedState::Unknown => ConformanceVerdict::Unknown,
        _ => ConformanceVerdict::Wrong,
    };
    let since = told.get(since).filter(|_| verdict == ConformanceVerdict::Ok);
    // What was so before the step needed no line.
    let lag = since.map(|told| if told.at < heard.began { 0 } else { ms_between(heard.truth_at, told.at) });
    let way = describe_timeline(heard, &told);
    StepOutcome { name: step.name, verdict, accepted, reported: seen, reason, lag, wrong_states: strays, timeline: way }
}

/// What was said since the step began and should not have been.
fn wrong_states(
    step: &ScenarioStep,
    accepted: &[ReportedState],
    heard: &StepTimeline,
    told: &[&StateReport],
    since: usize,
) -> Vec<(ReportedState, i64)> {
    let mut strays = Vec::new();
    for (index, line) in told.iter().enumerate().filter(|(_, line)| line.at >= heard.began) {
        let end = told.get(index + 1).map_or(heard.held_until, |next| next.at);
        let is_allowed = accepted.contains(&line.state) || step.allowed_before.contains(&line.state);
        let is_last_word = index + 1 == since && since < told.len();
        let settles = is_last_word && is_at_rest(line.state) && is_at_rest(accepted[0]) && end - line.at < SETTLE_TIME;
        if !is_allowed && !settles && line.state != ReportedState::Unknown {
            strays.push((line.state, ms_between(line.at, end)));
        }
    }
    strays
}

/// For people: what was said since the step began, each with its milliseconds after the truth.
fn describe_timeline(heard: &StepTimeline, told: &[&StateReport]) -> String {
    let lines = told.iter().filter(|told| told.at >= heard.began);
    let words: Vec<String> =
        lines.map(|told| format!("{} {:+}", told.state, ms_between(heard.truth_at, told.at))).collect();
    words.join(", ")
}

fn is_at_rest(shown: ReportedState) -> bool {
    matches!(shown, ReportedState::Idle | ReportedState::Completed)
}

/// Below zero when the later one came first.
fn ms_between(earlier: Instant, later: Instant) -> i64 {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    match later.checked_duration_since(earlier) {
        Some(time) => ms(time),
        None => -ms(earlier.saturating_duration_since(later)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{GroundTruth, StepAction};
    use ReportedState::{Approval, Completed, Idle, Running, Unknown};

    /// A step that begins at 100 ms, is so at 200 and is judged at 2000.
    fn judged(then: &[ReportedState], way: &[ReportedState], told: &[(u64, ReportedState)]) -> StepOutcome {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let told = told.iter().map(|(ms, shown)| StateReport { at: at(*ms), state: *shown, reason: None }).collect();
        let (deed, truth) = (StepAction::Wait, GroundTruth::ProcessEnded);
        let step = ScenarioStep {
            name: "step",
            action: deed,
            ground_truth: truth,
            expected: then.to_vec(),
            expected_without_hooks: &[],
            allowed_before: way.to_vec(),
            transient: false,
        };
        let heard = StepTimeline { reports: told, began: at(100), truth_at: at(200), held_until: at(2000) };
        judge_step(&step, then.to_vec(), &heard)
    }

    #[test]
    fn the_lag_is_from_the_truth_to_the_line_since_which_it_is_right() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (ConformanceVerdict::Ok, Some(50)));
        let outcome = judged(&[Running], &[Idle], &[(150, Running), (300, Idle), (500, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (ConformanceVerdict::Ok, Some(300)));
        assert_eq!(judged(&[Running], &[], &[(0, Running)]).lag, Some(0));
        assert_eq!(judged(&[Running], &[], &[(150, Running)]).lag, Some(-50));
    }

    #[test]
    fn what_is_said_on_the_way_must_be_allowed() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Approval), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.wrong_states), (ConformanceVerdict::Wrong, vec![(Approval, 100)]));
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Unknown), (250, Running)]);
        assert_eq!(outcome.verdict, ConformanceVerdict::Ok, "to know nothing is never wrong");
    }

    #[test]
    fn a_turn_may_be_at_rest_before_it_is_known_how_it_ended() {
        let outcome = judged(&[Completed], &[Running], &[(0, Running), (210, Idle), (220, Completed)]);
        assert_eq!((outcome.verdict, outcome.lag), (ConformanceVerdict::Ok, Some(20)));
        let told = [(0, Running), (210, Idle), (220, Running), (900, Completed)];
        assert_eq!(judged(&[Completed], &[Running], &told).verdict, ConformanceVerdict::Wrong, "it was not at rest");
    }

    #[test]
    fn the_last_word_counts() {
        assert_eq!(judged(&[Running], &[Idle], &[(0, Idle)]).verdict, ConformanceVerdict::Wrong);
        assert_eq!(judged(&[Running], &[Idle], &[(0, Unknown)]).verdict, ConformanceVerdict::Unknown);
        let fell_back = judged(&[Running], &[Idle], &[(150, Running), (1500, Idle)]);
        assert_eq!(fell_back.verdict, ConformanceVerdict::Wrong);
    }
}
