use agtmux_core::state::State;

pub(super) const COMMANDED: &str = "COMMANDED";

/// The word that the tmux-bridge document has for a state. It has none for a state that nobody knows, and a turn that failed
/// is over.
pub(crate) fn bridge_state(state: State) -> Option<&'static str> {
    match state {
        State::Running => Some("PROCESSING"),
        State::WaitingInput | State::WaitingApproval => Some("AWAITING_INPUT"),
        State::Completed => Some("COMPLETE"),
        State::Idle | State::Error => Some("IDLE"),
        State::Unknown => None,
    }
}
