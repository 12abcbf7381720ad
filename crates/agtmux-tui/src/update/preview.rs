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

/// Schedules a read because the pane may have changed.
pub(super) fn schedule(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    let preview = &mut model.preview;
    if preview.is_reading {
        preview.is_stale = true;
    } else if preview.key.is_some() && preview.due.is_none() {
        preview.due = Some(now + SETTLE);
    }
    Vec::new()
}

pub(super) fn read_if_due(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    if model.preview.due.is_none_or(|due| due > now) {
        return Vec::new();
    }
    model.preview.due = None;
    let is_covered = matches!(model.overlay, Some(TuiOverlay::Reader(_)));
    let row = model.list.selected().filter(|row| Some(&row.key) == model.preview.key.as_ref() && !is_covered);
    let Some((key, mut action)) = row.map(|row| (row.key.clone(), output_of(row))) else { return Vec::new() };
    action.again = !model.preview.read_before.insert(key.clone());
    model.preview.is_reading = true;
    vec![TuiEffect::ReadPreview { key, action }]
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
    result: Result<OutputReport, RequestFailure>,
    now: Timestamp,
) -> Vec<TuiEffect> {
    let preview = &mut model.preview;
    if preview.key.as_ref() != Some(key) {
        return Vec::new();
    }
    preview.is_reading = false;
    let is_first = preview.content.is_none();
    let tty = result.as_ref().ok().and_then(|report| report.tty.clone());
    preview.content = Some(result.map(|report| report.lines).map_err(|failure| failure.message));
    if std::mem::take(&mut preview.is_stale) {
        preview.due = Some(now + SETTLE);
    }
    // The terminal of a pane stays the same, so it is watched once.
    if is_first && tty.is_some() { vec![TuiEffect::WatchTerminal(tty)] } else { Vec::new() }
}
