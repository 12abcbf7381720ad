//! Reads the pane of the selected agent while it is on the screen, after its program has written.

use std::time::Duration;

use agtmux_api::wire::{ActionGuards, OutputAction, OutputReport};
use jiff::Timestamp;

use super::{CLIENT_NAME, RequestFailure, TuiEffect};
use crate::model::{AgentKey, AgentRow, PanePreview, TuiModel, TuiOverlay};

/// How long an agent is selected before its pane is read, so that moving through the list reads no panes.
const REST: Duration = Duration::from_millis(150);
/// The time between two reads. It limits them to ten per second.
const SETTLE: Duration = Duration::from_millis(100);
/// The time between two reads while the person types into the pane.
const TYPING_SETTLE: Duration = Duration::from_millis(30);
/// How many lines are read once the person scrolls back.
const HISTORY_LINES: u32 = 2000;

/// Starts to follow the agent whose preview is on the screen now, and ends to follow the one before.
pub(super) fn follow_selection(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    let wanted = model.drawn.preview_of.clone();
    if model.preview.key == wanted {
        return Vec::new();
    }
    let read_before = std::mem::take(&mut model.preview.read_before);
    let due = wanted.is_some().then(|| now + REST);
    model.preview = PanePreview { key: wanted, due, read_before, ..PanePreview::default() };
    vec![TuiEffect::WatchTerminal(None)]
}

/// Schedules a read because the pane may have changed. While the person reads the history, the screen stays as it is.
pub(super) fn schedule(model: &mut TuiModel, now: Timestamp) {
    if is_held(model) {
        model.preview.has_newer = true;
        return;
    }
    let settle = if model.typing.is_some() { TYPING_SETTLE } else { SETTLE };
    let preview = &mut model.preview;
    if preview.is_reading {
        preview.is_stale = true;
    } else if preview.key.is_some() && preview.due.is_none() {
        preview.due = Some(now + settle);
    }
}

/// Whether the person has scrolled the screen of the agent back.
fn is_held(model: &TuiModel) -> bool {
    model.detail_scroll > 0 && !scrolls_dialog(model)
}

/// Whether the details can be scrolled through a dialog. Otherwise they are scrolled through the screen of the agent.
pub(super) fn scrolls_dialog(model: &TuiModel) -> bool {
    model.typing.is_none() && model.list.selected().is_some_and(|row| row.dialog().is_some())
}

/// Reads the screen again when the person is back at its end.
pub(super) fn continue_at_the_end(model: &mut TuiModel, now: Timestamp) {
    if !is_held(model) && std::mem::take(&mut model.preview.has_newer) {
        schedule(model, now);
    }
}

pub(super) fn read_if_due(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    if model.preview.due.is_none_or(|due| due > now) {
        return Vec::new();
    }
    model.preview.due = None;
    let is_covered = matches!(model.overlay, Some(TuiOverlay::Reader(_)));
    if is_covered { Vec::new() } else { read(model, None) }
}

/// Reads the history of the pane, so that the person can scroll back in it. It is scrolled by these lines then.
pub(super) fn read_history(model: &mut TuiModel, scroll: usize) -> Vec<TuiEffect> {
    if model.preview.has_history || model.preview.history_scroll.is_some() {
        return Vec::new();
    }
    model.preview.history_scroll = Some(scroll);
    read(model, Some(HISTORY_LINES))
}

fn read(model: &mut TuiModel, lines: Option<u32>) -> Vec<TuiEffect> {
    let row = model.list.selected().filter(|row| Some(&row.key) == model.preview.key.as_ref());
    let Some((key, action)) = row.map(|row| (row.key.clone(), output_of(row))) else { return Vec::new() };
    let again = !model.preview.read_before.insert(key.clone());
    model.preview.is_reading = true;
    vec![TuiEffect::ReadPreview { key, action: OutputAction { lines, again, ..action } }]
}

/// The request that reads the screen of an agent with its colours.
pub(super) fn output_of(row: &AgentRow) -> OutputAction {
    let guards =
        ActionGuards { r#ref: row.reference(), client: Some(CLIENT_NAME.to_owned()), ..ActionGuards::default() };
    OutputAction { guards, ansi: true, ..OutputAction::default() }
}

/// Takes the screen that was read.
pub(super) fn received(
    model: &mut TuiModel,
    key: &AgentKey,
    has_history: bool,
    result: Result<OutputReport, RequestFailure>,
    now: Timestamp,
) -> Vec<TuiEffect> {
    if let (Ok(report), false) = (&result, has_history) {
        model.screens.keep(key, &report.lines);
    }
    if model.preview.key.as_ref() != Some(key) {
        return Vec::new();
    }
    let is_held = is_held(model);
    let preview = &mut model.preview;
    preview.is_reading = false;
    let wanted = if has_history { preview.history_scroll.take() } else { None };
    if is_held && !has_history {
        preview.has_newer = true;
        return Vec::new();
    }
    let is_first = preview.content.is_none();
    let tty = result.as_ref().ok().and_then(|report| report.tty.clone());
    preview.content = Some(result.map(|report| report.lines).map_err(|failure| failure.message));
    preview.has_history = has_history;
    if std::mem::take(&mut preview.is_stale) {
        preview.due = Some(now + SETTLE);
    }
    if let Some(scroll) = wanted {
        model.detail_scroll = scroll;
    }
    // The terminal of a pane stays the same, so it is watched once.
    if is_first && tty.is_some() { vec![TuiEffect::WatchTerminal(tty)] } else { Vec::new() }
}
