//! A list to pick from: the commands, the tasks, the targets. Typing filters it.

use agtmux_api::wire::PaneIdentity;

use crate::editor::TextEditor;
use crate::keymap::TuiCommand;

#[derive(Debug)]
pub struct TuiPicker {
    pub kind: PickerKind,
    pub editor: TextEditor,
    pub entries: Vec<PickerEntry>,
    /// What the list says while it has no entries.
    pub empty: String,
    selected: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickerKind {
    /// All commands with their keys, by section.
    Keys,
    Palette,
    Tasks,
    Targets,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickerEntry {
    /// The title above the first entry of a section.
    pub section: &'static str,
    /// The key, the name of the task or of the target.
    pub head: String,
    pub text: String,
    /// A second line below the selected entry, such as why a host cannot be reached.
    pub note: Option<String>,
    pub look: EntryLook,
    pub choice: PickerChoice,
}

/// What an entry is marked as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryLook {
    Plain,
    Key,
    Good,
    Done,
    Busy,
    Bad,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerChoice {
    Run(TuiCommand),
    /// The custom command with this index.
    RunCustom(usize),
    ReadTask(ListedTask),
    Connect(String),
    /// For reading only.
    Nothing,
}

/// A task of the list, and where its output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTask {
    pub session: String,
    pub task: String,
    /// The pane of the task, if it is there.
    pub pane: Option<PaneIdentity>,
    /// The last lines of its output, for a task whose pane is gone.
    pub recent: Vec<String>,
}

impl TuiPicker {
    pub fn new(kind: PickerKind, entries: Vec<PickerEntry>, empty: &str) -> Self {
        Self { kind, editor: TextEditor::default(), entries, empty: empty.to_owned(), selected: 0 }
    }

    /// The entries that contain every typed word, with whether each is selected.
    pub fn shown(&self) -> Vec<(&PickerEntry, bool)> {
        let text = self.editor.text().to_lowercase();
        let accepts = |entry: &&PickerEntry| {
            let searched = format!("{} {} {}", entry.head, entry.text, entry.section).to_lowercase();
            text.split_whitespace().all(|word| searched.contains(word))
        };
        let found: Vec<&PickerEntry> = self.entries.iter().filter(accepts).collect();
        let selected = self.selected.min(found.len().saturating_sub(1));
        found.into_iter().enumerate().map(|(n, entry)| (entry, n == selected)).collect()
    }

    pub fn selected(&self) -> Option<&PickerEntry> {
        self.shown().into_iter().find(|(_, is_selected)| *is_selected).map(|(entry, _)| entry)
    }

    pub fn step(&mut self, by: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.selected = self.selected.min(last).saturating_add_signed(by).min(last);
    }

    /// Selects an entry by its place among the shown ones.
    pub fn select(&mut self, n: usize) {
        self.selected = n;
    }

    /// Takes newer entries. The selection stays with its entry.
    pub fn receive(&mut self, entries: Vec<PickerEntry>) {
        let head = self.selected().map(|entry| entry.head.clone());
        self.entries = entries;
        if let Some(n) = head.and_then(|head| self.shown().iter().position(|(entry, _)| entry.head == head)) {
            self.selected = n;
        }
    }

    /// Whether the letters that are typed filter, and are not keys of the list.
    pub fn is_filtered(&self) -> bool {
        !self.editor.text().is_empty()
    }
}
