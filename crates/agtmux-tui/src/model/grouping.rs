use agtmux_core::state::State;
use serde::{Deserialize, Serialize};

use super::agents::AgentRow;

/// How the list groups its rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowGrouping {
    #[default]
    Session,
    Directory,
    State,
    None,
}

impl RowGrouping {
    pub fn next(self) -> Self {
        match self {
            Self::Session => Self::Directory,
            Self::Directory => Self::State,
            Self::State => Self::None,
            Self::None => Self::Session,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "by session",
            Self::Directory => "by directory",
            Self::State => "by state",
            Self::None => "not grouped",
        }
    }

    /// The title of the group that this row is in.
    pub fn title(self, row: &AgentRow) -> String {
        match self {
            Self::None => String::new(),
            _ if row.is_pinned => "pinned".to_owned(),
            Self::Session => row.session(),
            Self::Directory => row.item.cwd.clone().unwrap_or_else(|| "no directory".to_owned()),
            Self::State => state_title(row).to_owned(),
        }
    }
}

fn state_title(row: &AgentRow) -> &'static str {
    match row.item.state {
        _ if row.has_ended => "ended",
        _ if row.is_snoozed => "snoozed",
        Some(State::WaitingApproval | State::WaitingInput) => "waiting",
        Some(State::Error) => "error",
        Some(_) if row.item.unseen => "completed, unseen",
        Some(State::Running) => "running",
        Some(State::Completed | State::Idle) => "idle",
        Some(State::Unknown) | None => "unknown",
    }
}
