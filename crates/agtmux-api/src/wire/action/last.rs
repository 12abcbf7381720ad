use agtmux_core::named_enum;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::ActionGuards;

/// Returns the last answers of an agent. The agent may have ended if its pane still exists.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LastAction {
    #[serde(flatten)]
    pub guards: ActionGuards,
    /// The maximum number of turns to return; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

/// The last answers of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct LastReport {
    pub source: AnswerSource,
    /// The agent's own id of the conversation; null if agtmux does not know it.
    pub session: Option<String>,
    /// Whether the conversation does not contain the text that agtmux last submitted to the agent. The last turn is then
    /// an earlier one.
    pub outdated: bool,
    /// The turns, oldest first. Empty if the conversation has no turn yet.
    pub turns: Vec<AnsweredTurn>,
}

named_enum!(
    /// Where an answer was read.
    #[derive(JsonSchema, ToSchema)]
    AnswerSource {
        /// The conversation that the agent has stored. The text is exact.
        Transcript => "transcript",
        /// The screen. The text contains only what the screen shows, and may contain lines that are not part of the
        /// answer.
        Screen => "screen",
    }
);

/// A prompt and the agent's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct AnsweredTurn {
    /// The text of the prompt; null if it was not read.
    pub prompt: Option<String>,
    pub prompted_at: Option<Timestamp>,
    /// The text of the agent's last message in this turn; null if the agent has written none.
    pub answer: Option<String>,
    pub answered_at: Option<Timestamp>,
    pub ending: AnswerEnding,
}

named_enum!(
    /// How a turn ended.
    #[derive(JsonSchema, ToSchema)]
    AnswerEnding {
        /// The answer is complete.
        Answered => "answered",
        /// The user interrupted the turn.
        Interrupted => "interrupted",
        /// The turn has no final answer, because it still runs, failed, or was stopped at a tool call.
        Open => "open",
        /// The screen does not show how the turn ended.
        Unknown => "unknown",
    }
);
