//! Whether a line at which the cursor stands asks for something.
//!
//! What counts as a prompt is one table, [`table::ROWS`]. A line is judged as a whole: words that a prompt would have prove nothing in
//! the middle of a sentence or of a log.

mod cursor;
mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

pub use cursor::{CursorPosition, cursor_line};

/// Nobody asks at such length.
const MAX_LEN: usize = 400;

/// Marks a line that ended with a line feed, so that the cursor stands on an empty one below it.
const LINE_ENDED: char = '\n';

struct PromptRule {
    pattern: Regex,
    unless: Option<Regex>,
    /// Also where the cursor stands on the empty line below.
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
        .unwrap_or_else(|error| panic!("the table of prompts is wrong: {error}"))
}

/// What is asked, if the line asks something. The line is what [`cursor_line`] gives.
pub fn recognize_prompt(line: &str) -> Option<String> {
    let from_above = line.ends_with(LINE_ENDED);
    let asked = line.trim();
    if asked.is_empty() || asked.len() > MAX_LEN || LOG_LINE.is_match(asked) {
        return None;
    }
    let fits = |rule: &&PromptRule| {
        (!from_above || rule.asked_above_cursor)
            && rule.pattern.is_match(asked)
            && !rule.unless.as_ref().is_some_and(|unless| unless.is_match(asked))
    };
    RULES.iter().find(fits).map(|_| asked.to_owned())
}
