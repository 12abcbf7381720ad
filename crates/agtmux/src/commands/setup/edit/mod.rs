//! Adds hooks to settings files and removes the hooks, without changing any other byte. Syntax trees give the positions
//! of the edits, and each edit replaces text at its position.

#[cfg(test)]
mod comment_tests;
mod hook_format;
pub(super) mod hooks;
mod json;
pub(super) mod mcp_json;
pub(super) mod mcp_toml;
pub(super) mod notify;
pub(super) mod own_file;
pub(super) mod package_file;
pub(super) mod package_list;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Edits one kind of settings file.
pub(super) trait SettingsEditor {
    /// Adds the hooks. The caller must make sure that the text contains no hooks of agtmux.
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError>;

    /// The path of agtmux in the installed hooks. `None` if no hooks are installed.
    fn installed_program(&self, text: &str, hints: &EditHints) -> Result<Option<String>, EditError>;

    /// Whether the text contains exactly the hooks that an installation adds.
    fn is_current(&self, text: &str, hints: &EditHints) -> Result<bool, EditError>;

    /// The exact reverse of [`install`](Self::install).
    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError>;
}

/// Facts about the original text that the edited text does not show. Uninstall needs them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EditHints {
    /// The original text between brackets that held no item. The key is the path of the brackets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) empty: BTreeMap<String, String>,
    /// The whole original text, if it contained no JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) blank: Option<String>,
    /// Whether setup added the `version` field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) version: bool,
    /// The events for which setup installed hooks. Another version of agtmux may have installed these hooks, for events
    /// that this version does not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<String>,
    /// The digest of the file that setup wrote, for a file without a place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// The directory of the package that setup added to a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) package: Option<String>,
}

/// A character with which a file may begin. Editors get the text without this character.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

impl EditHints {
    /// The original text, if it contained no JSON value. Removes the byte order mark, which older versions of agtmux
    /// recorded as part of this text.
    fn blank_text(&self) -> Option<&str> {
        self.blank.as_deref().map(|text| text.trim_start_matches(BYTE_ORDER_MARK))
    }
}

/// Why setup cannot edit a text, and the line of the problem.
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

/// A part of the text and its replacement.
type TextSplice = (Range<usize>, String);

/// Applies splices that do not overlap. Splices at the same position keep their order.
fn apply(text: &str, splices: impl IntoIterator<Item = TextSplice>) -> String {
    let mut splices: Vec<TextSplice> = splices.into_iter().collect();
    splices.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (range, new) in splices {
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out + &text[done..]
}

fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The indentation of the line at this position.
fn indent_at(text: &str, at: usize) -> &str {
    indent_of(&text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..])
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only whitespace precedes this position on its line. False on the first line.
fn starts_its_line(text: &str, at: usize) -> bool {
    text[..at].trim_end_matches([' ', '\t']).ends_with('\n')
}
