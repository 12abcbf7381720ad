//! Who said something, and to what end.

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::{Bridge, Kind};
use crate::store::{Change, TurnRow};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    User,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    Command,
    Answer,
    Completion,
}

/// What was said. Its text is kept without its secrets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) agent_id: &'a str,
    pub(crate) actor: Actor,
    pub(crate) intent: Intent,
    pub(crate) text: &'a str,
}

impl Actor {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::Agent => "AGENT",
        }
    }
}

impl Intent {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Command => "COMMAND",
            Self::Answer => "ANSWER",
            Self::Completion => "COMPLETION",
        }
    }
}

impl Bridge {
    /// Stores a turn and tells of it. Gives back its id.
    pub(crate) async fn note_turn(&self, turn: Turn<'_>) -> String {
        let turn_id = Uuid::now_v7().simple().to_string();
        self.expect_turn(turn.agent_id, &turn_id);
        self.keep_turn(&turn_id, turn).await;
        turn_id
    }

    /// A turn is about to be taken. The next change of the agent's state belongs to it: an agent goes on sooner than it is
    /// known that it was answered.
    pub(crate) fn expect_turn(&self, agent_id: &str, turn_id: &str) {
        if let Some(agent) = self.followed().agents.get_mut(agent_id) {
            agent.turn_id = Some(turn_id.to_owned());
        }
    }

    /// It was not taken after all.
    pub(crate) fn forget_turn(&self, agent_id: &str, turn_id: &str) {
        if let Some(agent) = self.followed().agents.get_mut(agent_id) {
            agent.turn_id.take_if(|expected| expected == turn_id);
        }
    }

    /// Stores a turn that was expected, and tells of it.
    pub(crate) async fn keep_turn(&self, turn_id: &str, turn: Turn<'_>) {
        let at: Timestamp = self.0.clock.now();
        let text = self.0.actions.kept(turn.text).filter(|text| !text.is_empty());
        let row = TurnRow {
            turn_id: turn_id.to_owned(),
            agent_id: turn.agent_id.to_owned(),
            actor: turn.actor.as_str(),
            intent: turn.intent.as_str(),
            text,
            at,
        };
        if let Err(error) = self.0.store.commit(vec![Change::PutTurn(Box::new(row))]).await {
            // What was said was said; health tells that nothing can be stored.
            tracing::warn!(%error, "a turn could not be stored");
        }
        let data = json!({"turn_id": turn_id, "actor": turn.actor.as_str(), "intent": turn.intent.as_str()});
        self.tell(Kind::TurnCreated, turn.agent_id, data);
    }
}
