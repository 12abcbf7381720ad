use agtmux_core::state::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
    Dim,
    Bold,
}

impl Colour {
    pub(crate) fn for_state(state: State) -> Self {
        match state {
            State::Error => Self::Red,
            State::WaitingApproval | State::WaitingInput => Self::Yellow,
            State::Running => Self::Green,
            State::Completed => Self::Cyan,
            State::Idle | State::Unknown => Self::Dim,
        }
    }

    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Cyan => 36,
            Self::Dim => 2,
            Self::Bold => 1,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
