//! The keyboard is in the pane of an agent. Each key is typed by a request of its own, with the guards of all actions,
//! so that no key reaches another program or another dialog.

use std::time::Duration;

use agtmux_api::wire::{ActionGuards, SendAction, SendReport};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

use super::{RequestFailure, TuiEffect, act, answer, preview};
use crate::model::{AgentKey, PaneTyping, TuiModel, TuiNotice, TypedKey};

/// How long a second Escape may take. A single one goes to the pane after this time.
const SECOND_ESCAPE: Duration = Duration::from_millis(400);
/// The most keys that wait. A person who types faster than the pane takes keys would not see what they do.
const MAX_WAITING: usize = 64;

pub(super) fn begin(model: &mut TuiModel) {
    let row = model.list.selected().filter(|row| !row.has_ended);
    let Some(agent) = row.map(crate::model::target_of) else {
        return model.notice = Some(TuiNotice::info("no agent runs here"));
    };
    model.overlay = None;
    model.detail_scroll = 0;
    model.typing = Some(PaneTyping::new(agent));
}

/// Gives the keyboard back to the list.
pub(super) fn leave(model: &mut TuiModel, notice: TuiNotice) {
    model.typing = None;
    model.notice = Some(notice);
}

pub(super) fn press(model: &mut TuiModel, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    let Some(typing) = &mut model.typing else { return Vec::new() };
    let earlier_escape = typing.escape_at.take().is_some();
    if key.code == KeyCode::Esc && key.modifiers.is_empty() {
        if earlier_escape {
            leave(model, TuiNotice::info("keys are for the list again"));
        } else {
            typing.escape_at = Some(now + SECOND_ESCAPE);
        }
        return Vec::new();
    }
    let Some(name) = tmux_name(key) else {
        model.notice = Some(TuiNotice::error("this key cannot be typed into a pane", None));
        return Vec::new();
    };
    if earlier_escape {
        push(model, "Escape".to_owned(), now);
    }
    push(model, name, now);
    next(model)
}

/// Types a single Escape once no second one can follow.
pub(super) fn due(model: &mut TuiModel, now: Timestamp) -> Vec<TuiEffect> {
    let Some(typing) = model.typing.as_mut().filter(|typing| typing.escape_at.is_some_and(|at| at <= now)) else {
        return Vec::new();
    };
    typing.escape_at = None;
    push(model, "Escape".to_owned(), now);
    next(model)
}

/// Queues a key. A key for a dialog is bound to the dialog that was on the screen.
fn push(model: &mut TuiModel, name: String, now: Timestamp) {
    let dialog = match answer::dialog_for_keys(model, now) {
        Ok(dialog) => dialog,
        Err(why) => return model.notice = Some(why),
    };
    let Some(typing) = &mut model.typing else { return };
    if typing.queue.len() >= MAX_WAITING {
        return model.notice =
            Some(TuiNotice::error("the pane takes keys too slowly; the last keys were dropped", None));
    }
    typing.queue.push_back(TypedKey { name, dialog });
}

/// Sends the next key, after the one before was typed.
fn next(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(typing) = model.typing.as_mut().filter(|typing| !typing.is_sending) else { return Vec::new() };
    let Some(TypedKey { name, dialog }) = typing.queue.pop_front() else { return Vec::new() };
    typing.is_sending = true;
    let guards = ActionGuards { if_dialog: dialog, ..act::guards(&typing.agent) };
    let action = SendAction { guards, keys: vec![name], ..SendAction::default() };
    vec![TuiEffect::TypeKey { key: typing.key().clone(), action }]
}

pub(super) fn typed(
    model: &mut TuiModel,
    key: &AgentKey,
    result: Result<SendReport, RequestFailure>,
    now: Timestamp,
) -> Vec<TuiEffect> {
    let Some(typing) = model.typing.as_mut().filter(|typing| typing.key() == key) else { return Vec::new() };
    typing.is_sending = false;
    if let Err(why) = result {
        // The keys that wait were meant for a pane in another state.
        typing.queue.clear();
        model.notice = Some(why.notice("the key was not typed"));
        return Vec::new();
    }
    preview::schedule(model, now);
    next(model)
}

/// Gives the keyboard back if the agent has ended or is not selected any more.
pub(super) fn check_agent(model: &mut TuiModel) {
    let Some(typing) = &model.typing else { return };
    let row = model.list.selected().filter(|row| row.key == *typing.key());
    if row.is_none_or(|row| row.has_ended) {
        let text = format!("{} has ended; keys are for the list again", typing.agent.label);
        leave(model, TuiNotice::error(text, None));
    }
}

/// The name of a key in tmux.
fn tmux_name(key: KeyEvent) -> Option<String> {
    let name = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Escape".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => return Some("BTab".to_owned()),
        KeyCode::Backspace => "BSpace".to_owned(),
        KeyCode::Delete => "DC".to_owned(),
        KeyCode::Insert => "IC".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::PageUp => "PageUp".to_owned(),
        KeyCode::PageDown => "PageDown".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::F(n @ 1..=12) => format!("F{n}"),
        _ => return None,
    };
    let is_character = matches!(key.code, KeyCode::Char(c) if c != ' ');
    let mut prefix = String::new();
    for (modifier, short) in [(KeyModifiers::CONTROL, "C-"), (KeyModifiers::ALT, "M-"), (KeyModifiers::SHIFT, "S-")] {
        // The character of a shifted key already is the shifted one.
        if key.modifiers.contains(modifier) && !(is_character && modifier == KeyModifiers::SHIFT) {
            prefix.push_str(short);
        }
    }
    let is_plain = prefix.is_empty() || !is_character || name.chars().all(|c| c.is_ascii_alphanumeric());
    match is_plain {
        true if name == "Space" && prefix.is_empty() => Some(" ".to_owned()),
        true => Some(prefix + &name),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_tmux_names() {
        let name = |code, modifiers| tmux_name(KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('a'), none, "a"),
            (KeyCode::Char('A'), KeyModifiers::SHIFT, "A"),
            (KeyCode::Char('é'), none, "é"),
            (KeyCode::Char(' '), none, " "),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, "C-c"),
            (KeyCode::Char('x'), KeyModifiers::ALT, "M-x"),
            (KeyCode::BackTab, KeyModifiers::SHIFT, "BTab"),
            (KeyCode::Left, KeyModifiers::CONTROL, "C-Left"),
            (KeyCode::Enter, KeyModifiers::SHIFT, "S-Enter"),
        ] {
            assert_eq!(name(code, modifiers).as_deref(), Some(expected));
        }
        assert_eq!(name(KeyCode::Char('é'), KeyModifiers::CONTROL), None);
        assert_eq!(name(KeyCode::CapsLock, none), None);
    }
}
