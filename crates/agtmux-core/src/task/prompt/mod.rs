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

pub use cursor::{Cursor, cursor_line};

/// Nobody asks at such length.
const LONGEST: usize = 400;

/// Marks a line that ended with a line feed, so that the cursor stands on an empty one below it.
const ENDED: char = '\n';

struct Rule {
    pattern: Regex,
    unless: Option<Regex>,
    /// Also where the cursor stands on the empty line below.
    from_above: bool,
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |row: &table::Row| Rule {
        pattern: compile(row.pattern),
        unless: row.unless.map(compile),
        from_above: row.from_above,
    };
    table::ROWS.iter().map(rule).collect()
});

static LOG: LazyLock<Regex> = LazyLock::new(|| compile(table::LOG));

fn compile(pattern: &str) -> Regex {
    let pattern = table::PARTS.iter().fold(pattern.to_owned(), |text, (name, part)| text.replace(name, part));
    RegexBuilder::new(&pattern)
        .case_insensitive(true)
        .ignore_whitespace(true)
        .build()
        .unwrap_or_else(|error| panic!("the table of prompts is wrong: {error}"))
}

/// What is asked, if the line asks something. The line is what [`cursor_line`] gives.
pub fn recognise(line: &str) -> Option<String> {
    let from_above = line.ends_with(ENDED);
    let asked = line.trim();
    if asked.is_empty() || asked.len() > LONGEST || LOG.is_match(asked) {
        return None;
    }
    let fits = |rule: &&Rule| {
        (!from_above || rule.from_above)
            && rule.pattern.is_match(asked)
            && !rule.unless.as_ref().is_some_and(|unless| unless.is_match(asked))
    };
    RULES.iter().find(fits).map(|_| asked.to_owned())
}
