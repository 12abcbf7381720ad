//! Recognizes prompts: decides whether the line at the cursor asks for input.
//!
//! [`table::PROMPT_PATTERNS`] defines the prompts. A line is judged as a whole: typical prompt words in the middle of a
//! sentence or a log line prove nothing.

mod cursor;
mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

pub use cursor::{CursorPosition, cursor_line};

/// Longer lines are never prompts.
const MAX_LEN: usize = 400;

/// Marks a line that ended with a line feed: the cursor is on the empty line below it.
const LINE_ENDED: char = '\n';

struct PromptRule {
    pattern: Regex,
    unless: Option<Regex>,
    /// Whether the rule also applies if the cursor is on the empty line below.
    asked_above_cursor: bool,
}

static RULES: LazyLock<Vec<PromptRule>> = LazyLock::new(|| {
    let rule = |row: &table::PromptPattern| PromptRule {
        pattern: compile(row.pattern),
        unless: row.unless.map(compile),
        asked_above_cursor: row.asked_above_cursor,
    };
    table::PROMPT_PATTERNS.iter().map(rule).collect()
});

static LOG_LINE: LazyLock<Regex> = LazyLock::new(|| compile(table::LOG_LINE));

fn compile(pattern: &str) -> Regex {
    let pattern = table::PARTS.iter().fold(pattern.to_owned(), |text, (name, part)| text.replace(name, part));
    RegexBuilder::new(&pattern)
        .case_insensitive(true)
        .ignore_whitespace(true)
        .build()
        .unwrap_or_else(|error| panic!("invalid prompt pattern: {error}"))
}

/// Returns the prompt if the line, as returned by [`cursor_line`], asks for input.
pub fn recognize_prompt(line: &str) -> Option<String> {
    let from_above = line.ends_with(LINE_ENDED);
    let prompt = line.trim();
    if prompt.is_empty() || prompt.len() > MAX_LEN || LOG_LINE.is_match(prompt) {
        return None;
    }
    let fits = |rule: &&PromptRule| {
        (!from_above || rule.asked_above_cursor)
            && rule.pattern.is_match(prompt)
            && !rule.unless.as_ref().is_some_and(|unless| unless.is_match(prompt))
    };
    RULES.iter().find(fits).map(|_| prompt.to_owned())
}
