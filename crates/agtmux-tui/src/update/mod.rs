//! Changes the model. Pure: `now` is an argument, and everything to do is returned as effects.

mod act;
mod answer;
mod copy;
mod custom;
mod effect;
mod fleet;
mod keys;
mod marks;
mod mouse;
mod outcome;
mod overlay;
mod picker;
mod preview;
mod tasks;
mod typing;

use std::time::Duration;

use jiff::Timestamp;

pub use effect::{ProgramCall, RequestFailure, TuiEffect, TuiMessage, TuiOutcome};
pub use fleet::sync;
pub(crate) use marks::asks_the_same;

use crate::age;
use crate::model::{AgentKey, DrawnScreen, TuiModel};

/// The name of this client in the audit log.
pub const CLIENT_NAME: &str = "tui";

/// Rows keep their places for this long after a key press.
pub const CALM: Duration = Duration::from_secs(2);

/// Applies a message, and returns what is to be done. News of the fleet wait until something needs them, or until the
/// next frame.
pub fn update(model: &mut TuiModel, message: TuiMessage, now: Timestamp) -> Vec<TuiEffect> {
    let mut effects = match message {
        TuiMessage::Stream(_) | TuiMessage::PaneWrote | TuiMessage::Resized => Vec::new(),
        _ => sync(model, now),
    };
    effects.extend(noticing_the_dialog(model, |model| apply(model, message, now)));
    preview::continue_at_the_end(model, now);
    effects
}

fn apply(model: &mut TuiModel, message: TuiMessage, now: Timestamp) -> Vec<TuiEffect> {
    match message {
        TuiMessage::Key(key) => {
            model.last_input = Some(now);
            keys::press(model, key, now)
        }
        TuiMessage::Mouse(event) => mouse::mouse(model, event, now),
        TuiMessage::Paste(text) => {
            model.last_input = Some(now);
            overlay::paste(model, &text)
        }
        TuiMessage::Resized => Vec::new(),
        TuiMessage::Stream(signal) => {
            fleet::receive(model, signal);
            Vec::new()
        }
        TuiMessage::Due => due(model, now),
        TuiMessage::PaneWrote => {
            preview::schedule(model, now);
            Vec::new()
        }
        TuiMessage::Done(outcome) => outcome::done(model, outcome, now),
    }
}

/// Runs a change. If another agent or another dialog is selected then, its reader starts at the top, with nothing
/// marked.
fn noticing_the_dialog<T>(model: &mut TuiModel, change: impl FnOnce(&mut TuiModel) -> T) -> T {
    let before = shown_dialog(model);
    let result = change(model);
    if shown_dialog(model) != before {
        model.detail_scroll = 0;
        model.marked.clear();
    }
    result
}

/// Notes what is on the screen now.
pub fn drawn(model: &mut TuiModel, screen: DrawnScreen, now: Timestamp) -> Vec<TuiEffect> {
    model.drawn = screen.after(&model.drawn);
    model.detail_scroll = model.detail_scroll.min(model.drawn.max_detail_scroll);
    preview::follow_selection(model, now)
}

/// When something must happen although no event arrives.
pub fn next_due(model: &TuiModel, now: Timestamp) -> Option<Timestamp> {
    let order = model.list.is_stale.then(|| calm_at(model)).flatten();
    let ages = age::next_change(model.drawn.ages.iter().copied(), now);
    let escape = model.typing.as_ref().and_then(|typing| typing.escape_at);
    [order, ages, model.preview.due, escape, model.marks.next_wake(now)].into_iter().flatten().min()
}

fn due(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    fleet::wake_snoozed(model, now);
    fleet::arrange_if_calm(model, now);
    let mut effects = typing::due(model, now);
    effects.extend(preview::read_if_due(model, now));
    effects
}

/// The moment at which rows may move again.
fn calm_at(model: &TuiModel) -> Option<Timestamp> {
    model.last_input.map(|at| at + CALM)
}

fn shown_dialog(model: &TuiModel) -> Option<(AgentKey, Option<String>)> {
    let row = model.list.selected()?;
    Some((row.key.clone(), row.item.dialog.as_ref().map(|dialog| dialog.fingerprint.clone())))
}
