//! What was drawn last. An answer applies to the dialog that the person saw, not to a newer one.

use agtmux_api::wire::PaneItem;
use jiff::Timestamp;
use ratatui::layout::Rect;

use super::agents::AgentKey;
use crate::keymap::TuiCommand;

/// The result of drawing: what is on the screen, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrawnScreen {
    pub list: Rect,
    /// The first line of the list that is visible.
    pub top: usize,
    pub detail: Rect,
    /// How far the details can be scrolled.
    pub max_detail_scroll: usize,
    pub dialog: Option<DrawnDialog>,
    /// The window of the text reader.
    pub reader_height: usize,
    /// The agent whose preview is visible.
    pub preview_of: Option<AgentKey>,
    /// Since when the visible agents are in their states, if the age is on the screen.
    pub ages: Vec<Timestamp>,
    /// The hints in the last row, and what a click on them does.
    pub hints: Vec<(Rect, TuiCommand)>,
    /// The options of the dialog.
    pub options: Vec<(Rect, u32)>,
    /// The answers of the open menu.
    pub menu: Vec<(Rect, char)>,
    /// The entries of the open picker, by their places among those that match.
    pub picker: Vec<(Rect, usize)>,
    /// The height of the part between the first and the last row.
    pub body_height: u16,
}

/// A dialog on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnDialog {
    pub key: AgentKey,
    pub fingerprint: String,
    /// When the dialog appeared on the screen.
    pub since: Timestamp,
    /// Whether every line of the dialog has been on the screen.
    pub is_read: bool,
}

impl DrawnScreen {
    /// Continues what is known about a dialog that was on the screen before.
    pub fn after(self, before: &Self) -> Self {
        let dialog = self.dialog.map(|dialog| match &before.dialog {
            Some(old) if (&old.key, &old.fingerprint) == (&dialog.key, &dialog.fingerprint) => {
                DrawnDialog { since: old.since, is_read: dialog.is_read || old.is_read, ..dialog }
            }
            _ => dialog,
        });
        Self { dialog, ..self }
    }
}

/// The last screen that was read of the selected agent's pane.
#[derive(Debug, Default)]
pub struct PanePreview {
    pub key: Option<AgentKey>,
    /// The lines with their colours, or why there are none.
    pub content: Option<Result<Vec<String>, String>>,
    /// When the pane is read next.
    pub due: Option<Timestamp>,
    /// Whether a read is under way.
    pub is_reading: bool,
    /// Whether the pane wrote while a read was under way.
    pub is_stale: bool,
    /// Whether the pane wrote while the person was reading its history.
    pub has_newer: bool,
    /// How far to scroll once the history has arrived.
    pub history_scroll: Option<usize>,
    /// Whether `content` starts with the history of the pane.
    pub has_history: bool,
    /// The agents whose panes were read before: the audit log records only the first read of each.
    pub read_before: std::collections::BTreeSet<AgentKey>,
}

/// What an agent asks or does, in one line: the command or file that needs approval, the question, or the title.
pub(crate) fn summary(item: &PaneItem) -> Option<String> {
    let dialog = item.dialog.as_ref().map(|dialog| {
        let subject = dialog.subject.as_deref().filter(|subject| !subject.trim().is_empty());
        subject.map_or(dialog.question.as_str(), without_heading)
    });
    let text = dialog.or(item.title.as_deref())?;
    let words: Vec<&str> = text.split_whitespace().take(40).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// A text in one line.
pub(crate) fn without_line_ends(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The subject without a first line such as `Bash command`, which names only its kind.
fn without_heading(subject: &str) -> &str {
    let Some((first, rest)) = subject.trim_start().split_once('\n') else { return subject };
    let is_word = |word: &str| word.chars().all(char::is_alphabetic);
    let is_heading = first.starts_with(char::is_uppercase)
        && first.split_whitespace().count() <= 3
        && first.split_whitespace().all(is_word);
    if is_heading && !rest.trim().is_empty() { rest } else { subject }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_of_a_subject_is_left_out_of_the_row() {
        assert_eq!(without_heading("Bash command\ncargo test"), "cargo test");
        assert_eq!(without_heading("make clean\nmake all"), "make clean\nmake all");
        assert_eq!(without_heading("Edit file\n"), "Edit file\n");
        assert_eq!(without_heading("Fetch https://x\ny"), "Fetch https://x\ny");
    }
}
