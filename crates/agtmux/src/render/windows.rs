use std::borrow::Borrow;

use agtmux_api::wire::WindowItem;

use super::cell::TableCell;
use super::colour::Colour;
use super::locations::LocationFormat;
use super::summary::total;
use super::table::{TableColumn, TextTable};

pub(crate) fn windows(items: &[impl Borrow<WindowItem>]) -> TextTable {
    let mut items: Vec<&WindowItem> = items.iter().map(Borrow::borrow).collect();
    let format = LocationFormat::for_servers(items.iter().map(|item| (&*item.identity.target, &*item.identity.server)));
    items.sort_by(|a, b| a.identity.cmp(&b.identity));
    TextTable::new(vec![
        TableColumn::required("WINDOW", 8, &items, |item| location(item, format)),
        TableColumn::required("NAME", 6, &items, |item| TableCell::from_option(Some(&item.window_name))),
        TableColumn::required("AGENTS", 3, &items, |item| TableCell::number(total(&item.counts))),
        TableColumn::required("STATE", 7, &items, |item| top_state(item)),
        TableColumn::required("WAITING", 3, &items, |item| TableCell::number(item.waiting)),
        TableColumn::required("RUNNING", 3, &items, |item| TableCell::number(item.running)),
    ])
}

fn location(item: &WindowItem, format: LocationFormat) -> TableCell {
    let id = &item.identity;
    TableCell::new(&format.session(&id.target, &id.server, &id.session_name)).with_tail(format!(":{}", id.window_id))
}

fn top_state(item: &WindowItem) -> TableCell {
    item.top_state
        .map_or_else(TableCell::none, |state| TableCell::new(state.as_str()).coloured(Colour::for_state(state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::{drawn, tally, window};
    use agtmux_core::state::State;

    #[test]
    fn each_window_shows_its_most_urgent_state() {
        let mut busy = window("work", 2, "api");
        busy.counts = tally(&[(State::WaitingInput, 1), (State::Running, 2)]);
        (busy.top_state, busy.waiting, busy.running) = (Some(State::WaitingInput), 1, 2);
        let items = [busy, window("work", 1, "evil\x1b[31m\nname")];
        insta::assert_snapshot!(drawn(&windows(&items), 80), @r"
        WINDOW   NAME                AGENTS  STATE          WAITING  RUNNING
        work:@1  evil\x1b[31m\nname  0       -              0        0
        work:@2  api                 3       waiting_input  1        2
        ");
    }
}
