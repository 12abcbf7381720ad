//! Parses the bytes of a capture into rows.

use std::collections::VecDeque;

use vte::{Params, Parser, Perform};

use super::{CapturedScreen, CellStyle, ScreenRow};

/// The maximum number of rows. If a capture has more rows, only the last ones are kept, because agents draw at the
/// bottom.
const MAX_ROWS: usize = 1000;
/// The maximum length of a row. The rest of a longer row is dropped.
const MAX_ROW_BYTES: usize = 8 << 10;

impl CapturedScreen {
    /// Parses the output of `tmux capture-pane -p`, with or without `-e`. Accepts any bytes.
    pub fn parse(capture: &[u8]) -> Self {
        let mut reader = CaptureParser::default();
        for line in capture.split(|byte| *byte == b'\n') {
            // Each line gets a new parser: an unterminated escape must not swallow the rows below it.
            Parser::new().advance(&mut reader, line);
            reader.end_row();
        }
        let mut rows = Vec::from(reader.rows);
        let used = rows.iter().rposition(|row| !row.is_blank()).map_or(0, |last| last + 1);
        rows.truncate(used);
        Self { rows, styled: reader.styled }
    }
}

#[derive(Default)]
struct CaptureParser {
    rows: VecDeque<ScreenRow>,
    row: ScreenRow,
    /// The style of the next character. A style stays in effect in the next row, as in the output of tmux.
    style: CellStyle,
    styled: bool,
}

impl CaptureParser {
    fn push(&mut self, c: char) {
        if self.row.text.len() >= MAX_ROW_BYTES {
            return;
        }
        if self.row.runs.last().map(|(_, style)| *style) != Some(self.style) {
            self.row.runs.push((self.row.text.len(), self.style));
        }
        self.row.text.push(c);
    }

    fn end_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.text.truncate(row.text.trim_end().len());
        row.runs.retain(|(start, _)| *start < row.text.len());
        if self.rows.len() == MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }
}

impl Perform for CaptureParser {
    fn print(&mut self, c: char) {
        if let Some(c) = normalize_char(c) {
            self.push(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.push(' ');
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if action == 'm' && intermediates.is_empty() {
            self.styled = true;
            self.style.apply(params.iter());
        }
    }
}

/// Replaces unusual spaces by plain ones, so that patterns match. None if `c` is invisible.
pub(crate) fn normalize_char(c: char) -> Option<char> {
    match c {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{3000}' => Some(' '),
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(capture: &str) -> Vec<String> {
        CapturedScreen::parse(capture.as_bytes()).rows().iter().map(|row| row.text().to_owned()).collect()
    }

    #[test]
    fn plain_text_is_kept() {
        let screen = CapturedScreen::parse(b"one  \r\n\n  two\n\n\n");
        assert_eq!(texts("one  \r\n\n  two\n\n\n"), ["one", "", "  two"]);
        assert!(!screen.is_styled());
    }

    #[test]
    fn styles_continue_over_rows() {
        let screen = CapturedScreen::parse("\x1b[2mdim\nstill\x1b[0m no \x1b[7mX\x1b[27m\x1b[38;5;246mgrey".as_bytes());
        let [first, second] = screen.rows() else { panic!("two rows") };
        assert!(screen.is_styled() && first.style_at(0).dim && second.style_at(4).dim);
        assert!(!second.style_at(5).dim);
        assert!(second.style_at(9).reverse && !second.style_at(10).reverse);
        assert!(second.style_at(10).is_faint());
    }

    #[test]
    fn invisible_characters_are_dropped() {
        assert_eq!(texts("◐\u{fe0e} Qwen\n❯\u{a0}x\u{200b}"), ["◐ Qwen", "❯ x"]);
    }

    #[test]
    fn an_unterminated_escape_affects_only_its_row() {
        assert_eq!(texts("a\n\x1b]0;title\nb\n\x1bPq\nc\n\x1b[1;2\nd"), ["a", "", "b", "", "c", "", "d"]);
    }

    #[test]
    fn only_the_end_of_a_long_capture_is_kept() {
        let many = "x\n".repeat(5000) + "last";
        let screen = CapturedScreen::parse(many.as_bytes());
        assert_eq!(screen.rows().len(), MAX_ROWS);
        assert_eq!(screen.rows().last().map(ScreenRow::text), Some("last"));
        let wide = CapturedScreen::parse(&vec![b'y'; 1 << 20]);
        assert_eq!(wide.rows()[0].text().len(), MAX_ROW_BYTES);
    }
}
