//! Recognises prompts: decides whether the line at the cursor asks for input.
//!
//! [`table`] defines the prompts. A line is judged as a whole, because prompt words also occur in the middle of
//! sentences and log lines.

mod cursor;
mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

pub use cursor::{CursorPosition, cursor_line};

/// A line with more bytes than this is never a prompt.
const MAX_LEN: usize = 400;

/// Appended to a line that ended with a line feed. The cursor is then on the empty line below that line.
const LINE_ENDED: char = '\n';

struct PromptRule {
    pattern: Regex,
    unless: Option<Regex>,
}

static RULES: LazyLock<Vec<PromptRule>> = LazyLock::new(|| compile_rules(table::PROMPT_PATTERNS));
/// The rules that also apply if the cursor is on the empty line below the prompt.
static ABOVE_CURSOR_RULES: LazyLock<Vec<PromptRule>> = LazyLock::new(|| compile_rules(table::ABOVE_CURSOR_PATTERNS));
static LOG_LINE: LazyLock<Regex> = LazyLock::new(|| compile(table::LOG_LINE));

fn compile_rules(rows: &[table::PromptPattern]) -> Vec<PromptRule> {
    rows.iter().map(|row| PromptRule { pattern: compile(row.pattern), unless: row.unless.map(compile) }).collect()
}

fn compile(pattern: &str) -> Regex {
    let pattern = table::PARTS.iter().fold(pattern.to_owned(), |text, (name, part)| text.replace(name, part));
    RegexBuilder::new(&pattern)
        .case_insensitive(true)
        .ignore_whitespace(true)
        .build()
        .unwrap_or_else(|error| panic!("invalid prompt pattern: {error}"))
}

/// Returns the prompt if the line asks for input. `line` is the result of [`cursor_line`].
pub fn recognize_prompt(line: &str) -> Option<String> {
    let from_above = line.ends_with(LINE_ENDED);
    let prompt = line.trim();
    if prompt.is_empty() || prompt.len() > MAX_LEN || LOG_LINE.is_match(prompt) {
        return None;
    }
    let fits = |rule: &PromptRule| {
        rule.pattern.is_match(prompt) && !rule.unless.as_ref().is_some_and(|unless| unless.is_match(prompt))
    };
    let is_prompt = ABOVE_CURSOR_RULES.iter().any(fits) || (!from_above && RULES.iter().any(fits));
    is_prompt.then(|| prompt.to_owned())
}
