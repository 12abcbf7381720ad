//! What a screen shows of an agent. No manifest has screen rules yet, so no screen proves a state.

use agtmux_core::state::State;
use serde::Serialize;

/// A capture of a pane, plain or with escapes, and what was known beside it.
#[derive(Debug, Clone, Copy)]
pub struct SavedScreen<'a> {
    pub text: &'a [u8],
    pub title: Option<&'a str>,
    pub command: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub agent_type: String,
    pub state: State,
    /// Whether it may stand for itself.
    pub conclusive: bool,
    pub rule: Option<String>,
    pub evidence: Option<String>,
    pub dialog: Option<String>,
}

/// Without a rule that fits, unknown: a wrong definite state is worse.
pub fn judge(agent_type: &str, _screen: &SavedScreen<'_>) -> Judgement {
    Judgement {
        agent_type: agent_type.to_owned(),
        state: State::Unknown,
        conclusive: false,
        rule: None,
        evidence: None,
        dialog: None,
    }
}
