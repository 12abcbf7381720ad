use std::collections::BTreeMap;

use super::agents::{AgentKey, AgentRow};
use crate::sgr;

/// Which rows the list shows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RowFilter {
    pub text: String,
    pub waiting_only: bool,
}

/// The screens that were read, as plain text.
#[derive(Debug, Default)]
pub struct ReadScreens {
    texts: BTreeMap<AgentKey, String>,
}

/// The most screens that are kept.
const MAX_SCREENS: usize = 200;

impl ReadScreens {
    pub fn keep(&mut self, key: &AgentKey, lines: &[String]) {
        if self.texts.len() >= MAX_SCREENS && !self.texts.contains_key(key) {
            self.texts.pop_first();
        }
        let plain: Vec<String> = lines.iter().map(|line| sgr::without_colours(line)).collect();
        self.texts.insert(key.clone(), plain.join("\n"));
    }

    fn of(&self, key: &AgentKey) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }
}

impl RowFilter {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && !self.waiting_only
    }

    /// Every word must occur in the name, the place, the question, the directory, the title or the screen. In the name
    /// and the place, the letters of a word may be apart.
    pub fn accepts(&self, row: &AgentRow, screens: &ReadScreens) -> bool {
        if self.waiting_only && !row.is_waiting() {
            return false;
        }
        self.words().all(|word| fields(row, screens).any(|field| field.matches(&word)))
    }

    /// The line that a word of the filter was found in, if the row does not show that line.
    pub fn reason(&self, row: &AgentRow, screens: &ReadScreens) -> Option<String> {
        let hidden = self.words().find_map(|word| {
            let field = fields(row, screens).find(|field| field.matches(&word))?;
            (!field.is_shown).then(|| (field.name, line_with(&field.text, &word)))
        });
        hidden.map(|(name, line)| format!("{name}: {line}"))
    }

    fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.text.split_whitespace().map(str::to_lowercase)
    }
}

/// A text of a row that is searched.
struct SearchedField<'a> {
    name: &'static str,
    text: std::borrow::Cow<'a, str>,
    /// Whether the row shows the text.
    is_shown: bool,
    /// Whether the letters of a word may be apart.
    is_name: bool,
}

impl SearchedField<'_> {
    fn matches(&self, word: &str) -> bool {
        let text = self.text.to_lowercase();
        text.contains(word) || (self.is_name && has_letters(&text, word))
    }
}

fn fields<'a>(row: &'a AgentRow, screens: &'a ReadScreens) -> impl Iterator<Item = SearchedField<'a>> {
    let item = &row.item;
    let dialog = item.dialog.as_ref();
    let name = |text: String| SearchedField { name: "name", text: text.into(), is_shown: true, is_name: true };
    let text = |name, text: Option<&'a str>, is_shown| {
        text.map(|text| SearchedField { name, text: text.into(), is_shown, is_name: false })
    };
    let names = [Some(row.agent_type().to_owned()), Some(row.place()), item.name.clone()];
    names.into_iter().flatten().map(name).chain(
        [
            text("window", Some(item.window_name.as_str()), true),
            text("directory", item.cwd.as_deref(), true),
            text("command", dialog.and_then(|dialog| dialog.subject.as_deref()), false),
            text("question", dialog.map(|dialog| dialog.question.as_str()), false),
            text("title", item.title.as_deref(), dialog.is_none()),
            text("screen", screens.of(&row.key), false),
        ]
        .into_iter()
        .flatten(),
    )
}

/// Whether the letters of the word occur in this order.
fn has_letters(text: &str, word: &str) -> bool {
    let mut rest = text.chars();
    word.chars().all(|wanted| rest.any(|c| c == wanted))
}

fn line_with(text: &str, word: &str) -> String {
    let line = text.lines().find(|line| line.to_lowercase().contains(word)).unwrap_or(text);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
