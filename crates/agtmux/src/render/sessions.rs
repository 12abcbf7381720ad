use agtmux_api::wire::SessionItem;

use super::cell::Cell;
use super::places::Places;
use super::summary::{counts, total};
use super::table::{Column, Table};

pub(crate) fn sessions(items: &[SessionItem], agent_summary: bool) -> Table {
    let places = Places::among(items.iter().filter_map(server));
    // Sessions of one name on several targets, merged: the total alone would hide where they are.
    let by_target = items.iter().any(|item| item.by_target.len() > 1);
    let mut table = Table::new(columns(agent_summary, by_target));
    let mut items: Vec<&SessionItem> = items.iter().collect();
    items.sort_by(|a, b| a.identity.cmp(&b.identity));
    for item in items {
        let mut cells = vec![
            Cell::new(&place(item, places)),
            Cell::number(item.windows),
            Cell::number(item.panes),
            Cell::number(total(&item.counts)),
        ];
        if agent_summary {
            cells.push(Cell::of(Some(&counts(&item.counts, false))));
        }
        if by_target {
            cells.push(Cell::of(Some(&targets(item))));
        }
        table.row(cells);
    }
    table
}

fn columns(agent_summary: bool, by_target: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::needed("SESSION", 8),
        Column::needed("WINDOWS", 3),
        Column::needed("PANES", 3),
        Column::needed("AGENTS", 3),
    ];
    if agent_summary {
        columns.push(Column::needed("STATES", 8));
    }
    if by_target {
        columns.push(Column::needed("AGENTS BY TARGET", 8));
    }
    columns
}

fn server(item: &SessionItem) -> Option<(&str, &str)> {
    Some((item.identity.target.as_deref()?, item.identity.server.as_deref()?))
}

fn place(item: &SessionItem, places: Places) -> String {
    match server(item) {
        Some((target, server)) => places.session(target, server, &item.identity.session_name),
        None => item.identity.session_name.clone(),
    }
}

fn targets(item: &SessionItem) -> String {
    let share =
        |(target, share): (&String, &agtmux_api::wire::TargetCounts)| format!("{target} {}", total(&share.counts));
    item.by_target.iter().map(share).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{drawn, session, tally};
    use agtmux_api::wire::TargetCounts;
    use agtmux_core::state::State;

    #[test]
    fn a_summary_of_states_is_shown_when_asked_for() {
        let mut work = session("work");
        work.counts = tally(&[(State::WaitingApproval, 1), (State::WaitingInput, 1), (State::Idle, 1)]);
        let items = [work, session("play")];
        insta::assert_snapshot!(drawn(&sessions(&items, false), 80), @r"
        SESSION  WINDOWS  PANES  AGENTS
        play     1        2      0
        work     1        2      3
        ");
        insta::assert_snapshot!(drawn(&sessions(&items, true), 80), @r"
        SESSION  WINDOWS  PANES  AGENTS  STATES
        play     1        2      0       -
        work     1        2      3       2 waiting · 1 idle
        ");
    }

    #[test]
    fn merged_sessions_name_their_targets() {
        let mut merged = session("work");
        (merged.identity.target, merged.identity.server) = (None, None);
        merged.counts = tally(&[(State::Running, 3)]);
        let share = |n| TargetCounts { counts: tally(&[(State::Running, n)]), windows: 1, panes: 2 };
        merged.by_target = [("host".to_owned(), share(1)), ("web".to_owned(), share(2))].into();
        insta::assert_snapshot!(drawn(&sessions(&[merged], false), 80), @r"
        SESSION  WINDOWS  PANES  AGENTS  AGENTS BY TARGET
        work     1        2      3       host 1 · web 2
        ");
    }
}
