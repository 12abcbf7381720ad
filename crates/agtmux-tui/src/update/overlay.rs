//! Keys while an overlay is open.

use agtmux_api::wire::KillSignal;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{TuiEffect, act, answer, fleet};
use crate::editor::TextEditor;
use crate::model::{AgentTarget, ComposePurpose, ComposedText, TextReader, TuiModel, TuiNotice, TuiOverlay};

pub(super) fn press(model: &mut TuiModel, key: KeyEvent) -> Vec<TuiEffect> {
    let Some(overlay) = model.overlay.take() else { return Vec::new() };
    match overlay {
        TuiOverlay::ConfirmKill(agent) => confirm_kill(model, agent, key),
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
        _ => {}
    }
    Vec::new()
}

fn confirm_kill(model: &mut TuiModel, agent: AgentTarget, key: KeyEvent) -> Vec<TuiEffect> {
    let signal = match key.code {
        KeyCode::Char('y') => KillSignal::Int,
        KeyCode::Char('t') => KillSignal::Term,
        KeyCode::Char('K') => KillSignal::Kill,
        _ => {
            model.notice = Some(TuiNotice::info("nothing was sent"));
            return Vec::new();
        }
    };
    act::kill(agent, signal)
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
            if composed.purpose == ComposePurpose::Send {
                match text.is_empty() {
                    true => drop(model.drafts.remove(&composed.agent.key)),
                    false => drop(model.drafts.insert(composed.agent.key, text)),
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
    match composed.purpose {
        ComposePurpose::Send => act::submit_prompt(model, composed.agent, text),
        ComposePurpose::Answer { fingerprint } => answer::submit_text(model, &composed.agent.key, &fingerprint, text),
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
