//! The contents of a pane: rows of text and the style of each cell.

mod parse_capture;
mod regions;
mod style;

pub(crate) use regions::ScreenRegions;
pub use style::{CellColour, CellStyle};

/// A capture of a pane, with or without escape sequences. Blank rows at the end are dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedScreen {
    rows: Vec<ScreenRow>,
    styled: bool,
}

/// One row without trailing spaces. No-break spaces become spaces, and zero-width characters are dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenRow {
    text: String,
    /// The styles in the row, each with the byte offset at which it begins.
    runs: Vec<(usize, CellStyle)>,
}

impl CapturedScreen {
    pub fn rows(&self) -> &[ScreenRow] {
        &self.rows
    }

    /// The text of all rows, without the frames around them.
    pub fn inner_text(&self) -> String {
        self.rows.iter().map(|row| unframed(row.text())).collect::<Vec<_>>().join("\n")
    }

    /// Whether the capture contains styles.
    pub fn is_styled(&self) -> bool {
        self.styled
    }
}

impl ScreenRow {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// The style of the character that begins at this byte.
    pub fn style_at(&self, byte: usize) -> CellStyle {
        let after = self.runs.partition_point(|(start, _)| *start <= byte);
        after.checked_sub(1).map_or_else(CellStyle::default, |run| self.runs[run].1)
    }
}

/// A row's text without the frame around it. The indentation inside the frame is kept.
pub(crate) fn unframed(text: &str) -> &str {
    const SIDES: [char; 3] = ['│', '┃', '║'];
    let mut inner = without_scrollbar(text.trim_end());
    while let Some(rest) = inner.trim_start().strip_prefix(SIDES) {
        inner = rest.strip_suffix(SIDES).unwrap_or(rest).trim_end();
    }
    inner
}

/// Removes the scrollbar from the end of a row. Some agents draw a scrollbar beside all rows while the screen scrolls.
fn without_scrollbar(text: &str) -> &str {
    let Some(rest) = text.strip_suffix(['█', '┃']) else { return text };
    let beside = rest.ends_with([' ', '│']) && !rest.trim_start().starts_with(['█', '┃']);
    if beside { rest.trim_end() } else { text }
}

/// The byte offset of the text inside the frame.
pub(crate) fn start_within_frame(row: &ScreenRow) -> usize {
    row.text().find(unframed(row.text())).unwrap_or(0)
}

/// Normalises a text that is not a row of a screen, such as a title, in the same way as a row.
pub(crate) fn normalize_text(text: &str) -> String {
    text.chars().filter_map(parse_capture::normalize_char).collect::<String>().trim().to_owned()
}

/// Whether a row only draws a line: a border of a frame or a horizontal line.
pub(crate) fn is_border(text: &str) -> bool {
    let inner = unframed(text).trim();
    let drawn = |c: char| matches!(c, '\u{2500}'..='\u{257f}' | '▀' | '▄' | '▔' | '▁');
    inner.chars().take(3).filter(|c| drawn(*c)).count() == 3
        && inner.chars().filter(|c| drawn(*c)).count() * 3 > inner.chars().count() * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_removed() {
        assert_eq!(unframed("│ │ touch a   │ │"), " touch a");
        assert_eq!(unframed("  ┃  △ Permission required"), "  △ Permission required");
        assert_eq!(unframed("  ┃"), "");
        assert_eq!(unframed(" plain"), " plain");
    }

    #[test]
    fn borders_are_recognized() {
        for edge in ["────────", "╭───────╮", "│ ╰─────╯ │", "╌╌╌╌╌╌", "▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ no ▔", "  ╹▀▀▀▀▀"]
        {
            assert!(is_border(edge), "{edge}");
        }
        for text in ["", "── a long title in a short rule", "│ text │", "- item", "┃"] {
            assert!(!is_border(text), "{text}");
        }
    }
}
