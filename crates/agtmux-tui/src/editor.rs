//! A small text editor: the text to send, the filter, the text to search for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The text and the place of the cursor.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TextEditor {
    text: String,
    /// The byte index of the cursor.
    cursor: usize,
}

impl TextEditor {
    pub fn with_text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor and the text after it.
    pub fn around_cursor(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Inserts pasted text. A carriage return of a paste is a line end.
    pub fn paste(&mut self, text: &str) {
        self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Applies a key. Returns false if the key does not edit.
    pub fn apply(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('w') if control => self.delete_before(self.word_start()),
            KeyCode::Char('u') if control => self.delete_before(self.line_start()),
            KeyCode::Char('k') if control => drop(self.text.drain(self.cursor..self.line_end())),
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.delete_before(self.previous()),
            KeyCode::Delete => drop(self.text.drain(self.cursor..self.next())),
            KeyCode::Left => self.cursor = self.previous(),
            KeyCode::Right => self.cursor = self.next(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.move_line(false),
            KeyCode::Down => self.move_line(true),
            _ => return false,
        }
        true
    }

    fn delete_before(&mut self, start: usize) {
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    fn previous(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Moves to the same column of the next or the previous line.
    fn move_line(&mut self, down: bool) {
        let start = self.line_start();
        let column = self.text[start..self.cursor].chars().count();
        let line = match down {
            true if self.line_end() == self.text.len() => return,
            true => self.line_end() + 1,
            false if start == 0 => return,
            false => self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1),
        };
        let end = self.text[line..].find('\n').map_or(self.text.len(), |at| line + at);
        self.cursor = self.text[line..end].char_indices().nth(column).map_or(end, |(at, _)| line + at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut TextEditor, code: KeyCode, modifiers: KeyModifiers) {
        assert!(editor.apply(KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn text_is_edited_at_the_cursor() {
        let mut editor = TextEditor::with_text("fix the tésts");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "fix the ");
        editor.paste("a\r\nbc");
        press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Left, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Char('é'), KeyModifiers::NONE);
        assert_eq!(editor.around_cursor(), ("fé", "ix the a\nbc"));
        press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), "fx the a\nbc");
        press(&mut editor, KeyCode::End, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
        assert_eq!(editor.around_cursor(), ("fx the a\nbc", ""));
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "fx the a\n");
    }
}
