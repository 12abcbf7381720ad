//! What agtmux said in a step, compared with what was so.

use std::time::{Duration, Instant};

use super::outcome::{StepOutcome, Verdict};
use super::scenario::Step;
use super::watch::Told;
use super::words::Shown;

/// The end of a turn can be told in two lines: that it rests, and then that it has finished.
const SETTLING: Duration = Duration::from_secs(1);

/// What was told until the end of a step, and the moments that matter.
pub(crate) struct Heard {
    pub(crate) told: Vec<Told>,
    pub(crate) begun: Instant,
    pub(crate) truth: Instant,
    pub(crate) held_until: Instant,
}

pub(crate) fn judge(step: &Step, accepted: Vec<Shown>, heard: &Heard) -> StepOutcome {
    let told: Vec<&Told> = heard.told.iter().filter(|told| told.at <= heard.held_until).collect();
    let last = told.last();
    let seen = last.map_or(Shown::Gone, |told| told.shown);
    let reason = last.and_then(|told| told.reason.clone());
    let right = told.iter().rev().take_while(|told| accepted.contains(&told.shown)).count();
    // The line since which it has been right without a break.
    let since = told.len() - right;
    let strays = strays(step, &accepted, heard, &told, since);
    let verdict = match seen {
        _ if !strays.is_empty() => Verdict::Wrong,
        seen if accepted.contains(&seen) => Verdict::Ok,
        Shown::Unknown => Verdict::Unknown,
        _ => Verdict::Wrong,
    };
    let since = told.get(since).filter(|_| verdict == Verdict::Ok);
    // What was so before the step needed no line.
    let lag = since.map(|told| if told.at < heard.begun { 0 } else { ms_between(heard.truth, told.at) });
    let way = way(heard, &told);
    StepOutcome { name: step.name, verdict, wanted: accepted, seen, reason, lag, strays, way }
}

/// What was said since the step began and should not have been.
fn strays(step: &Step, accepted: &[Shown], heard: &Heard, told: &[&Told], since: usize) -> Vec<(Shown, i64)> {
    let mut strays = Vec::new();
    for (index, line) in told.iter().enumerate().filter(|(_, line)| line.at >= heard.begun) {
        let end = told.get(index + 1).map_or(heard.held_until, |next| next.at);
        let is_allowed = accepted.contains(&line.shown) || step.way.contains(&line.shown);
        let is_last_word = index + 1 == since && since < told.len();
        let settles = is_last_word && rests(line.shown) && rests(accepted[0]) && end - line.at < SETTLING;
        if !is_allowed && !settles && line.shown != Shown::Unknown {
            strays.push((line.shown, ms_between(line.at, end)));
        }
    }
    strays
}

/// For people: what was said since the step began, each with its milliseconds after the truth.
fn way(heard: &Heard, told: &[&Told]) -> String {
    let lines = told.iter().filter(|told| told.at >= heard.begun);
    let words: Vec<String> =
        lines.map(|told| format!("{} {:+}", told.shown, ms_between(heard.truth, told.at))).collect();
    words.join(", ")
}

fn rests(shown: Shown) -> bool {
    matches!(shown, Shown::Idle | Shown::Completed)
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
    use crate::scenario::{Deed, Truth};
    use Shown::{Approval, Completed, Idle, Running, Unknown};

    /// A step that begins at 100 ms, is so at 200 and is judged at 2000.
    fn judged(then: &[Shown], way: &[Shown], told: &[(u64, Shown)]) -> StepOutcome {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let told = told.iter().map(|(ms, shown)| Told { at: at(*ms), shown: *shown, reason: None }).collect();
        let (deed, truth) = (Deed::Nothing, Truth::Ended);
        let step =
            Step { name: "step", deed, truth, then: then.to_vec(), or_bare: &[], way: way.to_vec(), brief: false };
        let heard = Heard { told, begun: at(100), truth: at(200), held_until: at(2000) };
        judge(&step, then.to_vec(), &heard)
    }

    #[test]
    fn the_lag_is_from_the_truth_to_the_line_since_which_it_is_right() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (Verdict::Ok, Some(50)));
        let outcome = judged(&[Running], &[Idle], &[(150, Running), (300, Idle), (500, Running)]);
        assert_eq!((outcome.verdict, outcome.lag), (Verdict::Ok, Some(300)));
        assert_eq!(judged(&[Running], &[], &[(0, Running)]).lag, Some(0));
        assert_eq!(judged(&[Running], &[], &[(150, Running)]).lag, Some(-50));
    }

    #[test]
    fn what_is_said_on_the_way_must_be_allowed() {
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Approval), (250, Running)]);
        assert_eq!((outcome.verdict, outcome.strays), (Verdict::Wrong, vec![(Approval, 100)]));
        let outcome = judged(&[Running], &[Idle], &[(0, Idle), (150, Unknown), (250, Running)]);
        assert_eq!(outcome.verdict, Verdict::Ok, "to know nothing is never wrong");
    }

    #[test]
    fn a_turn_may_be_at_rest_before_it_is_known_how_it_ended() {
        let outcome = judged(&[Completed], &[Running], &[(0, Running), (210, Idle), (220, Completed)]);
        assert_eq!((outcome.verdict, outcome.lag), (Verdict::Ok, Some(20)));
        let told = [(0, Running), (210, Idle), (220, Running), (900, Completed)];
        assert_eq!(judged(&[Completed], &[Running], &told).verdict, Verdict::Wrong, "it was not at rest");
    }

    #[test]
    fn the_last_word_counts() {
        assert_eq!(judged(&[Running], &[Idle], &[(0, Idle)]).verdict, Verdict::Wrong);
        assert_eq!(judged(&[Running], &[Idle], &[(0, Unknown)]).verdict, Verdict::Unknown);
        let fell_back = judged(&[Running], &[Idle], &[(150, Running), (1500, Idle)]);
        assert_eq!(fell_back.verdict, Verdict::Wrong);
    }
}
