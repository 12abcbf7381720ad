//! Screens of real agents, each with its acceptable states.

use agtmux_agents::{SavedScreen, judge};
use agtmux_core::state::State;

use crate::builtin;
use crate::screen_cases::{ScreenCase, cases, tally};

fn state_of(case: &ScreenCase, text: &[u8]) -> (State, String) {
    let saved = SavedScreen { text, title: Some(&case.title), command: Some(&case.command) };
    let judgement = judge(builtin(&case.agent), &saved);
    let result = format!("{} by {:?} on {:?}", judgement.state, judgement.rule, judgement.evidence);
    (judgement.state, result)
}

#[test]
fn captures_with_escapes_are_judged_correctly() {
    let mut problems = Vec::new();
    for case in cases() {
        // Some captures were saved as plain text only.
        let text = case.ansi.as_ref().unwrap_or(&case.plain);
        let (state, result) = state_of(&case, text);
        if !case.accepts(state) {
            problems.push(format!("{}: {result}, expected {}", case.name, case.accept));
        }
    }
    assert!(problems.is_empty(), "{} judged wrongly:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn plain_captures_are_judged_correctly_or_as_unknown() {
    let mut problems = Vec::new();
    for case in cases() {
        let (state, result) = state_of(&case, &case.plain);
        if state != State::Unknown && !case.accepts(state) {
            problems.push(format!("{}: {result}, expected {}", case.name, case.accept));
        }
    }
    assert!(problems.is_empty(), "{} judged wrongly:\n{}", problems.len(), problems.join("\n"));
    println!("{}", tally(|case| state_of(case, &case.plain).0));
}
