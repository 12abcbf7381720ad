//! Records turns: each prompt, answer or completion, with its actor (user or agent) and its text.

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::{Bridge, BridgeEventKind};
use crate::store::{StoreChange, TurnRow};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnIntent {
    Command,
    Answer,
    Completion,
}

/// One turn. Secrets are removed from the text before it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BridgeTurn<'a> {
    pub(crate) agent_id: &'a str,
    pub(crate) intent: TurnIntent,
    pub(crate) text: &'a str,
}

impl TurnIntent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Command => "COMMAND",
            Self::Answer => "ANSWER",
            Self::Completion => "COMPLETION",
        }
    }

    fn actor(self) -> &'static str {
        match self {
            Self::Command | Self::Answer => "USER",
            Self::Completion => "AGENT",
        }
    }
}

impl Bridge {
    /// Stores a turn, publishes it and returns its id.
    pub(crate) async fn record_turn(&self, turn: BridgeTurn<'_>) -> String {
        let turn_id = Uuid::now_v7().simple().to_string();
        self.expect_turn(turn.agent_id, &turn_id);
        self.store_turn(&turn_id, turn).await;
        turn_id
    }

    /// Announces a turn before its text is typed. The agent's next state change then carries the id of this turn, even
    /// if the state changes before agtmux has verified that the agent received the text.
    pub(crate) fn expect_turn(&self, agent_id: &str, turn_id: &str) {
        if let Some(agent) = self.tracked().agents.get_mut(agent_id) {
            agent.turn_id = Some(turn_id.to_owned());
        }
    }

    /// Withdraws an announced turn whose text did not reach the agent.
    pub(crate) fn cancel_turn(&self, agent_id: &str, turn_id: &str) {
        if let Some(agent) = self.tracked().agents.get_mut(agent_id) {
            agent.turn_id.take_if(|expected| expected == turn_id);
        }
    }

    /// Stores an announced turn and publishes it.
    pub(crate) async fn store_turn(&self, turn_id: &str, turn: BridgeTurn<'_>) {
        let at: Timestamp = self.0.clock.now();
        let text = self.0.actions.audit_text(turn.text).filter(|text| !text.is_empty());
        let row = TurnRow {
            turn_id: turn_id.to_owned(),
            agent_id: turn.agent_id.to_owned(),
            actor: turn.intent.actor(),
            intent: turn.intent.as_str(),
            text,
            at,
        };
        if let Err(error) = self.0.store.commit(vec![StoreChange::PutTurn(Box::new(row))]).await {
            // The turn has happened, so it is published anyway. The health endpoint reports the store error.
            tracing::warn!(%error, "could not store a turn");
        }
        let data = json!({"turn_id": turn_id, "actor": turn.intent.actor(), "intent": turn.intent.as_str()});
        self.publish(BridgeEventKind::TurnCreated, turn.agent_id, data);
    }
}
