//! What wrappers, scripts and adapters of others say: an event whose type is a state, or one of the few words that
//! agents share for it.

use agtmux_core::evidence::{Assertion, DialogKind};

pub const RULE_NAME: &str = "generic";
pub const RULE_VERSION: u32 = 1;

/// What an event of this type says. Nothing for a word that is not known: such an event is kept, the state stays.
pub fn assertions(event_type: &str) -> &'static [Assertion] {
    // A turn that goes on or ends has no open question as far as its own source knows.
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
    fn every_definite_state_can_be_said_by_its_name() {
        for state in State::ALL.iter().filter(|s| **s != State::Unknown) {
            assert_eq!(assertions(state.as_str()).iter().find_map(|s| s.state()), Some(*state));
        }
        assert!(assertions("unknown").is_empty() && assertions("something-new").is_empty());
    }
}
