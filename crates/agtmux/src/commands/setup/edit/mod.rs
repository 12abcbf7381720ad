//! Edits settings files without changing any other byte. The parsers only provide positions.

#[cfg(test)]
mod comment_tests;
mod entry_text;
pub(super) mod flat_hooks;
pub(super) mod hooks;
mod json;
pub(super) mod notify;
pub(super) mod own_file;
mod remove_entries;
mod separators;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Facts about the original text that the edited text does not show. Uninstall needs them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EditHints {
    /// The text between brackets that were empty, by their path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) empty: BTreeMap<String, String>,
    /// The whole text, if it contained no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) blank: Option<String>,
    /// Setup added the version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) version: bool,
    /// The events that setup installed. Another version of agtmux may install others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<String>,
}

impl EditHints {
    fn for_events(events: &[&str]) -> Self {
        Self { events: events.iter().map(|event| (*event).to_owned()).collect(), ..Self::default() }
    }
}

/// Why a text cannot be edited, with the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditError {
    pub(super) line: usize,
    pub(super) why: String,
}

impl EditError {
    fn at(text: &str, offset: usize, why: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
        Self { line: 1 + before.iter().filter(|byte| **byte == b'\n').count(), why: why.into() }
    }
}

/// A replacement of a range of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextSplice {
    range: Range<usize>,
    text: String,
}

impl TextSplice {
    fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { range: at..at, text: text.into() }
    }

    fn remove(range: Range<usize>) -> Self {
        Self { range, text: String::new() }
    }
}

/// Applies splices that do not overlap. Splices at the same position keep their order.
fn apply(text: &str, mut splices: Vec<TextSplice>) -> String {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut out = String::with_capacity(text.len() + splices.iter().map(|splice| splice.text.len()).sum::<usize>());
    let mut done = 0;
    for splice in splices {
        out.push_str(&text[done..splice.range.start]);
        out.push_str(&splice.text);
        done = splice.range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The offset after a byte order mark.
fn content_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The indentation of the line at this position.
fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(content_start(text), |newline| newline + 1)
}

fn starts_its_line(text: &str, at: usize) -> bool {
    let start = line_start(text, at);
    start > content_start(text) && text[start..at].chars().all(|c| c == ' ' || c == '\t')
}
