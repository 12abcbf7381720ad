//! What a screen and a title say of an agent.

mod dialog;
mod no_agent;
mod options;
mod reading;
mod rule;

use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use serde::Serialize;

pub use reading::{ScreenObservation, ScreenReading};

use crate::registry::AgentRegistry;
use crate::screen::CapturedScreen;

/// Longer evidence tells nothing more.
const MAX_EVIDENCE_COLUMNS: usize = 200;

/// A capture of a pane, plain or with escapes, and what was known beside it.
#[derive(Debug, Clone, Copy)]
pub struct SavedScreen<'a> {
    pub text: &'a [u8],
    pub title: Option<&'a str>,
    pub command: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub agent_type: String,
    pub state: State,
    /// Whether it may stand for itself.
    pub conclusive: bool,
    pub rule: Option<String>,
    #[serde(skip)]
    pub rule_version: Option<u32>,
    /// The line that decided.
    pub evidence: Option<String>,
    pub dialog: Option<Dialog>,
}

/// What a saved screen shows. Without a rule that fits, unknown: a wrong definite state is worse.
pub fn judge(registry: &AgentRegistry, agent_type: &str, saved: &SavedScreen<'_>) -> Judgement {
    let screen = CapturedScreen::parse(saved.text);
    if let Some(evidence) = no_agent::no_agent_reason(saved.command, &screen) {
        let gone = Judgement { rule: Some("process".into()), ..unknown_judgement(agent_type) };
        return Judgement { evidence: Some(printable(&evidence)), ..gone };
    }
    let reading = registry.read_screen(agent_type, &screen, saved.title);
    let title = saved.title.and_then(|title| registry.read_title(agent_type, title));
    let on_screen = reading.observations.first();
    // A title lags, and it does not know every dialog; but it tells a turn under way that the screen does not show.
    let title_leads = reading.dialog.is_none()
        && title.as_ref().is_some_and(|said| said.conclusive && said.assertion.state() == Some(State::Running));
    let said = if title_leads { title.as_ref() } else { on_screen };
    let Some(said) = said else { return unknown_judgement(agent_type) };
    Judgement {
        agent_type: agent_type.to_owned(),
        state: said.assertion.state().unwrap_or(State::Unknown),
        conclusive: said.conclusive,
        rule: Some(said.rule.name.clone()),
        rule_version: Some(said.rule.version),
        evidence: Some(printable(&said.excerpt)),
        dialog: reading.dialog,
    }
}

fn unknown_judgement(agent_type: &str) -> Judgement {
    Judgement {
        agent_type: agent_type.to_owned(),
        state: State::Unknown,
        conclusive: false,
        rule: None,
        rule_version: None,
        evidence: None,
        dialog: None,
    }
}

fn printable(evidence: &str) -> String {
    sanitize::for_column(evidence.trim(), MAX_EVIDENCE_COLUMNS)
}
