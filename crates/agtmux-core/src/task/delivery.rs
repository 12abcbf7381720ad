//! How an event is brought to the person and to the agent, as data, so that every harness does it the same way.

use serde::{Deserialize, Serialize};

use super::event::TaskEventKind;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// How much it matters.
    EventLevel {
        Info => "info",
        Warning => "warning",
    }
);

wire_enum!(
    /// When an agent is given a turn for it.
    AgentTurn {
        /// After the work at hand: it interrupts nothing.
        FollowUp => "followUp",
    }
);

/// One row of the delivery matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct Delivery {
    /// The status line is drawn anew.
    pub status: bool,
    /// A notice that only the person sees.
    pub notice: bool,
    /// A message in the conversation.
    pub message: bool,
    /// Whether the agent gets a turn for it.
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

    /// Of what another event tells as well: only the status line knows of it, whoever goes by this alone.
    pub const COLLAPSED: Self = Self { status: true, notice: false, message: false, agent_turn: None };

    /// What a startup scan found or cleaned up: for the person only.
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
    fn every_kind_has_its_row() {
        for kind in TaskEventKind::ALL {
            assert_eq!(Delivery::MATRIX.iter().filter(|(of, _)| of == kind).count(), 1, "{kind}");
        }
        assert!(!Delivery::of(TaskEventKind::Started).message);
        assert_eq!(Delivery::of(TaskEventKind::Notify).agent_turn, Some(AgentTurn::FollowUp));
    }

    #[test]
    fn a_row_is_written_as_the_documents_name_it() {
        let json = |kind| serde_json::to_value(Delivery::of(kind)).expect("writes");
        assert_eq!(
            json(TaskEventKind::Started),
            serde_json::json!({"status": true, "notice": true, "message": false, "agent_turn": null})
        );
        assert_eq!(json(TaskEventKind::Exited)["agent_turn"], "followUp");
    }
}
