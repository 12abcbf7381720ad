//! Takes secrets out of text and JSON before anything is stored, logged or sent.
//!
//! What counts as a secret is one table, [`table::ROWS`]. Redact before you cut: half a key no longer looks like one.

mod json;
mod rules;
mod secret_names;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use json::json;

/// Taking one secret out can make another visible. Two rounds are usual; a hostile text does not get more than this.
const MAX_ROUNDS: usize = 8;

/// The same text with every secret replaced by `[redacted:<kind>]`. Takes time linear in the length of the text.
pub fn text(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    for _ in 0..MAX_ROUNDS {
        match rules::round(&out) {
            Some(cleaner) => out = Cow::Owned(cleaner),
            None => break,
        }
    }
    out
}

/// Compiles every pattern now. Otherwise the first text waits for that.
pub fn prepare() {
    rules::prepare();
    secret_names::prepare();
}

fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// Whether this is a marker of ours already, perhaps with the punctuation after it. A forged one with anything but a
/// known kind in it is not.
fn is_marked(secret: &str) -> bool {
    let rest = secret.strip_prefix("[redacted:").and_then(|rest| rest.split_once(']'));
    rest.is_some_and(|(kind, after)| {
        table::SECRET_PATTERNS.iter().any(|row| row.kind == kind) && after.chars().all(|c| ",;:.)}]>|&\\".contains(c))
    })
}
