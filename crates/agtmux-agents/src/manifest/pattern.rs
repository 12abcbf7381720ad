//! Regular expressions of rules.

use regex::{Regex, RegexBuilder};

/// A pattern of a rule; `what` names it in the error. `^` and `$` fit at each line.
pub(super) fn compile(what: &str, pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() {
        return Err(format!("{what} is empty and would fit everything"));
    }
    let compiled = RegexBuilder::new(pattern).multi_line(true).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    compiled.map_err(|error| format!("{what} is no regular expression: {error}"))
}

pub(super) fn compile_all(what: &str, patterns: &[String]) -> Result<Vec<Regex>, String> {
    patterns.iter().map(|pattern| compile(what, pattern)).collect()
}

pub(super) fn compile_some(what: &str, pattern: Option<&str>) -> Result<Option<Regex>, String> {
    pattern.map(|pattern| compile(what, pattern)).transpose()
}

/// Names stand in explanations and in `answers.dialogs`.
pub(super) fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if plain { Ok(()) } else { Err(format!("{kind} '{name}': a name has lower case letters, digits and '-'")) }
}
