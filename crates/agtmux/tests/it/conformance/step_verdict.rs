//! Compares the states that agtmux reported during a step with the expected ones.

use std::time::{Duration, Instant};

use agtmux_testkit::real_agents::states::ReportedState;
use agtmux_testkit::real_agents::watch::StateReport;

use super::outcomes::{ConformanceVerdict, StepOutcome};
use super::scenario::ScenarioStep;

/// With hooks, the screen may show the end of a turn before the hook tells how the turn ended. The state may be idle for
/// at most this long before the last state.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// All reports up to the end of a step, and the times that the verdict depends on.
pub(crate) struct StepTimeline {
    pub(crate) has_hooks: bool,
    pub(crate) reports: Vec<StateReport>,
    pub(crate) began: Instant,
    pub(crate) truth_at: Instant,
    pub(crate) held_until: Instant,
}

pub(crate) fn judge_step(step: &ScenarioStep, accepted: Vec<ReportedState>, timeline: &StepTimeline) -> StepOutcome {
    let reports: Vec<&StateReport> =
        timeline.reports.iter().filter(|report| report.at <= timeline.held_until).collect();
    let last = reports.last();
    let reported = last.map_or(ReportedState::NoAgent, |report| report.state);
    let reason = last.and_then(|report| report.reason.clone());
    let right = reports.iter().rev().take_while(|report| accepted.contains(&report.state)).count();
    // All reports from this index on are right.
    let since = reports.len() - right;
    let wrong = wrong_states(step, &accepted, timeline, &reports);
    let verdict = match reported {
        _ if !wrong.is_empty() => ConformanceVerdict::Wrong,
        state if accepted.contains(&state) => ConformanceVerdict::Ok,
        ReportedState::Unknown => ConformanceVerdict::Unknown,
        _ => ConformanceVerdict::Wrong,
    };
    let since = reports.get(since).filter(|_| verdict == ConformanceVerdict::Ok);
    // A state that was already reported before the step has no lag.
    let lag = since.map(|report| if report.at < timeline.began { 0 } else { ms_between(timeline.truth_at, report.at) });
    let description = describe_timeline(timeline, &reports);
    StepOutcome {
        name: step.name,
        verdict,
        accepted,
        reported,
        reason,
        lag,
        wrong_states: wrong,
        timeline: description,
    }
}

/// The wrong states reported since the start of the step, each with its duration in milliseconds. A state is wrong if
/// the step neither accepts it nor allows it before the accepted state. Once the agent works, it is at rest only at the
/// end: no state at rest may come between running and the last state.
fn wrong_states(
    step: &ScenarioStep,
    accepted: &[ReportedState],
    timeline: &StepTimeline,
    reports: &[&StateReport],
) -> Vec<(ReportedState, i64)> {
    let (mut wrong, mut works) = (Vec::new(), false);
    let last = reports.last().map(|report| report.state);
    for (index, line) in reports.iter().enumerate().filter(|(_, line)| line.at >= timeline.began) {
        let end = reports.get(index + 1).map_or(timeline.held_until, |next| next.at);
        works |= line.state == ReportedState::Running;
        let is_early_end = works && is_at_rest(line.state) && Some(line.state) != last;
        let is_allowed = accepted.contains(&line.state) || step.allowed_before.contains(&line.state);
        let settles = timeline.has_hooks
            && line.state == ReportedState::Idle
            && reports.get(index + 1).is_some_and(|next| Some(next.state) == last && is_at_rest(next.state))
            && end - line.at < SETTLE_TIME;
        if (!is_allowed || is_early_end) && !settles && line.state != ReportedState::Unknown {
            wrong.push((line.state, ms_between(line.at, end)));
        }
    }
    wrong
}

/// Describes all states reported since the start of the step, for the conformance report. Each state has the
/// milliseconds from the actual change to its report.
fn describe_timeline(timeline: &StepTimeline, reports: &[&StateReport]) -> String {
    let lines = reports.iter().filter(|report| report.at >= timeline.began);
    let words: Vec<String> =
        lines.map(|report| format!("{} {:+}", report.state, ms_between(timeline.truth_at, report.at))).collect();
    words.join(", ")
}

fn is_at_rest(state: ReportedState) -> bool {
    matches!(state, ReportedState::Idle | ReportedState::Completed | ReportedState::Error)
}

/// Negative when `later` is before `earlier`.
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
    use crate::conformance::scenario::{GroundTruth, StepAction};
    use ReportedState::{Approval, Completed, Idle, Running, Unknown};

    /// Judges a step that starts at 100 ms, reaches its state at 200 ms and ends at 2000 ms.
    fn judged(
        expected: &[ReportedState],
        allowed_before: &[ReportedState],
        reports: &[(u64, ReportedState)],
    ) -> StepOutcome {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let reports =
            reports.iter().map(|(ms, state)| StateReport { at: at(*ms), state: *state, reason: None }).collect();
        let step = ScenarioStep {
            name: "step",
            action: StepAction::Wait,
            ground_truth: GroundTruth::ProcessEnded,
            expected: expected.to_vec(),
            expected_without_hooks: &[],
            allowed_before: allowed_before.to_vec(),
            transient: false,
        };
        let timeline =
            StepTimeline { has_hooks: false, reports, began: at(100), truth_at: at(200), held_until: at(2000) };
        judge_step(&step, expected.to_vec(), &timeline)
    }

    #[test]
    fn the_lag_ends_at_the_first_report_that_stays_right() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (ConformanceVerdict::Ok, Some(50)));
        let outcome = judged(&[Running], &[Idle], &[(150, Running), (300, Unknown), (500, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (ConformanceVerdict::Ok, Some(300)));
        assert_eq!(judged(&[Running], &[], &[(0, Running)]).lag, Some(0));
        assert_eq!(judged(&[Running], &[], &[(150, Running)]).lag, Some(-50));
    }

    #[test]
    fn a_report_that_is_not_allowed_before_the_expected_state_is_wrong() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Approval), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.wrong_states), (ConformanceVerdict::Wrong, vec![(Approval, 100)]));
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Unknown), (250, Running)]);
        assert_eq!(outcome.verdict, ConformanceVerdict::Ok, "unknown is never wrong");
    }

    #[test]
    fn a_state_at_rest_between_running_and_the_end_is_wrong() {
        let reports = [(0, Running), (150, Running), (210, Idle), (220, Completed)];
        for accepted in [&[Completed][..], &[Completed, Idle]] {
            let outcome = judged(accepted, &[Running, Idle], &reports);
            assert_eq!((outcome.verdict, outcome.wrong_states), (ConformanceVerdict::Wrong, vec![(Idle, 10)]));
        }
        let outcome = judged(&[Completed], &[Running, Idle], &[(110, Idle), (150, Running), (220, Completed)]);
        assert_eq!(outcome.verdict, ConformanceVerdict::Ok, "the agent was idle before it worked");
    }

    #[test]
    fn the_last_report_decides_the_verdict() {
        assert_eq!(judged(&[Running], &[Idle], &[(0, Idle)]).verdict, ConformanceVerdict::Wrong);
        assert_eq!(judged(&[Running], &[Idle], &[(0, Unknown)]).verdict, ConformanceVerdict::Unknown);
        let fell_back = judged(&[Running], &[Idle], &[(150, Running), (1500, Idle)]);
        assert_eq!(fell_back.verdict, ConformanceVerdict::Wrong);
    }
}
