//! How a task event is delivered to the user and the agent. Each event contains its delivery rules, so that every
//! harness delivers the event in the same way.

use serde::{Deserialize, Serialize};

use super::event::TaskEventKind;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// The severity of a task event.
    EventLevel {
        Info => "info",
        Warning => "warning",
    }
);

wire_enum!(
    /// When the agent gets a turn to handle the event.
    AgentTurn {
        /// After the agent's current work, without interrupting it.
        FollowUp => "followUp",
    }
);

/// How a harness delivers a task event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct Delivery {
    /// Whether to redraw the status line.
    pub status: bool,
    /// Whether to show a notice that only the user sees.
    pub notice: bool,
    /// Whether to add a message to the agent's conversation.
    pub message: bool,
    /// When the agent gets a turn for the event; null if the agent gets no turn.
    pub agent_turn: Option<AgentTurn>,
}

impl Delivery {
    pub const MATRIX: &[(TaskEventKind, Self)] = &[
        (TaskEventKind::Started, Self { status: true, notice: true, message: false, agent_turn: None }),
        (TaskEventKind::Exited, Self::CONVERSATION),
        (TaskEventKind::Notify, Self::CONVERSATION),
        (TaskEventKind::Input, Self::CONVERSATION),
        (TaskEventKind::Disappeared, Self::CONVERSATION),
    ];

    const CONVERSATION: Self =
        Self { status: true, notice: false, message: true, agent_turn: Some(AgentTurn::FollowUp) };

    /// The delivery of an event that the message of another event already covers: only the status line is redrawn.
    pub const COLLAPSED: Self = Self { status: true, notice: false, message: false, agent_turn: None };

    /// The delivery of the report on leftover sessions at the start of a harness session: a notice that only the user
    /// sees.
    pub const STARTUP: Self = Self { status: false, notice: true, message: false, agent_turn: None };

    pub fn of(kind: TaskEventKind) -> Self {
        let row = Self::MATRIX.iter().find(|(of, _)| *of == kind);
        row.map_or(Self::CONVERSATION, |(_, delivery)| *delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_kind_has_one_row() {
        for kind in TaskEventKind::ALL {
            assert_eq!(Delivery::MATRIX.iter().filter(|(of, _)| of == kind).count(), 1, "{kind}");
        }
        assert!(!Delivery::of(TaskEventKind::Started).message);
        assert_eq!(Delivery::of(TaskEventKind::Notify).agent_turn, Some(AgentTurn::FollowUp));
    }

    #[test]
    fn a_row_serializes_with_the_documented_names() {
        let json = |kind| serde_json::to_value(Delivery::of(kind)).expect("writes");
        assert_eq!(
            json(TaskEventKind::Started),
            serde_json::json!({"status": true, "notice": true, "message": false, "agent_turn": null})
        );
        assert_eq!(json(TaskEventKind::Exited)["agent_turn"], "followUp");
    }
}
