//! Notes of the person about agents: selected for one action, pinned, put last.

use std::time::Duration;

use jiff::Timestamp;

use super::{TuiEffect, fleet};
use crate::model::{AgentRow, MenuChoice, MenuItem, SnoozeEnd, TuiMenu, TuiModel, TuiNotice, TuiOverlay};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Selects the agent for an action on several, or no longer, and goes to the next row.
pub(super) fn toggle_chosen(model: &mut TuiModel) {
    let Some(key) = model.list.selected().map(|row| row.key.clone()) else { return };
    if !model.chosen.remove(&key) {
        model.chosen.insert(key);
    }
    model.list.step(true, false, |_| true);
}

/// Selects all agents whose dialogs are the same as the one on the screen.
pub(super) fn choose_same(model: &mut TuiModel) {
    let Some(row) = model.list.selected().filter(|row| row.dialog().is_some()) else {
        model.notice = Some(TuiNotice::error("no dialog is open", None));
        return;
    };
    let same: Vec<_> = model.list.rows().filter(|other| asks_the_same(row, other)).map(|row| row.key.clone()).collect();
    if same.len() < 2 {
        model.notice = Some(TuiNotice::info("no other agent asks the same"));
        return;
    }
    let text = format!("{} agents ask the same: an answer goes to all of them, after a question", same.len());
    model.chosen = same.into_iter().collect();
    model.notice = Some(TuiNotice::info(text));
}

/// The same agent type, kind, question, command and options. The fingerprint is computed from these texts. A dialog of
/// which a part is missing is the same as no other.
pub(crate) fn asks_the_same(one: &AgentRow, other: &AgentRow) -> bool {
    let (Some(this), Some(that)) = (one.dialog(), other.dialog()) else { return false };
    one.item.agent_type == other.item.agent_type
        && !this.subject_truncated
        && this.fingerprint == that.fingerprint
        && (this.kind, &this.question, &this.subject, &this.options)
            == (that.kind, &that.question, &that.subject, &that.options)
}

pub(super) fn toggle_pin(model: &mut TuiModel, now: Timestamp) {
    let Some(target) = model.target() else { return };
    let is_pinned = model.marks.toggle_pin(&target.key);
    let text = if is_pinned { "stays at the top" } else { "is no longer pinned" };
    model.notice = Some(TuiNotice::info(format!("{} {text}", target.label)));
    fleet::apply_marks(model, now);
}

/// Ends the snooze of the agent, or asks how long to put it last.
pub(super) fn snooze(model: &mut TuiModel, now: Timestamp) {
    let Some(target) = model.target() else { return };
    if model.marks.wake(&target.key) {
        model.notice = Some(TuiNotice::info(format!("{} is no longer snoozed", target.label)));
        return fleet::apply_marks(model, now);
    }
    let item = |key, label: &str, end| MenuItem { key, label: label.to_owned(), choice: MenuChoice::Snooze(end) };
    let items = vec![
        item('z', "until it changes", SnoozeEnd::Change),
        item('1', "for 10 minutes", SnoozeEnd::After(10 * MINUTE)),
        item('2', "for 1 hour", SnoozeEnd::After(HOUR)),
        item('3', "for 8 hours", SnoozeEnd::After(8 * HOUR)),
    ];
    let title = format!("snooze {}", target.label);
    model.overlay = Some(TuiOverlay::Menu(TuiMenu { title, body: Vec::new(), items, dismissed: "not snoozed" }));
}

pub(super) fn snooze_until(model: &mut TuiModel, end: SnoozeEnd, now: Timestamp) -> Vec<TuiEffect> {
    let Some(row) = model.list.selected() else { return Vec::new() };
    let until = match end {
        SnoozeEnd::Change => None,
        SnoozeEnd::After(time) => Some(now + time),
    };
    model.marks.snooze(&row.key.clone(), &row.item.clone(), until);
    model.notice = Some(TuiNotice::info("snoozed; the same key ends it"));
    fleet::apply_marks(model, now);
    Vec::new()
}
