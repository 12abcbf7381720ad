//! The regular expressions of rules.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// The maximum size of a compiled pattern. The time of a match grows with this size and with the length of the text.
/// This limit therefore keeps a pattern from blocking the daemon.
const MAX_PATTERN_BYTES: usize = 256 << 10;
const MAX_DFA_BYTES: usize = 1 << 20;

/// A pattern of a rule; `^` and `$` match at the start and end of each line. A pattern is compiled on first use,
/// because compiled patterns take memory and most users run only a few of the known agents.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Pattern {
    text: String,
    #[serde(skip)]
    compiled: Arc<OnceLock<Regex>>,
}

impl Pattern {
    /// Compiles the pattern now; `what` names the pattern in errors.
    pub(super) fn check(&self, what: &str) -> Result<(), String> {
        if self.text.is_empty() {
            return Err(format!("{what} is empty and would match everything"));
        }
        if self.compiled.get().is_none() {
            let compiled = compile(&self.text)
                .map_err(|error| format!("{what} is not a valid regular expression: {}", reason(&error.to_string())))?;
            self.compiled.get_or_init(|| compiled);
        }
        Ok(())
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        let compile = || compile(&self.text).unwrap_or_else(|error| unreachable!("manifests are checked: {error}"));
        self.compiled.get_or_init(compile)
    }
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).multi_line(true).size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_DFA_BYTES).build()
}

/// The reason in an error of the `regex` crate. The last line of the error contains the reason; the lines before show
/// the position.
fn reason(error: &str) -> &str {
    let last = error.trim_end().lines().next_back().unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last)
}

pub(super) fn check_all<'p>(what: &str, patterns: impl IntoIterator<Item = &'p Pattern>) -> Result<(), String> {
    patterns.into_iter().try_for_each(|pattern| pattern.check(what))
}

/// Checks a rule name. Names are used in explanations and in `answers.dialogs`.
pub(super) fn check_name(kind: &str, name: &str) -> Result<(), String> {
    match is_plain_name(name) {
        true => Ok(()),
        false => Err(format!("{kind} '{name}': a name may contain only lower-case letters, digits and '-'")),
    }
}

pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
