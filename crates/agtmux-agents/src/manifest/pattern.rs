//! Regular expressions of rules.

use regex::{Regex, RegexBuilder};

/// Compiled, in bytes. Matching takes time in proportion to it and to the text: no pattern makes the daemon wait.
const MAX_PATTERN_BYTES: usize = 256 << 10;
const MAX_DFA_BYTES: usize = 1 << 20;

/// A pattern of a rule; `what` names it in the error. `^` and `$` fit at each line.
pub(super) fn compile(what: &str, pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() {
        return Err(format!("{what} is empty and would fit everything"));
    }
    let compiled =
        RegexBuilder::new(pattern).multi_line(true).size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_DFA_BYTES).build();
    compiled.map_err(|error| format!("{what} is no regular expression: {}", reason(&error.to_string())))
}

/// The last line has the reason; those before it draw where it is.
fn reason(error: &str) -> &str {
    let last = error.trim_end().lines().next_back().unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last)
}

pub(super) fn compile_all(what: &str, patterns: &[String]) -> Result<Vec<Regex>, String> {
    patterns.iter().map(|pattern| compile(what, pattern)).collect()
}

pub(super) fn compile_optional(what: &str, pattern: Option<&str>) -> Result<Option<Regex>, String> {
    pattern.map(|pattern| compile(what, pattern)).transpose()
}

/// Names stand in explanations and in `answers.dialogs`.
pub(super) fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if plain { Ok(()) } else { Err(format!("{kind} '{name}': a name has lower case letters, digits and '-'")) }
}
