//! What to do when there is nothing to list.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme;
use crate::keymap::TuiCommand;
use crate::model::{FleetConnection, TuiModel};
use crate::text;

/// A message in the middle of the screen: what is the case, and the next steps.
pub(super) struct HelpPage {
    title: String,
    steps: Vec<(String, String)>,
}

fn step(command: &str, what: &str) -> (String, String) {
    (command.to_owned(), what.to_owned())
}

fn quit(model: &TuiModel) -> (String, String) {
    step(&model.key(TuiCommand::Quit), "quit")
}

/// The page to show instead of the list, if there is nothing to list.
pub(super) fn page(model: &TuiModel) -> Option<HelpPage> {
    if let FleetConnection::Failed(notice) = &model.connection {
        let mut steps: Vec<_> = notice.hint.iter().map(|hint| step(hint, "")).collect();
        steps.extend([step("Enter", "try again"), quit(model)]);
        return Some(HelpPage { title: notice.text.clone(), steps });
    }
    if model.list.rows().next().is_some() {
        return None;
    }
    if !model.fleet.is_complete() {
        return Some(HelpPage { title: "connecting to the daemon…".to_owned(), steps: Vec::new() });
    }
    Some(if !model.list.all().is_empty() { nothing_matches(model) } else { no_agents(model) })
}

fn nothing_matches(model: &TuiModel) -> HelpPage {
    if model.filter.waiting_only && model.filter.text.trim().is_empty() {
        let title = format!("no agent waits for you ({} agents)", model.list.all().len());
        return HelpPage {
            title,
            steps: vec![step(&model.key(TuiCommand::WaitingOnly), "show all agents"), quit(model)],
        };
    }
    let title = format!("no agent matches '{}'", model.filter.text);
    HelpPage { title, steps: vec![step(&model.key(TuiCommand::Back), "remove the filter")] }
}

fn no_agents(model: &TuiModel) -> HelpPage {
    let fleet = model.fleet.items();
    if let Some(error) = fleet.target_errors.first() {
        let title = format!("{}: {}", error.target, error.message);
        return HelpPage { title, steps: vec![step(&error.hint, ""), quit(model)] };
    }
    match fleet.panes.len() {
        0 => HelpPage {
            title: "no tmux server is running for this user".to_owned(),
            steps: vec![
                step("tmux new", "start one, then start your agent in it"),
                step("agtmux demo", "see how this screen looks with agents"),
                quit(model),
            ],
        },
        panes => HelpPage {
            title: format!("no agent runs in the {panes} panes of your tmux servers"),
            steps: vec![
                step("agtmux run -- AGENT", "start an agent in a pane; it appears here"),
                step("agtmux adapters", "lists the agents that agtmux recognises"),
                step("agtmux demo", "see how this screen looks with agents"),
                quit(model),
            ],
        },
    }
}

pub(super) fn draw(frame: &mut Frame, body: Rect, page: &HelpPage) {
    let width = usize::from(body.width).saturating_sub(4);
    let mut lines: Vec<Line> =
        text::wrap(&page.title, width).into_iter().map(|row| Line::styled(row, theme::BOLD)).collect();
    lines.push(Line::default());
    let widest = page.steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0).min(width);
    for (command, what) in &page.steps {
        let room = width.saturating_sub(widest + 2);
        lines.push(Line::from(vec![
            Span::styled(text::column(command, widest), theme::KEY),
            Span::raw(format!("  {}", text::fit(what, room))),
        ]));
    }
    let height = u16::try_from(lines.len()).unwrap_or(body.height).min(body.height);
    let top = body.y + (body.height - height) / 3;
    for (y, line) in (top..body.bottom()).zip(lines) {
        frame.render_widget(line, Rect { x: body.x + 2, y, width: body.width.saturating_sub(2), height: 1 });
    }
}
