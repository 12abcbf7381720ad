//! Pinned, snoozed and remembered.

use std::time::Duration;

use agtmux_core::state::State;
use agtmux_tui::model::{InterfaceMemory, RowGrouping};
use agtmux_tui::update::{TuiEffect, next_due};
use crossterm::event::KeyCode;

use crate::fixture::{ModelSeat, look};

#[test]
fn a_pinned_agent_is_at_the_top_until_it_is_unpinned() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    seat.press('p');
    assert_eq!((seat.rows()[0], seat.selected()), (6, 6));
    assert!(seat.screen().contains("pinned"), "{}", seat.screen());
    seat.press('p');
    assert_ne!(seat.rows()[0], 6);
}

#[test]
fn a_snoozed_agent_does_not_wait_until_it_changes() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(1);
    seat.press('z');
    seat.press('z');
    assert_eq!((&seat.rows()[..3], seat.model.waiting()), (&[2, 3, 1][..], 2), "the last of its group");
    let visited: Vec<u32> = (0..3)
        .map(|_| {
            seat.press('n');
            seat.selected()
        })
        .collect();
    assert!(!visited.contains(&1), "{visited:?}");
    seat.change(1, |item| item.state_version = Some(99));
    assert_eq!(seat.model.waiting(), 3);
}

#[test]
fn a_snooze_ends_at_its_time_or_by_the_same_key() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(1);
    seat.press('z');
    seat.press('1');
    assert_eq!(seat.model.waiting(), 2);
    seat.model.drawn.ages.clear();
    seat.wait(Duration::from_secs(3));
    assert!(next_due(&seat.model, seat.now).is_some());
    seat.wait(Duration::from_secs(600));
    assert_eq!(seat.model.waiting(), 3);
    seat.select(1);
    seat.press('z');
    seat.press('2');
    seat.press('z');
    assert_eq!(seat.model.waiting(), 3);
}

#[test]
fn only_an_unseen_result_is_marked_as_seen() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    assert_eq!(seat.press('v'), []);
    seat.select(5);
    let effects = seat.press('v');
    let [TuiEffect::MarkSeen { action, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(action.r#ref, "runtime:00000000000000000000000000000005");
}

#[test]
fn the_interface_starts_as_it_ended() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('g');
    seat.press('/');
    seat.write("web");
    seat.key(KeyCode::Enter);
    seat.select(6);
    seat.press('p');
    seat.select(5);
    let memory = seat.model.remember(&InterfaceMemory::default());
    let stored = serde_json::to_string(&memory).expect("it is JSON");
    let mut again = ModelSeat::empty(120, 40, look());
    again.model.restore(serde_json::from_str(&stored).expect("it is JSON"));
    again.show_usual_fleet();
    assert_eq!((again.model.grouping, again.selected()), (RowGrouping::Directory, 5));
    assert_eq!(again.rows(), seat.rows());
    assert_eq!(again.rows()[0], 6, "the pinned agent");
}

#[test]
fn a_finished_row_shows_a_time_that_does_not_change() {
    let mut seat = ModelSeat::new(120, 40);
    let since = "2026-11-19T11:20:00Z".parse().expect("a time");
    for pane in 1..=9 {
        seat.change(pane, |item| (item.state, item.since, item.dialog) = (Some(State::Idle), Some(since), None));
    }
    seat.select(5);
    assert!(seat.screen().contains("11:20"), "{}", seat.screen());
    let before = seat.screen();
    seat.wait(Duration::from_secs(60));
    assert_eq!(seat.screen(), before);
    assert_eq!(next_due(&seat.model, seat.now), None, "at rest nothing is due");
}
