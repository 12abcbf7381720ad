//! What a person sees when there is nothing to list.

use agtmux_client::StreamSignal;
use agtmux_tui::model::TuiNotice;
use agtmux_tui::update::{TuiEffect, TuiMessage};
use crossterm::event::KeyCode;

use crate::fixture::{ModelSeat, look};

#[test]
fn without_a_tmux_server_the_screen_says_how_to_start_one() {
    let mut seat = ModelSeat::empty(80, 24, look());
    assert!(seat.screen().contains("connecting to the daemon"));
    seat.receive([]);
    insta::assert_snapshot!("no-server-80x24", seat.screen());
}

#[test]
fn without_an_agent_the_screen_says_how_to_start_one() {
    let mut seat = ModelSeat::new(80, 24);
    for pane in 1..=9 {
        seat.change(pane, |item| {
            (item.runtime_id, item.agent_type, item.state, item.dialog) = (None, None, None, None);
        });
    }
    // The ended agents stay listed; a new interface has never seen them.
    let panes: Vec<_> = seat.model.fleet.items().panes.values().cloned().collect();
    let mut fresh = ModelSeat::empty(80, 24, look());
    fresh.receive(panes.iter().map(|pane| {
        let item = agtmux_api::wire::WatchItem::from(&**pane);
        agtmux_api::wire::WatchEvent::of_item(agtmux_api::wire::WatchEventKind::Snapshot, item, 1, seat.now)
    }));
    insta::assert_snapshot!("no-agent-80x24", fresh.screen());
}

#[test]
fn a_daemon_of_another_version_is_named_with_the_next_step() {
    let mut seat = ModelSeat::new(80, 24);
    let hint = Some("agtmux daemon restart".to_owned());
    let notice = TuiNotice::error("the daemon is version 0.0.9 with API 0; this is agtmux 0.1.0 with API 1", hint);
    seat.tell(TuiMessage::Stream(Err(notice)));
    insta::assert_snapshot!("other-version-80x24", seat.screen());
    assert_eq!(seat.key(KeyCode::Enter), [TuiEffect::Connect]);
}

#[test]
fn a_broken_stream_keeps_the_list_and_says_that_it_is_out_of_date() {
    let mut seat = ModelSeat::new(80, 24);
    seat.tell(TuiMessage::Stream(Ok(StreamSignal::Disconnected("the daemon closed the stream".into()))));
    let screen = seat.screen();
    assert!(screen.contains("daemon disconnected; out of date"), "{screen}");
    assert!(screen.contains("claude"), "{screen}");
    seat.tell(TuiMessage::Stream(Ok(StreamSignal::CaughtUp)));
    assert!(!seat.screen().contains("out of date"));
}

#[test]
fn a_filter_without_a_match_says_how_to_remove_it() {
    let mut seat = ModelSeat::new(80, 24);
    seat.press('/');
    seat.write("nothing like this");
    seat.key(KeyCode::Enter);
    let screen = seat.screen();
    assert!(
        screen.contains("no agent matches 'nothing like this'") && screen.contains("remove the filter"),
        "{screen}"
    );
}
