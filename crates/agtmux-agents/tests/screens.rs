//! Screens of real agents, each with what may be said of it.

mod cases;

use agtmux_agents::{AgentRegistry, SavedScreen, judge};
use agtmux_core::state::State;
use cases::{Case, cases, tally};

fn state_of(case: &Case, text: &[u8]) -> (State, String) {
    let saved = SavedScreen { text, title: Some(&case.title), command: Some(&case.command) };
    let judgement = judge(AgentRegistry::builtin(), &case.agent, &saved);
    let told = format!("{} by {:?} on {:?}", judgement.state, judgement.rule, judgement.evidence);
    (judgement.state, told)
}

#[test]
fn captures_with_escapes_are_judged_right() {
    let mut problems = Vec::new();
    for case in cases() {
        // Some were saved as plain text only; those must do with less.
        let text = case.ansi.as_ref().unwrap_or(&case.plain);
        let (state, told) = state_of(&case, text);
        if !case.accepts(state) {
            problems.push(format!("{}: {told}, but it is {}", case.name, case.accept));
        }
    }
    assert!(problems.is_empty(), "{} judged wrong:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn plain_captures_are_judged_right_or_not_at_all() {
    let mut problems = Vec::new();
    for case in cases() {
        let (state, told) = state_of(&case, &case.plain);
        if state != State::Unknown && !case.accepts(state) {
            problems.push(format!("{}: {told}, but it is {}", case.name, case.accept));
        }
    }
    assert!(problems.is_empty(), "{} judged wrong:\n{}", problems.len(), problems.join("\n"));
    println!("{}", tally(|case| state_of(case, &case.plain).0));
}
