use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Pattern;
use crate::native::PayloadCondition;

const SESSION: &str = "{session}";
/// The first eight characters of the session id.
const SHORT_SESSION: &str = "{session8}";
const SHORT_LENGTH: usize = 8;
const MAX_SESSION_LENGTH: usize = 128;

/// Where an agent stores its conversations, and how to read them. A conversation is a file with one JSON document per
/// line, or the result of a query on an SQLite database, with one JSON document per row.
#[derive(Debug, Deserialize)]
pub struct ConversationStore {
    /// The environment variable that overrides the agent's directory.
    pub root_variable: Option<String>,
    /// The agent's directory, relative to the value of that variable.
    #[serde(default)]
    pub below_variable: String,
    /// The agent's directory, relative to HOME.
    pub root: String,
    /// The path of the file in that directory; `*` matches any part of a name, `{session}` stands for the session id,
    /// and `{session8}` for its first eight characters.
    path: String,
    /// The query that reads the conversation from an SQLite database. Its parameter `:session` is the session id.
    pub query: Option<String>,
    /// The path of the field that contains the time of a record.
    pub(crate) time: String,
    /// The path of a list of records that replaces all earlier records.
    pub(crate) reset: Option<String>,
    /// The text between two parts of a message.
    #[serde(default)]
    pub(crate) separator: String,
    pub(crate) record: Vec<RecordRule>,
}

/// The meaning of a record in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RecordRole {
    /// A message of the user, which begins a turn.
    User,
    /// A message of the agent.
    Agent,
    /// A tool call, or the result of one. The agent's answer is not complete before it.
    Tool,
    /// The user interrupted the turn.
    Interrupted,
}

/// The rule for one kind of record. The first matching rule decides. A record without a rule is ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordRule {
    pub(crate) role: RecordRole,
    #[serde(default)]
    when: BTreeMap<String, PayloadCondition>,
    /// The path of the message: a text, or a list of parts.
    pub(crate) text: Option<String>,
    /// The rule matches only if the text matches this pattern.
    only: Option<Pattern>,
    /// The rule does not match if the text matches this pattern.
    except: Option<Pattern>,
    /// The path of the id of the message. A later record with the same id replaces the message.
    pub(crate) id: Option<String>,
    /// Whether records with the same id are parts of one message.
    #[serde(default)]
    pub(crate) parts: bool,
    /// The path of the tool calls of the message, if they are not among the parts of its text.
    pub(crate) calls: Option<String>,
    /// The conditions under which the message was cut off by the user.
    #[serde(default)]
    interrupted: BTreeMap<String, PayloadCondition>,
}

impl ConversationStore {
    /// The path of the conversation with this id, relative to the agent's directory. None if the id is not a plain
    /// word, because such an id could name another file.
    pub fn path_of(&self, session: &str) -> Option<String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let is_valid = (1..=MAX_SESSION_LENGTH).contains(&session.len()) && session.bytes().all(plain);
        let short = &session[..session.floor_char_boundary(SHORT_LENGTH)];
        is_valid.then(|| self.path.replace(SESSION, session).replace(SHORT_SESSION, short))
    }

    pub(super) fn problem(&self) -> Option<String> {
        let plain = |path: &str| {
            let parts = || path.split('/');
            !path.starts_with('/') && parts().all(|part| !matches!(part, "." | ".."))
        };
        if !plain(&self.root) || !plain(&self.path) || !plain(&self.below_variable) || self.root.is_empty() {
            return Some("'conversation' must name a directory below HOME and a file in it".into());
        }
        let names_session = [SESSION, SHORT_SESSION].iter().any(|name| self.path.contains(name));
        match (&self.query, names_session) {
            (None, false) => Some("'conversation.path' must contain '{session}'".into()),
            (Some(query), _) if !query.contains(":session") => {
                Some("'conversation.query' must contain ':session'".into())
            }
            _ => None,
        }
    }
}

impl RecordRule {
    /// Whether the rule is about this record. `text` is the text at the path of the rule.
    pub(crate) fn matches(&self, record: &Value, text: Option<&str>) -> bool {
        let fits = |pattern: &Pattern| text.is_some_and(|text| pattern.is_match(text));
        self.when.iter().all(|(path, wanted)| wanted.holds(record, path))
            && self.only.as_ref().is_none_or(fits)
            && !self.except.as_ref().is_some_and(fits)
    }

    /// Whether the user cut off the message in this record.
    pub(crate) fn was_interrupted(&self, record: &Value) -> bool {
        !self.interrupted.is_empty() && self.interrupted.iter().all(|(path, wanted)| wanted.holds(record, path))
    }
}
