use agtmux_api::wire::WatchEvent;
use agtmux_client::StreamSignal;
use jiff::Timestamp;

use super::{TuiEffect, calm_at, preview};
use crate::model::{FleetConnection, TuiModel, TuiNotice};

/// Takes a signal of the event stream.
pub(super) fn receive(
    model: &mut TuiModel,
    signal: Result<StreamSignal<WatchEvent>, TuiNotice>,
    now: Timestamp,
) -> Vec<TuiEffect> {
    let signal = match signal {
        Ok(signal) => signal,
        Err(notice) => {
            model.connection = FleetConnection::Failed(notice);
            return Vec::new();
        }
    };
    match &signal {
        StreamSignal::CaughtUp => model.connection = FleetConnection::Live,
        StreamSignal::Disconnected(reason) => model.connection = FleetConnection::Interrupted(reason.clone()),
        StreamSignal::Event(_) => {}
    }
    if !model.fleet.receive(signal) {
        return Vec::new();
    }
    let before = model.list.selected().map(|row| row.item.clone());
    let rows = model.known.update(model.fleet.items());
    model.list.receive(rows);
    arrange_if_calm(model, now);
    let after = model.list.selected().map(|row| row.item.clone());
    // A pane on another host reports no writes to its terminal, but its agent changes.
    if before != after { preview::schedule(model, now) } else { Vec::new() }
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
    model.list.arrange(model.grouping, &model.filter);
}
