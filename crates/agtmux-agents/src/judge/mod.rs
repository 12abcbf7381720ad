//! Judges an agent's state from its screen and title.

mod dialog;
mod no_agent;
mod options;
mod reading;
mod rule;

use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use serde::Serialize;

pub use reading::ScreenReading;
pub(crate) use reading::read_title;

use crate::known_agent::KnownAgent;
use crate::screen::CapturedScreen;

/// The maximum width of a reported line of evidence, in columns. A longer line is cut.
const MAX_EVIDENCE_COLUMNS: usize = 200;

/// A capture of a pane, with or without escape sequences, and the title and the command of the pane.
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
    /// Whether the state is certain without other evidence.
    pub conclusive: bool,
    pub rule: Option<String>,
    #[serde(skip)]
    pub rule_version: Option<u32>,
    /// The line that the rule matched.
    pub evidence: Option<String>,
    pub dialog: Option<Dialog>,
}

/// Judges a saved screen. The state is unknown if no rule matches, because an unknown state is better than a wrong one.
pub fn judge(agent: &KnownAgent, saved: &SavedScreen<'_>) -> Judgement {
    let agent_type = agent.name().as_str();
    let screen = CapturedScreen::parse(saved.text);
    if let Some(evidence) = no_agent::no_agent_reason(saved.command, &screen) {
        let gone = Judgement { rule: Some("process".into()), ..unknown_judgement(agent_type) };
        return Judgement { evidence: Some(printable(&evidence)), ..gone };
    }
    let reading = agent.read_screen(&screen, saved.title);
    let title = saved.title.and_then(|title| agent.read_title(title));
    let on_screen = reading.observations.first();
    // Normally the screen decides, because a title may be stale and does not announce every dialog. But a title that
    // reports a running turn overrules a screen without a dialog, because the screen may not show that turn.
    let title_leads = (reading.dialog().is_none() || reading.is_panel)
        && title
            .as_ref()
            .is_some_and(|observation| observation.conclusive && observation.assertion.state() == Some(State::Running));
    let observation = if title_leads { title.as_ref() } else { on_screen };
    let Some(observation) = observation else { return unknown_judgement(agent_type) };
    Judgement {
        agent_type: agent_type.to_owned(),
        state: observation.assertion.state().unwrap_or(State::Unknown),
        conclusive: observation.conclusive,
        rule: Some(observation.rule.name.clone()),
        rule_version: Some(observation.rule.version),
        evidence: Some(printable(&observation.excerpt)),
        dialog: reading.dialog().filter(|_| !title_leads).cloned(),
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
