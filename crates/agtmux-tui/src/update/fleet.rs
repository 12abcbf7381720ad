use std::collections::BTreeSet;

use agtmux_api::wire::WatchEvent;
use agtmux_client::StreamSignal;
use jiff::Timestamp;

use super::{TuiEffect, calm_at, noticing_the_dialog, preview, tasks, typing};
use crate::model::{AgentKey, FleetConnection, TuiModel, TuiNotice};

/// Takes a signal of the event stream. The list takes the news over with `sync`.
pub(super) fn receive(model: &mut TuiModel, signal: Result<StreamSignal<WatchEvent>, TuiNotice>) {
    let signal = match signal {
        Ok(signal) => signal,
        Err(notice) => return model.connection = FleetConnection::Failed(notice),
    };
    match &signal {
        StreamSignal::CaughtUp => model.connection = FleetConnection::Live,
        StreamSignal::Disconnected(reason) => model.connection = FleetConnection::Interrupted(reason.clone()),
        StreamSignal::Event(_) => {}
    }
    model.is_fleet_newer |= model.fleet.receive(signal);
}

/// Takes the news of the fleet into the list. Many changes between two frames cost as much as one.
pub fn sync(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    if !std::mem::take(&mut model.is_fleet_newer) {
        return Vec::new();
    }
    noticing_the_dialog(model, |model| {
        let before = model.list.selected().map(|row| row.item.clone());
        take_rows(model, now);
        let known: BTreeSet<&AgentKey> = model.list.all().iter().map(|row| &row.key).collect();
        model.chosen.retain(|key| known.contains(key));
        arrange_if_calm(model, now);
        typing::check_agent(model);
        // A pane on another host reports no writes to its terminal, but its agent changes.
        if before != model.list.selected().map(|row| row.item.clone()) {
            preview::schedule(model, now);
        }
    });
    tasks::refresh(model)
}

fn take_rows(model: &mut TuiModel, now: Timestamp) {
    let rows = model.known.update(model.fleet.items(), &model.marks, now);
    model.list.receive(rows);
}

/// Orders the list again, unless the person has just pressed a key. A list without rows has nothing that could move.
pub(super) fn arrange_if_calm(model: &mut TuiModel, now: Timestamp) {
    let is_calm = calm_at(model).is_none_or(|calm| now >= calm);
    if model.list.is_stale && (is_calm || model.list.lines().is_empty()) {
        arrange(model);
    }
}

/// Orders the list now, because the person asked for another order.
pub(super) fn arrange(model: &mut TuiModel) {
    model.list.arrange(model.grouping, &model.filter, &model.screens);
}

/// Shows a change of pinned and snoozed agents now.
pub(super) fn apply_marks(model: &mut TuiModel, now: Timestamp) {
    take_rows(model, now);
    arrange(model);
}

/// Takes agents back into their places whose snooze has ended.
pub(super) fn wake_snoozed(model: &mut TuiModel, now: Timestamp) {
    let is_over = |row: &crate::model::AgentRow| row.is_snoozed && !model.marks.is_snoozed(&row.key, &row.item, now);
    if model.list.all().iter().any(is_over) {
        take_rows(model, now);
    }
}
