use agtmux_api::wire::WindowItem;

use super::cell::Cell;
use super::colour::Colour;
use super::places::Places;
use super::summary::total;
use super::table::{Column, Table};

pub(crate) fn windows(items: &[WindowItem], with_agent_status: bool) -> Table {
    let places = Places::among(items.iter().map(|item| (&*item.identity.target, &*item.identity.server)));
    let mut columns = vec![Column::needed("WINDOW", 8), Column::needed("NAME", 6), Column::needed("AGENTS", 3)];
    if with_agent_status {
        columns.extend([Column::needed("STATE", 7), Column::needed("WAITING", 3), Column::needed("RUNNING", 3)]);
    }
    let mut table = Table::new(columns);
    let mut items: Vec<&WindowItem> = items.iter().collect();
    items.sort_by(|a, b| a.identity.cmp(&b.identity));
    for item in items {
        let mut cells = vec![place(item, places), Cell::of(Some(&item.window_name)), Cell::number(total(&item.counts))];
        if with_agent_status {
            cells.extend([top_state(item), Cell::number(item.waiting), Cell::number(item.running)]);
        }
        table.row(cells);
    }
    table
}

fn place(item: &WindowItem, places: Places) -> Cell {
    let id = &item.identity;
    Cell::new(&places.session(&id.target, &id.server, &id.session_name)).with_tail(format!(":{}", id.window_id))
}

fn top_state(item: &WindowItem) -> Cell {
    item.top_state.map_or_else(Cell::none, |state| Cell::new(state.as_str()).coloured(Colour::of(state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{drawn, tally, window};
    use agtmux_core::state::State;

    #[test]
    fn agent_status_is_shown_when_asked_for() {
        let mut busy = window("work", 2, "api");
        busy.counts = tally(&[(State::WaitingInput, 1), (State::Running, 2)]);
        (busy.top_state, busy.waiting, busy.running) = (Some(State::WaitingInput), 1, 2);
        let items = [busy, window("work", 1, "evil\x1b[31m\nname")];
        insta::assert_snapshot!(drawn(&windows(&items, false), 80), @r"
        WINDOW   NAME                AGENTS
        work:@1  evil\x1b[31m\nname  0
        work:@2  api                 3
        ");
        insta::assert_snapshot!(drawn(&windows(&items, true), 80), @r"
        WINDOW   NAME                AGENTS  STATE          WAITING  RUNNING
        work:@1  evil\x1b[31m\nname  0       -              0        0
        work:@2  api                 3       waiting_input  1        2
        ");
    }
}
