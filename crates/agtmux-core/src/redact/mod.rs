//! Redacts secrets from text and JSON before they are stored, logged or sent.
//!
//! [`table::SECRET_PATTERNS`] defines what a secret is. Redact a text before cutting it, because half a key is not
//! recognised.

mod json;
mod literals;
mod rules;
mod secret_names;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use json::json;

/// Redacting one secret can expose another, so redaction runs in rounds. Two rounds are usual. This limit bounds the
/// work for hostile input.
const MAX_ROUNDS: usize = 8;

/// Replaces every secret with `[redacted:<kind>]`. Takes time linear in the length of the text.
pub fn text(text: &str) -> Cow<'_, str> {
    redact(text, Extent::WholeMatch)
}

/// Like [`text`], but hides only literal values and never shell code. Used for the text of an approval. If a text could
/// be a secret or code, it stays visible, because the user must see the command that would run.
pub fn text_with_code(text: &str) -> Cow<'_, str> {
    redact(text, Extent::Literals)
}

/// How much of a match is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    WholeMatch,
    /// Redacts only the parts that cannot be shell code.
    Literals,
}

fn redact(text: &str, extent: Extent) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    for _ in 0..MAX_ROUNDS {
        match rules::round(&out, extent) {
            Some(cleaner) => out = Cow::Owned(cleaner),
            None => break,
        }
    }
    out
}

/// Compiles all patterns now, so that the first redaction is not slow.
pub fn prepare() {
    rules::prepare();
    secret_names::prepare();
}

fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// Whether this is already a redaction marker, optionally followed by punctuation. A marker with an unknown kind does
/// not count: it may be forged.
fn is_marked(secret: &str) -> bool {
    let rest = secret.strip_prefix("[redacted:").and_then(|rest| rest.split_once(']'));
    rest.is_some_and(|(kind, after)| {
        table::SECRET_PATTERNS.iter().any(|row| row.kind == kind) && after.chars().all(|c| ",;:.)}]>|&\\".contains(c))
    })
}
