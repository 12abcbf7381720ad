use std::borrow::Borrow;

use agtmux_api::wire::SessionItem;

use super::cell::TableCell;
use super::locations::LocationFormat;
use super::summary::{counts, total};
use super::table::{TableColumn, TextTable};

pub(crate) fn sessions(items: &[impl Borrow<SessionItem>], agent_summary: bool) -> TextTable {
    let mut items: Vec<&SessionItem> = items.iter().map(Borrow::borrow).collect();
    let format = LocationFormat::for_servers(items.iter().filter_map(|item| server(item)));
    items.sort_by(|a, b| a.identity.cmp(&b.identity));
    let mut columns = vec![
        TableColumn::required("SESSION", 8, &items, |item| TableCell::new(&location(item, format))),
        TableColumn::required("WINDOWS", 3, &items, |item| TableCell::number(item.windows)),
        TableColumn::required("PANES", 3, &items, |item| TableCell::number(item.panes)),
        TableColumn::required("AGENTS", 3, &items, |item| TableCell::number(total(&item.counts))),
    ];
    let text = |text: String| TableCell::from_option(Some(&text));
    if agent_summary {
        columns.push(TableColumn::required("STATES", 8, &items, |item| text(counts(&item.counts, false))));
    }
    // For sessions merged over several targets, show the count per target.
    if items.iter().any(|item| item.by_target.len() > 1) {
        columns.push(TableColumn::required("AGENTS BY TARGET", 8, &items, |item| text(targets(item))));
    }
    TextTable::new(columns)
}

fn server(item: &SessionItem) -> Option<(&str, &str)> {
    Some((item.identity.target.as_deref()?, item.identity.server.as_deref()?))
}

fn location(item: &SessionItem, format: LocationFormat) -> String {
    match server(item) {
        Some((target, server)) => format.session(target, server, &item.identity.session_name),
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
    use crate::render::test_items::{drawn, session, tally};
    use agtmux_api::wire::TargetCounts;
    use agtmux_core::state::State;

    #[test]
    fn the_states_column_is_shown_on_request() {
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
    fn merged_sessions_show_their_targets() {
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
