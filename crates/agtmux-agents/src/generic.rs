//! What wrappers, scripts and adapters of others say: an event whose type is a state, or one of the few words that
//! agents share for it.

use agtmux_core::evidence::{DialogKind, Stand};

pub const RULE: &str = "generic";
pub const RULE_VERSION: u32 = 1;

/// What an event of this type says. Nothing for a word that is not known: such an event is kept, the state stays.
pub fn stands(event_type: &str) -> &'static [Stand] {
    // A turn that goes on or ends has no open question as far as its own source knows.
    match event_type {
        "running" | "turn-started" | "start" => &[Stand::Running, Stand::AsksNothing],
        "completed" | "agent-turn-complete" => &[Stand::Completed, Stand::AsksNothing],
        "idle" => &[Stand::Idle, Stand::AsksNothing],
        "error" => &[Stand::Failed, Stand::AsksNothing],
        "waiting_approval" | "approval-requested" => &[Stand::Asks(DialogKind::Approval)],
        "waiting_input" | "input-requested" => &[Stand::Asks(DialogKind::Input)],
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
            assert_eq!(stands(state.as_str()).iter().find_map(|s| s.state()), Some(*state));
        }
        assert!(stands("unknown").is_empty() && stands("something-new").is_empty());
    }
}
