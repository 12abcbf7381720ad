//! Reads the conversation that an agent has stored: the prompts of the user and the answers of the agent.

mod message;

use jiff::Timestamp;
use serde_json::Value;

use crate::manifest::time_at;
use crate::manifest::{ConversationStore, RecordRole, RecordRule};
use crate::native::{text_at, value_at};
use message::MessageParts;

/// A prompt of the user and the agent's answer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ConversationTurn {
    /// The text of the prompt. None if the conversation begins before the records that were read.
    pub prompt: Option<String>,
    pub prompted_at: Option<Timestamp>,
    /// The text of the agent's last message in this turn. None if the agent has written no text.
    pub answer: Option<String>,
    pub answered_at: Option<Timestamp>,
    pub ending: TurnEnding,
}

/// How far a turn has got, as the records show it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnding {
    /// The answer is the last record of the turn.
    Answered,
    /// The user interrupted the turn.
    Interrupted,
    /// The agent has written no answer, or has called a tool after its last message.
    #[default]
    Open,
}

/// Collects the records of a conversation.
#[derive(Debug)]
pub struct ConversationReader<'m> {
    store: &'m ConversationStore,
    messages: Vec<RecordedMessage>,
}

#[derive(Debug)]
struct RecordedMessage {
    role: RecordRole,
    id: Option<String>,
    text: Option<String>,
    /// Whether a tool call follows the text.
    calls_tool: bool,
    interrupted: bool,
    at: Option<Timestamp>,
}

impl<'m> ConversationReader<'m> {
    pub fn new(store: &'m ConversationStore) -> Self {
        Self { store, messages: Vec::new() }
    }

    /// Adds a record. A record that is not valid JSON is ignored.
    pub fn push(&mut self, record: &[u8]) {
        let Ok(record) = serde_json::from_slice::<Value>(record) else { return };
        let all = self.store.reset.as_ref().and_then(|path| value_at(&record, path)?.as_array());
        let Some(all) = all else { return self.push_record(&record) };
        let interrupted = self.interrupted_turn();
        self.messages.clear();
        for record in all {
            self.push_record(record);
        }
        // Some agents leave out a turn that the user interrupted.
        let newest = self.messages.iter().rev().find(|message| message.role == RecordRole::User);
        let prompt = |message: Option<&RecordedMessage>| message.and_then(|message| message.text.clone());
        if !interrupted.is_empty() && prompt(newest) != prompt(interrupted.first()) {
            self.messages.extend(interrupted);
        }
    }

    /// Takes the messages of the last turn that the user interrupted.
    fn interrupted_turn(&mut self) -> Vec<RecordedMessage> {
        let is_end = |message: &RecordedMessage| message.role == RecordRole::Interrupted;
        let Some(end) = self.messages.iter().rposition(is_end) else { return Vec::new() };
        let begin = self.messages[..end].iter().rposition(|message| message.role == RecordRole::User);
        begin.map(|begin| self.messages.drain(begin..=end).collect()).unwrap_or_default()
    }

    fn push_record(&mut self, record: &Value) {
        let separator = &self.store.separator;
        let parts_of = |rule: &RecordRule| {
            let content = rule.text.as_ref().and_then(|path| value_at(record, path));
            MessageParts::of(content.unwrap_or(&Value::Null), separator)
        };
        let mut rules = self.store.record.iter().map(|rule| (rule, parts_of(rule)));
        let Some((rule, parts)) = rules.find(|(rule, parts)| rule.matches(record, parts.text.as_deref())) else {
            return;
        };
        let calls = rule.calls.as_ref().and_then(|path| value_at(record, path)?.as_array());
        // A message of the user without a text contains the results of tools.
        let role = match rule.role {
            RecordRole::User if parts.text.is_none() => RecordRole::Tool,
            role => role,
        };
        self.add(
            rule,
            RecordedMessage {
                role,
                id: rule.id.as_ref().and_then(|path| text_at(record, path)),
                text: parts.text,
                calls_tool: parts.calls_tool || calls.is_some_and(|calls| !calls.is_empty()),
                interrupted: rule.was_interrupted(record),
                at: time_at(record, &self.store.time),
            },
        );
    }

    /// Adds a message, or combines it with the earlier message that has the same id.
    fn add(&mut self, rule: &RecordRule, message: RecordedMessage) {
        let same = |known: &&mut RecordedMessage| known.id.is_some() && known.id == message.id;
        let Some(known) = self.messages.iter_mut().rev().find(same) else { return self.messages.push(message) };
        if !rule.parts {
            *known = message;
            return;
        }
        known.calls_tool = message.calls_tool || (known.calls_tool && message.text.is_none());
        known.interrupted |= message.interrupted;
        known.at = message.at.or(known.at);
        known.text = match (known.text.take(), message.text) {
            (Some(text), Some(more)) => Some(format!("{text}{}{more}", self.store.separator)),
            (text, more) => text.or(more),
        };
    }

    /// The turns, oldest first.
    pub fn turns(self) -> Vec<ConversationTurn> {
        let mut turns: Vec<ConversationTurn> = Vec::new();
        for message in self.messages {
            if message.role == RecordRole::User {
                let (prompt, prompted_at) = (message.text, message.at);
                turns.push(ConversationTurn { prompt, prompted_at, ..ConversationTurn::default() });
                continue;
            }
            if turns.is_empty() {
                turns.push(ConversationTurn::default());
            }
            if let Some(turn) = turns.last_mut() {
                turn.continue_with(message);
            }
        }
        turns
    }
}

impl ConversationTurn {
    fn continue_with(&mut self, message: RecordedMessage) {
        let was_interrupted = message.interrupted || message.role == RecordRole::Interrupted;
        if message.role == RecordRole::Agent && message.text.is_some() {
            (self.answer, self.answered_at) = (message.text, message.at);
            self.ending = if message.calls_tool { TurnEnding::Open } else { TurnEnding::Answered };
        } else if self.ending != TurnEnding::Interrupted {
            self.ending = TurnEnding::Open;
        }
        if was_interrupted {
            self.ending = TurnEnding::Interrupted;
        }
    }
}

#[cfg(test)]
mod tests;
