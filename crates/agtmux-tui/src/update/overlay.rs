//! Keys while an overlay is open.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

use super::{TuiEffect, act, answer, copy, fleet, marks, picker};
use crate::editor::TextEditor;
use crate::model::{ComposePurpose, ComposedText, MenuChoice, TextReader, TuiMenu, TuiModel, TuiNotice, TuiOverlay};

pub(super) fn press(model: &mut TuiModel, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    let Some(overlay) = model.overlay.take() else { return Vec::new() };
    match overlay {
        TuiOverlay::Menu(menu) => choose(model, &menu, key, now),
        TuiOverlay::Picker(picker) => picker::press(model, picker, key, now),
        TuiOverlay::Filter(editor) => filter(model, editor, key),
        TuiOverlay::Compose(composed) => compose(model, composed, key),
        TuiOverlay::Reader(reader) => read(model, reader, key),
    }
}

pub(super) fn paste(model: &mut TuiModel, text: &str) -> Vec<TuiEffect> {
    match &mut model.overlay {
        Some(TuiOverlay::Compose(composed)) => composed.editor.paste(text),
        Some(TuiOverlay::Filter(editor)) => {
            editor.insert(&text.split_whitespace().collect::<Vec<_>>().join(" "));
            model.filter.text = editor.text().to_owned();
            fleet::arrange(model);
        }
        Some(TuiOverlay::Picker(picker)) => {
            picker.editor.insert(&text.split_whitespace().collect::<Vec<_>>().join(" "));
            picker.select(0);
        }
        None if model.typing.is_some() => {
            model.notice =
                Some(TuiNotice::error("a pasted text was not typed", Some("Esc Esc, then s sends it".into())));
        }
        _ => {}
    }
    Vec::new()
}

/// Does what the key stands for. Every other key closes the menu.
fn choose(model: &mut TuiModel, menu: &TuiMenu, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    let pressed = match key.code {
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(c),
        _ => None,
    };
    let item = menu.items.iter().find(|item| Some(item.key) == pressed);
    match item.map(|item| item.choice.clone()) {
        Some(MenuChoice::Kill { agents, signal }) => act::kill(model, agents, signal),
        Some(MenuChoice::Copy { what, text }) => copy::copy(model, what, text),
        Some(MenuChoice::Snooze(end)) => marks::snooze_until(model, end, now),
        Some(MenuChoice::AnswerAll(answers)) => answer::give_all(model, answers),
        None => {
            model.notice = Some(TuiNotice::info(menu.dismissed));
            Vec::new()
        }
    }
}

/// Filters while the person types. Enter keeps the filter, Esc removes it.
fn filter(model: &mut TuiModel, mut editor: TextEditor, key: KeyEvent) -> Vec<TuiEffect> {
    match key.code {
        KeyCode::Enter => {}
        KeyCode::Esc => model.filter.text.clear(),
        KeyCode::Down | KeyCode::Up => {
            model.list.step(key.code == KeyCode::Down, false, |_| true);
            model.overlay = Some(TuiOverlay::Filter(editor));
            return Vec::new();
        }
        _ => {
            editor.apply(key);
            model.filter.text = editor.text().to_owned();
            model.overlay = Some(TuiOverlay::Filter(editor));
        }
    }
    fleet::arrange(model);
    Vec::new()
}

/// Enter submits. Alt-Enter and Ctrl-J begin a new line. Esc keeps the text of a prompt as a draft.
fn compose(model: &mut TuiModel, mut composed: ComposedText, key: KeyEvent) -> Vec<TuiEffect> {
    let has = |modifier| key.modifiers.contains(modifier);
    match key.code {
        KeyCode::Enter if has(KeyModifiers::ALT) || has(KeyModifiers::SHIFT) => composed.editor.insert("\n"),
        KeyCode::Char('j') if has(KeyModifiers::CONTROL) => composed.editor.insert("\n"),
        KeyCode::Enter if composed.editor.text().trim().is_empty() => {}
        KeyCode::Enter => return submit(model, composed),
        KeyCode::Esc => {
            let text = composed.editor.text().to_owned();
            if let (ComposePurpose::Send, Some(agent)) = (&composed.purpose, composed.agents.into_iter().next()) {
                match text.is_empty() {
                    true => drop(model.drafts.remove(&agent.key)),
                    false => drop(model.drafts.insert(agent.key, text)),
                }
            }
            return Vec::new();
        }
        _ => {
            composed.editor.apply(key);
        }
    }
    model.overlay = Some(TuiOverlay::Compose(composed));
    Vec::new()
}

fn submit(model: &mut TuiModel, composed: ComposedText) -> Vec<TuiEffect> {
    let text = composed.editor.text().to_owned();
    match (composed.purpose, composed.agents.as_slice()) {
        (ComposePurpose::Send, _) => act::submit_prompt(model, composed.agents, &text),
        (ComposePurpose::Answer { fingerprint }, [agent]) => answer::submit_text(model, &agent.key, &fingerprint, text),
        _ => Vec::new(),
    }
}

fn read(model: &mut TuiModel, mut reader: TextReader, key: KeyEvent) -> Vec<TuiEffect> {
    let height = model.drawn.reader_height.max(1);
    if let Some(typing) = reader.typing.take() {
        search(&mut reader, typing, key, height);
    } else {
        let page = isize::try_from(height).unwrap_or(isize::MAX);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Vec::new(),
            KeyCode::Char('j') | KeyCode::Down => reader.scroll_by(1, height),
            KeyCode::Char('k') | KeyCode::Up => reader.scroll_by(-1, height),
            KeyCode::Char(' ') | KeyCode::PageDown => reader.scroll_by(page, height),
            KeyCode::Char('b') | KeyCode::PageUp => reader.scroll_by(-page, height),
            KeyCode::Char('g') | KeyCode::Home => reader.scroll = 0,
            KeyCode::Char('G') | KeyCode::End => reader.scroll = reader.max_scroll(height),
            KeyCode::Char('y') => {
                let text = reader.plain_text();
                model.overlay = Some(TuiOverlay::Reader(reader));
                return copy::copy(model, "the text", text);
            }
            KeyCode::Char('/') => reader.typing = Some(TextEditor::default()),
            KeyCode::Char(c @ ('n' | 'N')) if !reader.find(c == 'n', height) => {
                model.notice = Some(TuiNotice::info("not found"));
            }
            _ => {}
        }
    }
    model.overlay = Some(TuiOverlay::Reader(reader));
    Vec::new()
}

fn search(reader: &mut TextReader, mut typing: TextEditor, key: KeyEvent, height: usize) {
    match key.code {
        KeyCode::Esc => {}
        KeyCode::Enter => {
            reader.search = typing.text().to_owned();
            // Searches upwards: the newest lines are at the end.
            reader.find(false, height);
        }
        _ => {
            typing.apply(key);
            reader.typing = Some(typing);
        }
    }
}
