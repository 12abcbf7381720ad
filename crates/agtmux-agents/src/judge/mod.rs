//! What a screen and a title say of an agent.

mod command;
mod dialog;
mod options;
mod reading;
mod rule;

use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use serde::Serialize;

pub use reading::{Reading, Said};

use crate::registry::Registry;
use crate::screen::Screen;

/// Longer evidence tells nothing more.
const COLUMNS_OF_EVIDENCE: usize = 200;

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
pub fn judge(registry: &Registry, agent_type: &str, saved: &SavedScreen<'_>) -> Judgement {
    let screen = Screen::parse(saved.text);
    if let Some(evidence) = command::nobody_there(saved.command, &screen) {
        let gone = Judgement { rule: Some("process".into()), ..unknown(agent_type) };
        return Judgement { evidence: Some(shown(&evidence)), ..gone };
    }
    let reading = registry.read_screen(agent_type, &screen, saved.title);
    let title = saved.title.and_then(|title| registry.read_title(agent_type, title));
    let on_screen = reading.stands.first();
    // A title lags, and it does not know every dialog; but it tells a turn under way that the screen does not show.
    let title_leads = reading.dialog.is_none()
        && title.as_ref().is_some_and(|said| said.conclusive && said.stand.state() == Some(State::Running));
    let said = if title_leads { title.as_ref() } else { on_screen };
    let Some(said) = said else { return unknown(agent_type) };
    Judgement {
        agent_type: agent_type.to_owned(),
        state: said.stand.state().unwrap_or(State::Unknown),
        conclusive: said.conclusive,
        rule: Some(said.rule.name.clone()),
        rule_version: Some(said.rule.version),
        evidence: Some(shown(&said.excerpt)),
        dialog: reading.dialog,
    }
}

fn unknown(agent_type: &str) -> Judgement {
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

fn shown(evidence: &str) -> String {
    sanitize::for_column(evidence.trim(), COLUMNS_OF_EVIDENCE)
}
