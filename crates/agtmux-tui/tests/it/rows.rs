//! Order, groups, filter and selection of the rows.

use std::time::Duration;

use agtmux_api::wire::{WatchEvent, WatchEventKind, WatchItem};
use agtmux_core::state::State;
use agtmux_tui::model::RowGrouping;
use agtmux_tui::update::next_due;
use crossterm::event::{KeyCode, MouseEventKind};

use crate::fixture::ModelSeat;

fn wait(seat: &mut ModelSeat, milliseconds: u64) {
    seat.wait(Duration::from_millis(milliseconds));
}

fn finish(seat: &mut ModelSeat, pane: u32) {
    let now = seat.now;
    seat.change(pane, |item| {
        (item.state, item.since, item.dialog, item.needs_action) = (Some(State::Running), Some(now), None, false);
    });
}

#[test]
fn rows_are_in_attention_order_and_groups_by_their_first_row() {
    let mut seat = ModelSeat::new(120, 40);
    assert_eq!(seat.rows(), [1, 2, 3, 9, 7, 4, 5, 6, 8]);
    for _ in 0..3 {
        seat.press('g');
    }
    assert_eq!(seat.model.grouping, RowGrouping::None);
    assert_eq!(seat.rows(), [1, 2, 9, 4, 5, 3, 6, 7, 8]);
}

#[test]
fn rows_do_not_move_within_two_seconds_of_a_key() {
    let mut seat = ModelSeat::new(120, 40);
    let before = seat.rows();
    seat.press('j');
    finish(&mut seat, 1);
    wait(&mut seat, 1_900);
    assert_eq!(seat.rows(), before);
    assert_eq!(next_due(&seat.model, seat.now), Some(seat.now + Duration::from_millis(100)));
    wait(&mut seat, 100);
    assert_eq!(seat.rows(), [2, 3, 1, 9, 7, 4, 5, 6, 8]);
}

#[test]
fn rows_move_at_once_when_the_person_is_calm() {
    let mut seat = ModelSeat::new(120, 40);
    finish(&mut seat, 1);
    assert_eq!(seat.rows(), [2, 3, 1, 9, 7, 4, 5, 6, 8]);
}

#[test]
fn the_selection_stays_with_its_agent() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(3);
    finish(&mut seat, 1);
    seat.press('g');
    seat.press('g');
    assert_eq!(seat.selected(), 3);
}

#[test]
fn the_selection_moves_to_the_next_row_when_its_pane_is_gone() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(9);
    let items = &seat.model.fleet.items().panes;
    let item = items.values().find(|item| item.identity.pane_id.0 == 9).expect("recorded").as_ref().clone();
    let gone = WatchEvent::of_item(WatchEventKind::Remove, WatchItem::Pane(Box::new(item)), 201, seat.now);
    seat.receive([gone]);
    assert_eq!(seat.selected(), 4, "the row that took its place");
}

#[test]
fn an_agent_that_ended_stays_until_its_pane_is_used_again() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    seat.change(6, |item| {
        (item.runtime_id, item.agent_type, item.state, item.since, item.dialog) = (None, None, None, None, None);
    });
    assert_eq!(seat.selected(), 6);
    assert!(seat.screen().contains("ended"), "{}", seat.screen());
    let effects = seat.press('r');
    assert!(format!("{effects:?}").contains("Resume"), "{effects:?}");
    seat.change(6, |item| {
        (item.runtime_id, item.state) = (Some("new".into()), Some(State::Idle));
    });
    wait(&mut seat, 2_000);
    assert_eq!(seat.selected(), 6, "the resumed agent in the same pane");
    assert!(!seat.screen().contains("ended"), "{}", seat.screen());
}

#[test]
fn every_word_of_the_filter_must_match() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('/');
    seat.write("claude WEB");
    assert_eq!(seat.rows(), [4, 5]);
    seat.key(KeyCode::Enter);
    assert!(seat.model.overlay.is_none());
    seat.key(KeyCode::Esc);
    assert_eq!(seat.rows().len(), 9);
    for (text, rows) in [("login", vec![1]), ("requests a minute", vec![2]), ("terraform", vec![7]), ("翻訳", vec![4])]
    {
        seat.press('/');
        seat.write(text);
        assert_eq!(seat.rows(), rows, "{text}");
        seat.key(KeyCode::Esc);
    }
}

#[test]
fn waiting_agents_can_be_shown_alone_and_visited_in_turn() {
    let mut seat = ModelSeat::new(120, 40);
    let visited: Vec<u32> = (0..3)
        .map(|_| {
            seat.press('n');
            seat.selected()
        })
        .collect();
    assert_eq!(visited, [2, 9, 1]);
    seat.press('N');
    assert_eq!(seat.selected(), 9);
    seat.press('w');
    assert_eq!(seat.rows(), [1, 2, 9]);
}

#[test]
fn the_mouse_selects_and_scrolls() {
    let mut seat = ModelSeat::new(120, 40);
    seat.click(5, 3);
    assert_eq!(seat.selected(), 2, "the second row of the first group");
    seat.mouse(MouseEventKind::ScrollDown, 5, 3);
    assert_eq!(seat.selected(), 3);
    seat.click(5, 1);
    assert_eq!(seat.selected(), 3, "a title of a group is no agent");
}

#[test]
fn a_list_at_rest_draws_at_the_next_hour() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('/');
    seat.write("opencode");
    seat.key(KeyCode::Enter);
    seat.draw();
    wait(&mut seat, 3_000);
    seat.draw();
    let due = next_due(&seat.model, seat.now).expect("ages change");
    assert_eq!(due.to_string(), "2026-11-19T13:00:00Z");
}
