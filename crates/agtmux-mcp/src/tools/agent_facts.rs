//! What results say about an agent.

use std::fmt::Write;

use agtmux_api::wire::{CallerReport, PaneItem};
use agtmux_core::dialog::Dialog;
use agtmux_core::ids::TargetName;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::is_false;
use crate::untrusted::{bounded_field, field, lines};

/// The maximum length of a dialog's question in a list.
const MAX_QUESTION_CHARS: usize = 200;

/// An agent in a tmux pane.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct AgentFacts {
    /// Pass this to other tools. It names this run of the agent and nothing else.
    pub(super) r#ref: String,
    /// The type of the agent, such as claude or codex.
    pub(super) agent: String,
    /// The name that the user gave the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// running, waiting_input, waiting_approval, completed, idle, error or unknown.
    pub(super) state: String,
    /// For how many seconds the agent has been in this state.
    pub(super) seconds: i64,
    /// Where the agent is: session, window and pane, such as work:1.0 (%12). Hosts other than this one come first.
    pub(super) r#where: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Whether the agent is you.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) you: bool,
    /// What a waiting agent asks the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asks: Option<String>,
}

impl AgentFacts {
    /// `None` for a pane without an agent. Tasks have tools of their own.
    pub(super) fn of(pane: &PaneItem, caller: &CallerReport, now: Timestamp) -> Option<Self> {
        let (id, agent) = (pane.runtime_id.as_ref()?, pane.agent_type.as_ref().filter(|agent| !agent.is_task())?);
        let some = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(field);
        let question = |dialog: &Dialog| bounded_field(&dialog.question, MAX_QUESTION_CHARS);
        Some(Self {
            r#ref: format!("runtime:{id}"),
            agent: field(agent.as_str()),
            name: some(&pane.name),
            state: pane.state.map_or("unknown", |state| state.as_str()).to_owned(),
            seconds: pane.since.map_or(0, |since| now.duration_since(since).as_secs().max(0)),
            r#where: location(pane),
            cwd: some(&pane.cwd),
            title: some(&pane.title),
            you: caller.runtime_id.as_ref() == Some(id),
            asks: pane.dialog.as_ref().map(question),
        })
    }

    /// One line, and a second one for a question.
    pub(super) fn text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let you = if self.you { " (you)" } else { "" };
        let mut line = format!("{}  {}{name}{you}  {} for {}", self.r#ref, self.agent, self.state, age(self.seconds));
        let _ = write!(line, "  at {}", self.r#where);
        for (label, value) in [("in", &self.cwd), ("title", &self.title)] {
            let _ = value.as_ref().map(|value| write!(line, "  {label} {value}"));
        }
        let _ = self.asks.as_ref().map(|asks| write!(line, "\n  asks: {asks}"));
        line
    }
}

fn location(pane: &PaneItem) -> String {
    let identity = &pane.identity;
    let host = if identity.target == TargetName::LOCAL { String::new() } else { format!("{}/", identity.target) };
    let server = if identity.server == "default" { String::new() } else { format!("{}/", identity.server) };
    let place = format!("{}:{}.{}", identity.session_name, pane.window_index, pane.pane_index);
    field(&format!("{host}{server}{place} ({})", identity.pane_id))
}

pub(super) fn age(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The open dialog of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct DialogFacts {
    pub(super) kind: String,
    pub(super) question: String,
    /// What the question is about, such as the command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    /// Whether a part of the subject is not visible.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) subject_truncated: bool,
    pub(super) options: Vec<OptionFacts>,
    /// Pass this to respond, so that only this dialog is answered.
    pub(super) fingerprint: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct OptionFacts {
    pub(super) number: u32,
    pub(super) label: String,
}

/// The maximum length of a dialog's subject.
const MAX_SUBJECT_CHARS: usize = 3000;

impl From<&Dialog> for DialogFacts {
    fn from(dialog: &Dialog) -> Self {
        let subject = dialog.subject.as_deref().map(lines);
        let is_long = subject.as_ref().is_some_and(|subject| subject.chars().nth(MAX_SUBJECT_CHARS).is_some());
        let option =
            |option: &agtmux_core::dialog::DialogOption| OptionFacts { number: option.n, label: field(&option.label) };
        Self {
            kind: dialog.kind.to_string(),
            question: field(&dialog.question),
            subject: subject.map(|subject| subject.chars().take(MAX_SUBJECT_CHARS).collect()),
            subject_truncated: dialog.subject_truncated || is_long,
            options: dialog.options.iter().map(option).collect(),
            fingerprint: dialog.fingerprint.clone(),
        }
    }
}

impl DialogFacts {
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} (fingerprint {})\n{}", self.kind, self.fingerprint, self.question);
        let _ = self.subject.as_ref().map(|subject| write!(text, "\n{subject}"));
        if self.subject_truncated {
            text.push_str("\n(a part of this is not visible)");
        }
        for option in &self.options {
            let _ = write!(text, "\n{}. {}", option.number, option.label);
        }
        text
    }
}
