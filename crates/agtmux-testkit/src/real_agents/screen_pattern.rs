//! Patterns for the screen and the title of an agent. They recognise states without using the rules of agtmux.

/// A pattern for a screen. All of its conditions must hold. Blanks at the end of a row are ignored.
#[derive(Debug, Clone, Default)]
pub struct ScreenPattern {
    shows: Vec<&'static str>,
    shows_one_of: &'static [&'static str],
    lacks: Vec<&'static str>,
    footer_lacks: Vec<&'static str>,
    title_lacks: Vec<&'static str>,
    title_shows: Vec<&'static str>,
    last_row: Option<&'static str>,
    /// If set, `shows`, `shows_one_of` and `lacks` look only at this many non-empty rows at the end of the screen. Rows
    /// above may still show earlier output.
    rows: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentScreen {
    pub screen: String,
    pub title: String,
    pub command: String,
}

impl ScreenPattern {
    pub fn shows(text: &'static str) -> Self {
        Self::default().and_shows(text)
    }

    pub fn and_shows(mut self, text: &'static str) -> Self {
        self.shows.push(text);
        self
    }

    /// At least one of these texts must be visible.
    pub fn and_shows_one_of(mut self, texts: &'static [&'static str]) -> Self {
        self.shows_one_of = texts;
        self
    }

    pub fn lacks(mut self, text: &'static str) -> Self {
        self.lacks.push(text);
        self
    }

    /// The last two rows must not contain this text. Agents list their keys in these rows.
    pub fn footer_lacks(mut self, text: &'static str) -> Self {
        self.footer_lacks.push(text);
        self
    }

    /// The last non-empty row must equal this text.
    pub fn last_row_is(mut self, row: &'static str) -> Self {
        self.last_row = Some(row);
        self
    }

    pub fn title_shows(mut self, text: &'static str) -> Self {
        self.title_shows.push(text);
        self
    }

    pub fn title_lacks(mut self, text: &'static str) -> Self {
        self.title_lacks.push(text);
        self
    }

    pub fn in_last_rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    pub fn matches(&self, capture: &AgentScreen) -> bool {
        let rows: Vec<&str> = capture.screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        let first = self.rows.map_or(0, |last| rows.len().saturating_sub(last));
        let screen = rows[first..].join("\n");
        let footer = rows[rows.len().saturating_sub(2)..].join("\n");
        self.shows.iter().all(|text| screen.contains(text))
            && (self.shows_one_of.is_empty() || self.shows_one_of.iter().any(|text| screen.contains(text)))
            && !self.lacks.iter().any(|text| screen.contains(text))
            && !self.footer_lacks.iter().any(|text| footer.contains(text))
            && self.last_row.is_none_or(|row| rows.last() == Some(&row))
            && self.title_shows.iter().all(|text| capture.title.contains(text))
            && !self.title_lacks.iter().any(|text| capture.title.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_can_be_limited_to_the_last_rows() {
        let capture =
            AgentScreen { screen: "API Error\n\nhello  \n> \n\n".into(), title: "Ready".into(), command: "x".into() };
        assert!(ScreenPattern::shows("API Error").matches(&capture));
        assert!(!ScreenPattern::shows("API Error").in_last_rows(2).matches(&capture));
        assert!(ScreenPattern::shows("hello").lacks("API Error").in_last_rows(2).matches(&capture));
        assert!(ScreenPattern::shows("hello").and_shows_one_of(&["absent", "API Error"]).matches(&capture));
        assert!(
            !ScreenPattern::shows("hello").and_shows_one_of(&["absent", "API Error"]).in_last_rows(2).matches(&capture)
        );
        assert!(ScreenPattern::shows("hello").title_shows("Ready").matches(&capture));
        assert!(!ScreenPattern::shows("hello").title_lacks("Ready").matches(&capture));
        assert!(ScreenPattern::shows("hello").last_row_is(">").matches(&capture));
        assert!(!ScreenPattern::shows("hello").last_row_is("> ").matches(&capture));
    }
}
