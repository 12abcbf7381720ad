//! Answers the dialog that is on the screen. A dialog that changed after it was drawn is never answered.

use std::time::Duration;

use agtmux_api::wire::{ActionGuards, DialogAnswer, RespondAction};
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::DialogKind;
use jiff::Timestamp;

use super::{CLIENT_NAME, TuiEffect};
use crate::editor::TextEditor;
use crate::model::{AgentKey, AgentRow, ComposePurpose, ComposedText, TuiModel, TuiNotice, TuiOverlay};

/// A key that was pressed this soon after a dialog appeared was meant for something else.
const READING_TIME: Duration = Duration::from_millis(250);

pub(super) fn approve(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    let asks_for_input = selected_dialog(model).is_some_and(|dialog| dialog.kind == DialogKind::Input);
    if asks_for_input {
        return refuse(model, "this dialog asks for an option: press its number");
    }
    answer(model, DialogAnswer::Approve, now)
}

pub(super) fn deny(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    answer(model, DialogAnswer::Deny, now)
}

/// Chooses an option. In a dialog that takes several, marks it.
pub(super) fn choose(model: &mut TuiModel, n: u32, now: Timestamp) -> Vec<TuiEffect> {
    let Some(dialog) = selected_dialog(model) else { return refuse(model, "no dialog is open") };
    if !dialog.options.iter().any(|option| option.n == n) {
        return refuse(model, &format!("the dialog has no option {n}"));
    }
    if !dialog.multiple {
        return answer(model, DialogAnswer::Option(n), now);
    }
    if !model.marked.remove(&n) {
        model.marked.insert(n);
    }
    Vec::new()
}

pub(super) fn choose_marked(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    let marked = model.marked.iter().copied().collect();
    answer(model, DialogAnswer::Options(marked), now)
}

/// Opens the editor for free text. The text answers the dialog that is open now.
pub(super) fn compose(model: &mut TuiModel, now: Timestamp) {
    let (Some(agent), Some(dialog)) = (model.target(), selected_dialog(model)) else {
        model.notice = Some(TuiNotice::error("no dialog is open", None));
        return;
    };
    let purpose = ComposePurpose::Answer { fingerprint: dialog.fingerprint.clone() };
    if let Err(why) = check_shown(model, false, now) {
        return model.notice = Some(why);
    }
    model.overlay = Some(TuiOverlay::Compose(ComposedText { agent, editor: TextEditor::default(), purpose }));
}

/// Sends the free text, if the agent still shows the dialog for which it was written.
pub(super) fn submit_text(model: &mut TuiModel, key: &AgentKey, fingerprint: &str, text: String) -> Vec<TuiEffect> {
    let row = model.list.rows().find(|row| row.key == *key);
    let dialog = row.and_then(|row| row.item.dialog.as_ref());
    if dialog.is_none_or(|dialog| dialog.fingerprint != fingerprint) {
        return refuse(model, CHANGED);
    }
    let Some(row) = row else { return Vec::new() };
    let effect = respond(row, fingerprint, DialogAnswer::Text(text));
    model.answering = Some(key.clone());
    vec![effect]
}

const CHANGED: &str = "the dialog changed, so nothing was typed; read the new one";

fn answer(model: &mut TuiModel, answer: DialogAnswer, now: Timestamp) -> Vec<TuiEffect> {
    let refuses = answer == DialogAnswer::Deny;
    if let Err(why) = check_shown(model, refuses, now) {
        if model.drawn.dialog.is_none() {
            model.shows_details = true;
        }
        model.notice = Some(why);
        return Vec::new();
    }
    let (Some(row), Some(shown)) = (model.list.selected(), &model.drawn.dialog) else { return Vec::new() };
    let (key, effect) = (row.key.clone(), respond(row, &shown.fingerprint, answer));
    model.answering = Some(key);
    model.marked.clear();
    vec![effect]
}

/// Checks that the person saw the dialog that would be answered.
fn check_shown(model: &TuiModel, refuses: bool, now: Timestamp) -> Result<(), TuiNotice> {
    let refusal = |text: &str| Err(TuiNotice::error(text, None));
    let (Some(row), Some(dialog)) = (model.list.selected(), selected_dialog(model)) else {
        return refusal("no dialog is open");
    };
    if model.answering.is_some() {
        return refusal("the answer before is still being typed");
    }
    let Some(shown) = model.drawn.dialog.as_ref().filter(|shown| shown.key == row.key) else {
        return refusal("read the dialog, then press the key again");
    };
    if shown.fingerprint != dialog.fingerprint {
        return refusal(CHANGED);
    }
    if now < shown.since + READING_TIME {
        return refusal("this dialog has just appeared; read it, then press the key again");
    }
    if !shown.is_read && !refuses {
        return refusal("PgDn shows the rest of the dialog; read it, then answer");
    }
    Ok(())
}

fn respond(row: &AgentRow, fingerprint: &str, answer: DialogAnswer) -> TuiEffect {
    let guards = ActionGuards {
        r#ref: row.reference(),
        if_runtime: row.item.runtime_id.clone(),
        if_dialog: Some(fingerprint.to_owned()),
        client: Some(CLIENT_NAME.to_owned()),
        ..ActionGuards::default()
    };
    let action = RespondAction { guards, answer, accept_truncated: false };
    TuiEffect::Respond { key: row.key.clone(), action }
}

fn selected_dialog(model: &TuiModel) -> Option<&Dialog> {
    model.list.selected().filter(|row| !row.has_ended)?.item.dialog.as_ref()
}

fn refuse(model: &mut TuiModel, why: &str) -> Vec<TuiEffect> {
    model.notice = Some(TuiNotice::error(why, None));
    Vec::new()
}
