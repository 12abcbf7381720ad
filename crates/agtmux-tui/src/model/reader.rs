//! A text that fills the window, with scrolling and search.

use super::agents::AgentKey;
use crate::editor::TextEditor;

#[derive(Debug)]
pub struct TextReader {
    pub title: String,
    pub subject: ReaderSubject,
    /// The agent that the text is about, if any.
    pub key: Option<AgentKey>,
    /// None until the answer of the daemon has arrived.
    pub lines: Option<Vec<String>>,
    pub scroll: usize,
    /// The text to search for while it is typed.
    pub typing: Option<TextEditor>,
    pub search: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderSubject {
    Output,
    Explanation,
    History,
    Audit,
}

impl TextReader {
    pub fn new(title: String, subject: ReaderSubject, key: Option<AgentKey>) -> Self {
        Self { title, subject, key, lines: None, scroll: 0, typing: None, search: String::new() }
    }

    /// Takes the text. The newest line of an output is at its end.
    pub fn receive(&mut self, lines: Vec<String>, height: usize) {
        self.lines = Some(lines);
        if self.subject == ReaderSubject::Output {
            self.scroll = self.max_scroll(height);
        }
    }

    /// The last first line, so that the text fills the window.
    pub fn max_scroll(&self, height: usize) -> usize {
        self.lines.as_ref().map_or(0, |lines| lines.len().saturating_sub(height))
    }

    pub fn scroll_by(&mut self, lines: isize, height: usize) {
        self.scroll = self.scroll.saturating_add_signed(lines).min(self.max_scroll(height));
    }

    /// The text without its colours.
    pub fn plain_text(&self) -> String {
        let lines = self.lines.iter().flatten().map(|line| crate::sgr::without_colours(line).trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Scrolls to the next line that contains the search text, or to the previous one.
    pub fn find(&mut self, forward: bool, height: usize) -> bool {
        let Some(lines) = &self.lines else { return false };
        let wanted = self.search.to_lowercase();
        let matches = |line: &usize| crate::sgr::without_colours(&lines[*line]).to_lowercase().contains(&wanted);
        let count = lines.len();
        let searched = if wanted.is_empty() { 0 } else { count };
        let found = (1..=searched)
            .map(|distance| match forward {
                true => (self.scroll + distance) % count,
                false => (self.scroll + count - distance) % count,
            })
            .find(matches);
        if let Some(line) = found {
            self.scroll = line.min(self.max_scroll(height));
        }
        found.is_some()
    }
}
