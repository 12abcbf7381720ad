//! Shapes and colours. A named colour stands for its role (`ColourRoles`); the configuration decides how it is shown.

use agtmux_core::state::State;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::model::AgentRow;

pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const ERROR: Style = Style::new().fg(Color::Red);
pub(super) const ACCENT: Style = Style::new().fg(Color::Yellow);
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const KEY: Style = Style::new().fg(Color::Cyan);

/// The kinds of states that a person tells apart at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateLook {
    Approval,
    Input,
    Error,
    Unseen,
    Running,
    Idle,
    Unknown,
    Ended,
}

impl StateLook {
    pub(super) fn of(row: &AgentRow) -> Self {
        match row.item.state {
            _ if row.has_ended => Self::Ended,
            Some(State::WaitingApproval) => Self::Approval,
            Some(State::WaitingInput) => Self::Input,
            Some(State::Error) => Self::Error,
            Some(_) if row.item.unseen => Self::Unseen,
            Some(State::Running) => Self::Running,
            Some(State::Completed | State::Idle) => Self::Idle,
            Some(State::Unknown) | None => Self::Unknown,
        }
    }

    /// A shape of its own for each, for terminals and eyes without colours.
    pub(super) fn shape(self, unicode: bool) -> &'static str {
        match (self, unicode) {
            (Self::Approval, true) => "◆",
            (Self::Approval, false) => "!",
            (Self::Input, true) => "◇",
            (Self::Input, false) => "?",
            (Self::Error, true) => "✗",
            (Self::Error, false) => "x",
            (Self::Unseen, true) => "✓",
            (Self::Unseen, false) => "+",
            (Self::Running, true) => "●",
            (Self::Running, false) => "*",
            (Self::Idle, true) => "○",
            (Self::Idle, false) => "o",
            (Self::Unknown, true) => "·",
            (Self::Unknown, false) => ".",
            (Self::Ended, true) => "×",
            (Self::Ended, false) => "-",
        }
    }

    pub(super) fn style(self) -> Style {
        match self {
            Self::Approval | Self::Input => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
            Self::Error => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Self::Unseen => Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD),
            Self::Running => Style::new().fg(Color::Green),
            Self::Idle | Self::Unknown | Self::Ended => DIM,
        }
    }

    /// The state in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Approval => "waits for approval",
            Self::Input => "waits for an answer",
            Self::Error => "error",
            Self::Unseen => "done, unseen",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
            Self::Ended => "ended",
        }
    }
}

pub(super) fn borders(unicode: bool) -> border::Set<'static> {
    let ascii = border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    };
    if unicode { border::ROUNDED } else { ascii }
}

pub(super) fn vertical(unicode: bool) -> &'static str {
    if unicode { "│" } else { "|" }
}

pub(super) fn horizontal(unicode: bool) -> &'static str {
    if unicode { "─" } else { "-" }
}

/// The mark of an agent that is selected for an action on several.
pub(super) fn chosen(unicode: bool) -> &'static str {
    if unicode { "▌" } else { ">" }
}

pub(super) fn pinned(unicode: bool) -> &'static str {
    if unicode { "▴" } else { "^" }
}
