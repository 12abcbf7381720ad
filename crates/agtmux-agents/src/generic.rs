//! Generic events of wrappers, scripts and third-party adapters. The event type is a state name, or one of the few
//! names that several agents use for a state.

use agtmux_core::evidence::Assertion;
use agtmux_core::state::State;

pub const RULE_NAME: &str = "generic";
pub(crate) const RULE_VERSION: u32 = 1;
/// The names of the payload field in which agents send their session id.
pub const SESSION_FIELDS: [&str; 3] = ["session_id", "sessionId", "thread-id"];

/// The assertions that an event of this type makes. An event of an unknown type makes no assertion: the daemon stores
/// the event and does not change the state.
pub(crate) fn assertions(event_type: &str) -> &'static [Assertion] {
    let state = match event_type {
        "turn-started" | "start" => State::Running,
        "agent-turn-complete" => State::Completed,
        "approval-requested" => State::WaitingApproval,
        "input-requested" => State::WaitingInput,
        name => name.parse().unwrap_or(State::Unknown),
    };
    Assertion::for_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definite_state_has_an_event_of_its_name() {
        for state in State::ALL.iter().filter(|s| **s != State::Unknown) {
            assert_eq!(assertions(state.as_str()).iter().find_map(|s| s.state()), Some(*state));
        }
        assert!(assertions("unknown").is_empty() && assertions("something-new").is_empty());
    }
}
