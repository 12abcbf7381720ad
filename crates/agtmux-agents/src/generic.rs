//! Generic events of wrappers, scripts and third-party adapters. The event type is a state name, or one of the few
//! names that several agents use for a state.

use agtmux_core::evidence::{Assertion, DialogKind};

pub const RULE_NAME: &str = "generic";
pub const RULE_VERSION: u32 = 1;

/// The assertions of an event of this type. An unknown type makes no assertion: the event is stored, the state stays.
pub fn assertions(event_type: &str) -> &'static [Assertion] {
    // A source that reports a running or ended turn knows of no open question.
    match event_type {
        "running" | "turn-started" | "start" => &[Assertion::Running, Assertion::NoDialog],
        "completed" | "agent-turn-complete" => &[Assertion::Completed, Assertion::NoDialog],
        "idle" => &[Assertion::Idle, Assertion::NoDialog],
        "error" => &[Assertion::Failed, Assertion::NoDialog],
        "waiting_approval" | "approval-requested" => &[Assertion::DialogOpen(DialogKind::Approval)],
        "waiting_input" | "input-requested" => &[Assertion::DialogOpen(DialogKind::Input)],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_core::state::State;

    #[test]
    fn every_definite_state_has_an_event_of_its_name() {
        for state in State::ALL.iter().filter(|s| **s != State::Unknown) {
            assert_eq!(assertions(state.as_str()).iter().find_map(|s| s.state()), Some(*state));
        }
        assert!(assertions("unknown").is_empty() && assertions("something-new").is_empty());
    }
}
