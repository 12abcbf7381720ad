//! How a scene is told by the agent's own screen and title, by nobody's judgement but the one of whoever wrote the mark.

/// All of it must hold. Rows are compared without the blanks at their ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScreenPattern {
    shows: Vec<&'static str>,
    lacks: Vec<&'static str>,
    footer_lacks: Vec<&'static str>,
    title_lacks: Vec<&'static str>,
    title_shows: Vec<&'static str>,
    last_row: Option<&'static str>,
    /// Only these last rows that are not empty are looked at: what was said before stays on the screen.
    rows: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentScreen {
    pub(crate) screen: String,
    pub(crate) title: String,
    pub(crate) command: String,
}

impl ScreenPattern {
    pub(crate) fn shows(text: &'static str) -> Self {
        Self::default().and_shows(text)
    }

    pub(crate) fn and_shows(mut self, text: &'static str) -> Self {
        self.shows.push(text);
        self
    }

    pub(crate) fn lacks(mut self, text: &'static str) -> Self {
        self.lacks.push(text);
        self
    }

    /// Not in the last two rows, where agents say which keys work.
    pub(crate) fn footer_lacks(mut self, text: &'static str) -> Self {
        self.footer_lacks.push(text);
        self
    }

    /// The last row that is not empty is this and nothing else.
    pub(crate) fn last_row_is(mut self, row: &'static str) -> Self {
        self.last_row = Some(row);
        self
    }

    pub(crate) fn title_shows(mut self, text: &'static str) -> Self {
        self.title_shows.push(text);
        self
    }

    pub(crate) fn title_lacks(mut self, text: &'static str) -> Self {
        self.title_lacks.push(text);
        self
    }

    pub(crate) fn in_last_rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    pub(crate) fn matches(&self, look: &AgentScreen) -> bool {
        let rows: Vec<&str> = look.screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        let first = self.rows.map_or(0, |last| rows.len().saturating_sub(last));
        let screen = rows[first..].join("\n");
        let footer = rows[rows.len().saturating_sub(2)..].join("\n");
        self.shows.iter().all(|text| screen.contains(text))
            && !self.lacks.iter().any(|text| screen.contains(text))
            && !self.footer_lacks.iter().any(|text| footer.contains(text))
            && self.last_row.is_none_or(|row| rows.last() == Some(&row))
            && self.title_shows.iter().all(|text| look.title.contains(text))
            && !self.title_lacks.iter().any(|text| look.title.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_rows_count() {
        let look =
            AgentScreen { screen: "API Error\n\nhello  \n> \n\n".into(), title: "Ready".into(), command: "x".into() };
        assert!(ScreenPattern::shows("API Error").matches(&look));
        assert!(!ScreenPattern::shows("API Error").in_last_rows(2).matches(&look));
        assert!(ScreenPattern::shows("hello").lacks("API Error").in_last_rows(2).matches(&look));
        assert!(ScreenPattern::shows("hello").title_shows("Ready").matches(&look));
        assert!(!ScreenPattern::shows("hello").title_lacks("Ready").matches(&look));
        assert!(ScreenPattern::shows("hello").last_row_is(">").matches(&look));
        assert!(!ScreenPattern::shows("hello").last_row_is("> ").matches(&look));
    }
}
