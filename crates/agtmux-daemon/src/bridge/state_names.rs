use agtmux_core::state::State;

pub(super) const COMMANDED: &str = "COMMANDED";

/// The tmux-bridge name of a state; `None` for `unknown`. A failed turn counts as idle.
pub(crate) fn bridge_state(state: State) -> Option<&'static str> {
    match state {
        State::Running => Some("PROCESSING"),
        State::WaitingInput | State::WaitingApproval => Some("AWAITING_INPUT"),
        State::Completed => Some("COMPLETE"),
        State::Idle | State::Error => Some("IDLE"),
        State::Unknown => None,
    }
}
