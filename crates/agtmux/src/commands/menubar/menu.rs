//! The menu, independent of the program that shows it.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::time::Duration;

use agtmux_api::wire::{ListResponse, ListSummary, PaneItem};
use agtmux_core::dialog::Dialog;
use agtmux_core::ids::TargetName;
use agtmux_core::state::State;
use jiff::Timestamp;

use super::text;
use crate::render;

/// How often ages are computed again.
pub(super) const AGE_STEP: Duration = Duration::from_secs(30);
/// The rest is in the interface.
const MAX_WAITING: usize = 20;
const MAX_SESSIONS: usize = 40;
const MAX_PANES: usize = 200;
const MAX_COLUMNS: usize = 80;
const MAX_SUBJECT_LINES: usize = 12;

#[derive(Debug)]
pub(super) struct FleetMenu {
    /// The counts; none while no daemon runs.
    pub(super) summary: Option<ListSummary>,
    pub(super) unseen: bool,
    pub(super) lines: Vec<MenuLine>,
    /// The waiting agents as one line each, as the daemon reported them.
    pub(super) waiting: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MenuLine {
    Separator,
    Item {
        level: usize,
        /// Begins with a character of our own, never with foreign text.
        text: String,
        action: Option<MenuAction>,
    },
}

/// What a menu item does. Ids are checked: they contain letters, digits and `-` only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MenuAction {
    Interface,
    StartDaemon,
    Attach(String),
    Output(String),
    Kill(String),
    Answer { runtime: String, option: u32, fingerprint: String },
}

impl MenuAction {
    /// The arguments of `agtmux`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let with_runtime = |command: &str, runtime: &str| vec![command.to_owned(), format!("runtime:{runtime}")];
        match self {
            Self::Interface => Vec::new(),
            Self::StartDaemon => vec!["daemon".into(), "start".into()],
            Self::Attach(runtime) => with_runtime("attach", runtime),
            Self::Output(runtime) => with_runtime("view-output", runtime),
            Self::Kill(runtime) => with_runtime("kill", runtime),
            Self::Answer { runtime, option, fingerprint } => {
                let guards = ["--if-runtime", runtime, "--if-dialog", fingerprint].map(str::to_owned);
                [with_runtime("respond", runtime), vec![option.to_string()], guards.to_vec()].concat()
            }
        }
    }

    /// Whether the command needs a terminal. `kill` asks there.
    pub(super) fn needs_terminal(&self) -> bool {
        !matches!(self, Self::StartDaemon | Self::Answer { .. })
    }
}

impl FleetMenu {
    pub(super) fn new(list: Option<&ListResponse<impl Borrow<PaneItem>>>, now: Timestamp) -> Self {
        let Some(list) = list else {
            let lines = vec![item(0, "▸ Start the daemon", Some(MenuAction::StartDaemon))];
            return Self { summary: None, unseen: false, lines, waiting: Vec::new() };
        };
        let mut items: Vec<&PaneItem> = list.items.iter().map(Borrow::borrow).collect();
        items.sort_by(|a, b| a.attention_order().cmp(&b.attention_order()));
        let waiting = waiting(&items);
        let mut lines = Vec::new();
        for agent in waiting.iter().take(MAX_WAITING) {
            lines.extend(waiting_lines(agent, now));
        }
        lines.extend((waiting.len() > MAX_WAITING).then(|| more(0, waiting.len() - MAX_WAITING)));
        if !lines.is_empty() {
            lines.push(MenuLine::Separator);
        }
        lines.extend(session_lines(&items, now));
        lines.push(item(0, "▸ Open agtmux", Some(MenuAction::Interface)));
        let described = waiting.iter().map(|agent| format!("{}: {}", label(agent), asked(agent)));
        Self {
            summary: Some(list.summary.clone()),
            unseen: items.iter().any(|item| item.unseen),
            lines,
            waiting: described.take(MAX_WAITING).collect(),
        }
    }

    pub(super) fn title(&self) -> String {
        let Some(summary) = &self.summary else { return "agtmux off".to_owned() };
        let counts = render::counts(&summary.by_state, false);
        if counts.is_empty() { "no agents".to_owned() } else { counts }
    }
}

fn item(level: usize, text: impl Into<String>, action: Option<MenuAction>) -> MenuLine {
    MenuLine::Item { level, text: text.into(), action }
}

fn more(level: usize, count: usize) -> MenuLine {
    item(level, format!("… {count} more"), Some(MenuAction::Interface))
}

/// The waiting agents, each once, although several sessions may show its pane.
fn waiting<'a>(items: &[&'a PaneItem]) -> Vec<&'a PaneItem> {
    let mut seen = BTreeSet::new();
    let is_waiting = |item: &&&PaneItem| item.state.is_some_and(State::is_waiting);
    items.iter().filter(is_waiting).filter(|item| seen.insert(item.runtime_id.as_deref())).copied().collect()
}

fn label(agent: &PaneItem) -> String {
    let id = &agent.identity;
    let name = agent.name.as_deref().or(agent.agent_type.as_ref().map(|agent| agent.as_str())).unwrap_or("agent");
    format!("{name} in {}:{}.{}{}", id.session_name, agent.window_index, agent.pane_index, on_host(&id.target))
}

/// The host of an agent, unless it is this machine.
fn on_host(target: &str) -> String {
    if target == TargetName::LOCAL { String::new() } else { format!(" on {target}") }
}

fn asked(agent: &PaneItem) -> String {
    render::asks(agent).unwrap_or_else(|| "waits for you".to_owned())
}

fn age(agent: &PaneItem, now: Timestamp) -> String {
    agent.since.map(|since| format!("  {}", render::age(since, now))).unwrap_or_default()
}

/// A submenu: the question, the answers, and the actions.
fn waiting_lines(agent: &PaneItem, now: Timestamp) -> Vec<MenuLine> {
    let title = text::for_menu(&label(agent), MAX_COLUMNS / 2);
    let mut lines = vec![item(0, format!("▲ {title}{}", age(agent, now)), None)];
    if let Some(dialog) = &agent.dialog {
        lines.extend(dialog_lines(agent, dialog));
        lines.push(MenuLine::Separator.at(1));
    }
    lines.extend(actions(agent, 1));
    lines
}

impl MenuLine {
    /// A separator in a submenu is an item of its own in all formats.
    fn at(self, level: usize) -> Self {
        match self {
            Self::Separator if level > 0 => item(level, "---", None),
            line => line,
        }
    }
}

fn dialog_lines(agent: &PaneItem, dialog: &Dialog) -> Vec<MenuLine> {
    let subject = dialog.subject.as_deref().unwrap_or_default();
    let shown = text::whole(subject, MAX_SUBJECT_LINES, MAX_COLUMNS).filter(|_| !dialog.subject_truncated);
    let question = text::whole(&dialog.question, MAX_SUBJECT_LINES, MAX_COLUMNS);
    let is_whole = shown.is_some() && question.is_some();
    let question = question.unwrap_or_else(|| vec![text::for_menu(&dialog.question, MAX_COLUMNS)]);
    let subject = shown.unwrap_or_else(|| vec![text::for_menu(subject, MAX_COLUMNS)]);
    let mut lines: Vec<MenuLine> = question.iter().map(|row| item(1, format!("? {row}"), None)).collect();
    lines.extend(subject.iter().filter(|row| !row.is_empty()).map(|row| item(1, format!("│ {row}"), None)));
    if !is_whole || dialog.multiple {
        let why = if is_whole { "takes several answers" } else { "is too long for a menu" };
        lines.push(item(1, format!("▸ Attach to answer: the dialog {why}"), attach(agent)));
        return lines;
    }
    for option in &dialog.options {
        let answer = plain_id(agent.runtime_id.as_deref()).zip(plain_id(Some(&dialog.fingerprint)));
        let answer = answer.map(|(runtime, fingerprint)| MenuAction::Answer { runtime, option: option.n, fingerprint });
        let label = text::for_menu(&option.label, MAX_COLUMNS);
        lines.push(item(1, format!("{}. {label}", option.n), answer));
    }
    lines
}

/// The id, if it contains only characters that have no meaning in any format.
fn plain_id(id: Option<&str>) -> Option<String> {
    let is_plain = |id: &&str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    id.filter(is_plain).map(str::to_owned)
}

fn attach(agent: &PaneItem) -> Option<MenuAction> {
    plain_id(agent.runtime_id.as_deref()).map(MenuAction::Attach)
}

fn actions(agent: &PaneItem, level: usize) -> Vec<MenuLine> {
    let Some(runtime) = plain_id(agent.runtime_id.as_deref()) else { return Vec::new() };
    vec![
        item(level, "▸ Attach", Some(MenuAction::Attach(runtime.clone()))),
        item(level, "▸ Send… (opens the interface)", Some(MenuAction::Interface)),
        item(level, "▸ View output", Some(MenuAction::Output(runtime.clone()))),
        item(level, "▸ Stop…", Some(MenuAction::Kill(runtime))),
    ]
}

/// Sessions, their windows, their panes, and the actions of each pane.
fn session_lines(items: &[&PaneItem], now: Timestamp) -> Vec<MenuLine> {
    let mut sorted = items.to_vec();
    sorted.sort_by_key(|item| {
        let id = &item.identity;
        (id.target.clone(), id.server.clone(), id.session_name.clone(), item.window_index, item.pane_index)
    });
    let (mut lines, mut sessions) = (Vec::new(), 0);
    let (mut session, mut window) = (None, None);
    for (n, agent) in sorted.iter().enumerate() {
        let id = &agent.identity;
        let this_session = (&id.target, &id.server, &id.session_name);
        if session != Some(this_session) {
            sessions += 1;
            if sessions > MAX_SESSIONS || n >= MAX_PANES {
                lines.push(more(0, sorted.len() - n));
                break;
            }
            (session, window) = (Some(this_session), None);
            let agents = sorted[n..].iter().take_while(|other| {
                let id = &other.identity;
                (&id.target, &id.server, &id.session_name) == this_session
            });
            let title = format!("{}{}", id.session_name, on_host(&id.target));
            let title = text::for_menu(&title, MAX_COLUMNS / 2);
            lines.push(item(0, format!("▪ {title}  {}", agents.count()), None));
        }
        if window != Some(agent.window_index) {
            window = Some(agent.window_index);
            let name = text::for_menu(&agent.window_name, MAX_COLUMNS / 2);
            lines.push(item(1, format!("▫ {} {name}", agent.window_index), None));
        }
        lines.push(item(2, pane_text(agent, now), None));
        lines.extend(actions(agent, 3));
    }
    lines
}

fn pane_text(agent: &PaneItem, now: Timestamp) -> String {
    let state = agent.state.map_or("", |state| state.as_str());
    let name = agent.name.as_deref().or(agent.agent_type.as_ref().map(|agent| agent.as_str())).unwrap_or("agent");
    let about = agent.title.as_deref().or(agent.cwd.as_deref()).unwrap_or_default();
    let name = text::for_menu(name, 20);
    let about = text::for_menu(about, MAX_COLUMNS / 2);
    format!("{} {name}  {state}{}  {about}", shape(agent), age(agent, now)).trim_end().to_owned()
}

fn shape(agent: &PaneItem) -> char {
    match agent.state {
        Some(State::WaitingApproval | State::WaitingInput) => '▲',
        Some(State::Error) => '✗',
        Some(State::Running) => '●',
        Some(_) if agent.unseen => '◆',
        Some(State::Completed | State::Idle) => '○',
        Some(State::Unknown) | None => '?',
    }
}
