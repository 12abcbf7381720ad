//! Snapshots of the screens. `INSTA_UPDATE=always cargo test -p agtmux-tui screens::` accepts a change.

use agtmux_api::wire::{EvidenceKind, OutputReport, TargetItem, TargetStatus};
use agtmux_core::target::{TargetHealth, TargetKind};
use agtmux_core::task::{TaskEvent, TaskEventKind};
use agtmux_tui::model::TerminalLook;
use agtmux_tui::update::{TuiEffect, TuiMessage, TuiOutcome};
use crossterm::event::KeyCode;

use crate::fixture::ModelSeat;

const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (60, 20), (40, 10)];

/// Records the screen in all sizes, after the person has done something.
#[track_caller]
fn record(name: &str, act: impl Fn(&mut ModelSeat)) {
    for (width, height) in SIZES {
        let mut seat = ModelSeat::new(width, height);
        act(&mut seat);
        let screen = seat.screen();
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), screen);
    }
}

/// Selects an agent whose pane shows these lines.
fn show_preview(seat: &mut ModelSeat, pane: u32, lines: &[&str]) {
    let read = seat.select(pane).into_iter().find_map(|effect| match effect {
        TuiEffect::ReadPreview { key, .. } => Some(key),
        _ => None,
    });
    // A terminal without room for the preview does not read the pane.
    let Some(key) = read else { return };
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    let report = OutputReport { lines, title: None, full_screen: false, tty: Some("/dev/pts/9".into()) };
    let effects = seat.done(TuiOutcome::Preview { key, has_history: false, result: Ok(report) });
    assert_eq!(effects, [TuiEffect::WatchTerminal(Some("/dev/pts/9".into()))]);
}

#[test]
fn the_list_and_the_dialog_of_the_first_waiting_agent() {
    record("list", |_| {});
}

#[test]
fn the_preview_of_a_running_agent() {
    let lines =
        ["❯ make the pages faster", "", "\u{1b}[32m●\u{1b}[0m Working on 日本語 pages", "", "  esc to interrupt", ""];
    record("preview", |seat| show_preview(seat, 3, &lines));
}

#[test]
fn the_details_on_a_narrow_terminal() {
    record("details", |seat| drop(seat.press('l')));
}

#[test]
fn a_hostile_dialog_is_shown_as_text() {
    record("hostile", |seat| {
        seat.select(9);
        seat.press('l');
    });
}

#[test]
fn groups_by_state() {
    record("by-state", |seat| {
        seat.press('g');
        seat.press('g');
    });
}

#[test]
fn the_editor() {
    record("editor", |seat| {
        seat.select(6);
        seat.press('s');
        seat.write("Fix the links.");
        seat.tell(TuiMessage::Paste("\nThen build 文書.".into()));
    });
}

#[test]
fn the_question_before_a_kill() {
    record("kill", |seat| drop(seat.press('x')));
}

#[test]
fn the_keyboard_in_a_pane() {
    record("typing", |seat| {
        show_preview(seat, 3, &["❯ make the pages faster", "● Working", ""]);
        seat.key(KeyCode::Tab);
    });
}

#[test]
fn the_commands_that_match_a_word() {
    record("palette", |seat| {
        seat.press(':');
        seat.write("agent");
    });
}

#[test]
fn several_selected_agents() {
    record("several", |seat| {
        seat.select(3);
        seat.press(' ');
        seat.select(6);
        seat.press(' ');
        seat.press('x');
    });
}

#[test]
fn the_tasks() {
    record("tasks", |seat| {
        assert_eq!(seat.press('t'), [TuiEffect::ReadTasks]);
        let events = [
            task_event("tests", TaskEventKind::Started, None),
            task_event("server", TaskEventKind::Input, None),
            task_event("lint", TaskEventKind::Exited, Some(0)),
            task_event("tests", TaskEventKind::Exited, Some(3)),
        ];
        seat.done(TuiOutcome::Tasks(Ok(events.into())));
    });
}

#[test]
fn the_targets() {
    record("targets", |seat| {
        assert_eq!(seat.press('T'), [TuiEffect::ReadTargets]);
        let targets = ["host", "vm1"].map(target);
        seat.done(TuiOutcome::Targets(Ok(targets.into())));
        seat.key(KeyCode::Down);
    });
}

fn task_event(task: &str, kind: TaskEventKind, exit_code: Option<i32>) -> TaskEvent {
    let prompt = (kind == TaskEventKind::Input).then_some("Overwrite? [y/N]");
    let event = serde_json::json!({
        "type": kind, "task": task, "window_id": "@7", "pane_id": "%70", "run_id": null, "session": "pi-shop-1",
        "exit_code": exit_code, "signal": null, "prompt": prompt, "bell_count": null,
        "recent_output": ["2 tests failed"], "level": "info", "message": "", "seq": 1,
        "delivery": {"status": true, "notice": true, "message": false, "agent_turn": null},
        "at": "2026-11-19T11:58:00Z",
    });
    serde_json::from_value(event).expect("an event")
}

/// A healthy target, or one that does not answer.
fn target(name: &str) -> TargetItem {
    let is_local = name == "host";
    let status = TargetStatus {
        name: name.into(),
        kind: if is_local { TargetKind::Local } else { TargetKind::Ssh },
        ssh_target: (!is_local).then(|| name.into()),
        health: if is_local { TargetHealth::Ok } else { TargetHealth::Down },
        evidence: if is_local { EvidenceKind::Native } else { EvidenceKind::Nothing },
        agtmux_version: is_local.then(|| "0.1.0".into()),
        since: "2026-11-19T11:40:00Z".parse().expect("a time"),
        fault: None,
        message: (!is_local).then(|| "ssh: connect to host vm1 port 22: No route to host".into()),
        hint: (!is_local).then(|| "ssh vm1 true".into()),
        clock_ahead_ms: None,
    };
    TargetItem { status, panes: 9, agents: if is_local { 8 } else { 1 } }
}

#[test]
fn the_keys() {
    record("keys", |seat| drop(seat.press('?')));
}

#[test]
fn a_filter_while_it_is_typed() {
    record("filter", |seat| {
        seat.press('/');
        seat.write("rate");
    });
}

#[test]
fn a_terminal_without_colours_and_utf_8() {
    let mut seat = ModelSeat::new(120, 40);
    seat.model.look = TerminalLook { home: seat.model.look.home.clone(), ..TerminalLook::default() };
    let screen = seat.screen();
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!("plain-120x40", screen);
}

#[test]
fn only_a_visible_pane_is_read() {
    let mut narrow = ModelSeat::new(50, 20);
    assert_eq!(narrow.select(3), [], "the list only");
    let mut wide = ModelSeat::new(120, 40);
    let reads = wide.select(3);
    assert!(matches!(reads[..], [TuiEffect::ReadPreview { .. }]), "{reads:?}");
    assert_eq!(wide.wait(std::time::Duration::from_secs(60)), [], "nothing was written to the pane");
    wide.tell(TuiMessage::PaneWrote);
    assert_eq!(wide.wait(std::time::Duration::from_secs(1)), [], "the first read is still under way");
}

#[test]
fn a_selected_agent_is_read_only_after_a_rest() {
    let mut seat = ModelSeat::new(120, 40);
    for _ in 0..5 {
        seat.press('j');
        seat.draw();
        assert_eq!(seat.wait(std::time::Duration::from_millis(50)), []);
    }
}
