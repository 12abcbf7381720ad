//! Compiles the regular expressions of rules.

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern. Matching time is proportional to this size and to the text, so no pattern
/// can block the daemon.
const MAX_PATTERN_BYTES: usize = 256 << 10;
const MAX_DFA_BYTES: usize = 1 << 20;

/// Compiles a pattern of a rule; `what` names the pattern in errors. `^` and `$` match at each line.
pub(super) fn compile(what: &str, pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() {
        return Err(format!("{what} is empty and would match everything"));
    }
    let compiled =
        RegexBuilder::new(pattern).multi_line(true).size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_DFA_BYTES).build();
    compiled.map_err(|error| format!("{what} is not a valid regular expression: {}", reason(&error.to_string())))
}

/// The last line contains the reason; the lines before it show the position.
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

/// Checks a rule name. Names are used in explanations and in `answers.dialogs`.
pub(super) fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if plain {
        Ok(())
    } else {
        Err(format!("{kind} '{name}': a name may contain only lower-case letters, digits and '-'"))
    }
}
