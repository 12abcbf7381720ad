//! What the interface remembers until its next start.

use serde::{Deserialize, Serialize};

use super::{AgentMarks, RowGrouping, TuiModel};

/// The content of the file. A file of another version may lack fields or have others.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceMemory {
    pub grouping: RowGrouping,
    pub filter: String,
    pub waiting_only: bool,
    pub shows_details: bool,
    /// The name of the selected agent's key.
    pub selected: Option<String>,
    pub marks: AgentMarks,
}

impl TuiModel {
    /// Starts as the interface ended. An inbox starts with its own filter and order.
    pub fn restore(&mut self, memory: InterfaceMemory) {
        self.marks = memory.marks;
        if !self.is_inbox {
            self.grouping = memory.grouping;
            self.filter.text = memory.filter;
            self.filter.waiting_only = memory.waiting_only;
            self.shows_details = memory.shows_details;
            self.list.select_later(memory.selected);
        }
    }

    /// What to remember. `before` is what was remembered; an inbox changes only the notes about agents.
    pub fn remember(&self, before: &InterfaceMemory) -> InterfaceMemory {
        let known = self.list.all().iter().map(|row| row.key.name()).collect();
        // Without a fleet it is not known which agents are gone.
        let marks = if self.fleet.is_complete() { self.marks.only_about(&known) } else { self.marks.clone() };
        if self.is_inbox {
            return InterfaceMemory { marks, ..before.clone() };
        }
        InterfaceMemory {
            grouping: self.grouping,
            filter: self.filter.text.clone(),
            waiting_only: self.filter.waiting_only,
            shows_details: self.shows_details,
            selected: self.list.selected().map(|row| row.key.name()).or_else(|| before.selected.clone()),
            marks,
        }
    }
}
