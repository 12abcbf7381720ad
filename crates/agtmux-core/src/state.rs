//! The seven states of an agent, the reason codes of `unknown`, and confidence levels.

use crate::wire_enum::wire_enum;

wire_enum!(
    /// The state of an agent: what the agent is doing. The variants are in order of precedence, strongest first.
    State {
        Error => "error",
        WaitingApproval => "waiting_approval",
        WaitingInput => "waiting_input",
        Running => "running",
        Completed => "completed",
        Idle => "idle",
        Unknown => "unknown",
    }
);

impl State {
    /// Whether the agent needs a person to act.
    pub fn needs_action(self) -> bool {
        matches!(self, Self::Error | Self::WaitingApproval | Self::WaitingInput)
    }

    pub fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingApproval | Self::WaitingInput)
    }
}

wire_enum!(
    /// Why a state is `unknown`.
    ReasonCode {
        /// The agent runs, but no adapter has reported its state.
        NoAdapter => "no_adapter",
        /// The agent is stopped (Ctrl-Z).
        Suspended => "suspended",
        /// The agent's process has ended.
        ProcessGone => "process_gone",
        /// The agent's tmux server or host does not answer.
        TargetUnreachable => "target_unreachable",
        /// The latest evidence is too old.
        StaleSignal => "stale_signal",
        /// The adapter cannot interpret the agent's output or events.
        UnsupportedSignal => "unsupported_signal",
        /// Two sources disagree, and neither outranks the other.
        ConflictingEvidence => "conflicting_evidence",
    }
);

wire_enum!(
    /// How certain a state is.
    Confidence {
        High => "high",
        Medium => "medium",
        Low => "low",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_name_parses_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
    }

    #[test]
    fn a_parse_error_lists_the_valid_names() {
        let message = "busy".parse::<State>().expect_err("not a state").to_string();
        assert!(message.contains("waiting_approval"), "{message}");
    }

    #[test]
    fn order_is_precedence() {
        assert!(State::Error < State::WaitingApproval);
        assert!(State::Running < State::Completed);
        assert!(State::Idle < State::Unknown);
    }
}
