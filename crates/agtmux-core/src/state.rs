//! The seven states, why a state is what it is, and how sure we are.

use crate::wire_enum::wire_enum;

wire_enum!(
    /// What an agent is doing. In order of precedence, the strongest first.
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
    /// Whether a person is being waited for.
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
        /// The agent is there, but nothing reads its state.
        NoAdapter => "no_adapter",
        /// The agent was stopped with Ctrl-Z.
        Suspended => "suspended",
        /// The agent's process is gone.
        ProcessGone => "process_gone",
        /// Its tmux server or host does not answer.
        TargetUnreachable => "target_unreachable",
        /// What was known is too old to be trusted.
        StaleSignal => "stale_signal",
        /// The agent said something that its adapter cannot read.
        UnsupportedSignal => "unsupported_signal",
        /// Sources disagree and none outranks the other.
        ConflictingEvidence => "conflicting_evidence",
    }
);

wire_enum!(
    /// How sure we are of a state.
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
    fn every_word_reads_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
    }

    #[test]
    fn an_unknown_word_names_the_known_ones() {
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
