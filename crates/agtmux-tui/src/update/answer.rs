//! Answers the dialog that is on the screen. A dialog that changed after it was drawn is never answered.

use std::time::Duration;

use agtmux_api::wire::{ActionGuards, DialogAnswer, RespondAction};
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::DialogKind;
use jiff::Timestamp;

use super::{CLIENT_NAME, TuiEffect, asks_the_same};
use crate::editor::TextEditor;
use crate::keymap::TuiCommand;
use crate::model::{
    AgentKey, AgentRow, ComposePurpose, ComposedText, MenuChoice, MenuItem, TuiMenu, TuiModel, TuiNotice, TuiOverlay,
    shown, target_of,
};

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
    let agents = vec![agent];
    model.overlay = Some(TuiOverlay::Compose(ComposedText { agents, editor: TextEditor::default(), purpose }));
}

/// Sends the free text, if the agent still shows the dialog for which it was written.
pub(super) fn submit_text(model: &mut TuiModel, key: &AgentKey, fingerprint: &str, text: String) -> Vec<TuiEffect> {
    let row = model.list.all().iter().find(|row| row.key == *key);
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
    if model.chosen.len() > 1 || (model.chosen.len() == 1 && !model.chosen.contains(&row.key)) {
        confirm_all(model, &answer);
        return Vec::new();
    }
    let (key, effect) = (row.key.clone(), respond(row, &shown.fingerprint, answer));
    model.answering = Some(key);
    model.marked.clear();
    vec![effect]
}

/// Lists the selected agents, and asks whether to give all of them the answer. Each answer is bound to the dialog that
/// is open now.
fn confirm_all(model: &mut TuiModel, answer: &DialogAnswer) {
    let Some(row) = model.list.selected() else { return };
    let members: Vec<&AgentRow> = model.list.all().iter().filter(|row| model.chosen.contains(&row.key)).collect();
    let room = usize::from(model.drawn.body_height).saturating_sub(8);
    let different = members.iter().find(|other| !asks_the_same(row, other));
    let refusal = match different {
        Some(other) => {
            Some(format!("{} asks something else: + selects those that ask the same", target_of(other).label))
        }
        None if members.len() > room => {
            Some(format!("this screen can list only {room} agents: make it larger, or select fewer"))
        }
        None => None,
    };
    if let Some(text) = refusal {
        return model.notice = Some(TuiNotice::error(text, Some("Esc ends the selection".to_owned())));
    }
    let asked =
        row.dialog().map(|dialog| shown::without_line_ends(dialog.subject.as_ref().unwrap_or(&dialog.question)));
    let line =
        |member: &&AgentRow| format!("{}  {}", target_of(member).label, member.item.cwd.as_deref().unwrap_or_default());
    let body = asked.into_iter().chain(members.iter().map(line)).collect();
    let answers = members.iter().filter_map(|member| {
        let fingerprint = &member.dialog()?.fingerprint;
        Some((member.key.clone(), respond_action(member, fingerprint, answer.clone())))
    });
    let choice = MenuChoice::AnswerAll(answers.collect());
    let items = vec![MenuItem { key: 'y', label: format!("give all {} this answer", members.len()), choice }];
    let title = format!("answer {} agents: {}?", members.len(), spoken(row, answer));
    model.overlay = Some(TuiOverlay::Menu(TuiMenu { title, body, items, dismissed: "nothing was typed" }));
}

/// Gives each agent its answer. An agent whose dialog has changed since the question gets none.
pub(super) fn give_all(model: &mut TuiModel, answers: Vec<(AgentKey, RespondAction)>) -> Vec<TuiEffect> {
    let is_open = |(key, action): &(AgentKey, RespondAction)| {
        let row = model.list.all().iter().find(|row| row.key == *key);
        let open = row.and_then(AgentRow::dialog).map(|dialog| dialog.fingerprint.as_str());
        open.is_some() && open == action.guards.if_dialog.as_deref()
    };
    let (open, changed): (Vec<_>, Vec<_>) = answers.into_iter().partition(is_open);
    model.notice = Some(match changed.len() {
        0 => TuiNotice::info(format!("answering {} agents…", open.len())),
        n => TuiNotice::error(format!("{n} dialogs changed and are not answered; answering {}…", open.len()), None),
    });
    model.chosen.clear();
    model.marked.clear();
    open.into_iter().map(|(key, action)| TuiEffect::Respond { key, action }).collect()
}

/// The answer in words.
fn spoken(row: &AgentRow, answer: &DialogAnswer) -> String {
    let label = |n: &u32| row.dialog()?.options.iter().find(|option| option.n == *n).map(|option| option.label.clone());
    match answer {
        DialogAnswer::Option(n) => format!("{n} {}", label(n).unwrap_or_default()),
        other => other.to_string(),
    }
}

/// The dialog that keys for the pane of the selected agent may go to, if one is open.
pub(super) fn dialog_for_keys(model: &TuiModel, now: Timestamp) -> Result<Option<String>, TuiNotice> {
    let Some(dialog) = selected_dialog(model) else { return Ok(None) };
    let shown = model.drawn.dialog.as_ref().filter(|shown| shown.fingerprint == dialog.fingerprint);
    match shown {
        Some(shown) if now >= shown.since + READING_TIME => Ok(Some(shown.fingerprint.clone())),
        _ => Err(TuiNotice::error("this dialog has just appeared; read it, then press the key again", None)),
    }
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
        return refusal(&format!(
            "{} shows the rest of the dialog; read it, then answer",
            model.key(TuiCommand::ScrollDown)
        ));
    }
    Ok(())
}

fn respond(row: &AgentRow, fingerprint: &str, answer: DialogAnswer) -> TuiEffect {
    TuiEffect::Respond { key: row.key.clone(), action: respond_action(row, fingerprint, answer) }
}

fn respond_action(row: &AgentRow, fingerprint: &str, answer: DialogAnswer) -> RespondAction {
    let guards = ActionGuards {
        r#ref: row.reference(),
        if_runtime: row.item.runtime_id.clone(),
        if_dialog: Some(fingerprint.to_owned()),
        client: Some(CLIENT_NAME.to_owned()),
        ..ActionGuards::default()
    };
    RespondAction { guards, answer, accept_truncated: false }
}

fn selected_dialog(model: &TuiModel) -> Option<&Dialog> {
    model.list.selected().filter(|row| !row.has_ended)?.item.dialog.as_ref()
}

fn refuse(model: &mut TuiModel, why: &str) -> Vec<TuiEffect> {
    model.notice = Some(TuiNotice::error(why, None));
    Vec::new()
}
