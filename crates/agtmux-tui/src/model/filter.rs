use super::agents::AgentRow;

/// Which rows the list shows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RowFilter {
    pub text: String,
    pub waiting_only: bool,
}

impl RowFilter {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && !self.waiting_only
    }

    /// Every word must occur in the name, the place, the question, the directory or the title.
    pub fn accepts(&self, row: &AgentRow) -> bool {
        if self.waiting_only && !row.is_waiting() {
            return false;
        }
        if self.text.trim().is_empty() {
            return true;
        }
        let text = searched_text(row);
        self.text.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

fn searched_text(row: &AgentRow) -> String {
    let item = &row.item;
    let dialog = item.dialog.iter().flat_map(|dialog| [Some(dialog.question.as_str()), dialog.subject.as_deref()]);
    let own = [item.name.as_deref(), item.title.as_deref(), item.cwd.as_deref(), Some(item.window_name.as_str())];
    let mut text = format!("{} {}", row.agent_type(), row.place());
    for part in own.into_iter().chain(dialog).flatten() {
        text.push('\n');
        text.push_str(part);
    }
    text.to_lowercase()
}
