//! One cell of a table. Sanitizes its text and limits its width.

use agtmux_core::sanitize;
use unicode_width::UnicodeWidthStr;

use super::colour::Colour;

/// The maximum width of a cell. It applies even if lines may have any length, because a title can be a megabyte long.
const MAX_WIDTH: usize = 120;
/// With `MAX_WIDTH`, limits the number of characters in a cell. The width alone would not limit combining characters,
/// which have no width.
const MAX_CHARS_PER_COLUMN: usize = 4;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct TableCell {
    text: String,
    /// A text printed after `text`. In a narrow cell, `text` is shortened first. `tail` is shortened only if it does
    /// not fit even without `text`.
    tail: String,
    colour: Option<Colour>,
}

impl TableCell {
    pub(crate) fn new(foreign: &str) -> Self {
        Self { text: cut(foreign, MAX_WIDTH), ..Self::default() }
    }

    pub(crate) fn number(number: u32) -> Self {
        Self::new(&number.to_string())
    }

    /// A dash for a missing value.
    pub(crate) fn none() -> Self {
        Self::new("-").coloured(Colour::Dim)
    }

    pub(crate) fn from_option(foreign: Option<&str>) -> Self {
        foreign.filter(|text| !text.is_empty()).map_or_else(Self::none, Self::new)
    }

    pub(crate) fn with_tail(self, tail: String) -> Self {
        Self { tail, ..self }
    }

    pub(crate) fn coloured(self, colour: Colour) -> Self {
        Self { colour: Some(colour), ..self }
    }

    pub(crate) fn width(&self) -> usize {
        self.text.width() + self.tail.width()
    }

    /// The cell's text and tail, padded or shortened to the width.
    pub(crate) fn draw(&self, width: usize, colour: bool) -> String {
        let text = match width.checked_sub(self.tail.width()) {
            // If almost no text fits, show only the tail.
            Some(room) if self.tail.is_empty() || room >= self.text.width().min(2) => {
                cut(&self.text, room) + &self.tail
            }
            _ => cut(self.tail.trim_start(), width),
        };
        let padding = " ".repeat(width.saturating_sub(text.width()));
        match self.colour.filter(|_| colour) {
            Some(colour) => colour.paint(&text) + &padding,
            None => text + &padding,
        }
    }
}

fn cut(foreign: &str, columns: usize) -> String {
    let most = MAX_WIDTH * MAX_CHARS_PER_COLUMN;
    let ellipsis = if columns > 0 { "…" } else { "" };
    let shortened = match foreign.char_indices().nth(most) {
        Some((end, _)) => sanitize::for_column(&foreign[..end], columns.saturating_sub(1)) + ellipsis,
        None => sanitize::for_column(foreign, columns),
    };
    if shortened.width() <= columns {
        return shortened;
    }
    // A variation selector makes the character before it wider.
    sanitize::for_column(&shortened.replace('\u{fe0f}', ""), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(foreign: &str, width: usize) -> String {
        TableCell::new(foreign).draw(width, false)
    }

    #[test]
    fn a_cell_has_exactly_the_requested_width() {
        let stacked = "e\u{301}".repeat(100_000);
        let marks = "\u{301}".repeat(1_000_000);
        for foreign in [
            "",
            "abc",
            "日本語のタイトル",
            "\x1b[31mred",
            "a\nb\tc",
            "❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}",
            &stacked,
            &marks,
        ] {
            for width in [0, 1, 2, 3, 5, 8, 40] {
                let text = drawn(foreign, width);
                assert_eq!(text.width(), width, "{:?} in {width}", foreign.chars().take(10).collect::<String>());
                assert!(text.len() < 4000);
            }
        }
    }

    #[test]
    fn control_characters_are_removed() {
        let text = drawn("\x1b]0;pwned\x07\u{202e}\r\n\u{9b}2J", 60);
        assert!(text.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{text:?}");
    }

    #[test]
    fn a_very_long_text_is_shortened() {
        let text = drawn(&"x".repeat(1 << 20), 10);
        assert_eq!(text, "xxxxxxxxx…");
    }

    #[test]
    fn the_tail_is_kept() {
        let cell = TableCell::new("a-long-session").with_tail(":@3 %12".into());
        assert_eq!(cell.draw(14, false), "a-long…:@3 %12");
        assert_eq!(cell.draw(21, false), "a-long-session:@3 %12");
        assert_eq!(cell.draw(5, false), ":@3 …");
    }

    #[test]
    fn padding_is_not_coloured() {
        let cell = TableCell::new("running").coloured(Colour::Green);
        assert_eq!(cell.draw(9, true), "\x1b[32mrunning\x1b[0m  ");
    }
}
