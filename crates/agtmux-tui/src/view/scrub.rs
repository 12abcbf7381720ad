//! The last check of a frame: only printable text reaches the terminal, and only what the terminal can show.

use agtmux_core::sanitize;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use crate::model::TerminalLook;

/// A cell with more bytes than this is a stack of combining characters.
const MAX_CELL_BYTES: usize = 32;

/// Replaces cells that are not plain text. All text is sanitized before it is drawn; this check also covers text that a
/// later change forgets.
pub(super) fn scrub(buffer: &mut Buffer, look: &TerminalLook) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        let is_ascii = symbol.len() == 1 && (b' '..=b'~').contains(&symbol.as_bytes()[0]);
        if !is_ascii {
            if !look.unicode {
                let plain = if symbol == "…" { "~" } else { "?" };
                cell.set_symbol(if cell.symbol().is_empty() { " " } else { plain });
            } else if symbol.len() > MAX_CELL_BYTES || sanitize::for_terminal(symbol) != symbol {
                cell.set_symbol("?");
            }
        }
        if !look.colour {
            cell.set_fg(Color::Reset);
            cell.set_bg(Color::Reset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn cells_never_contain_control_characters() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        for (cell, symbol) in buffer.content.iter_mut().zip(["\u{1b}", "\u{202e}", "日", "a"]) {
            cell.set_symbol(symbol);
        }
        scrub(&mut buffer, &TerminalLook { colour: true, unicode: true, home: None });
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, ["?", "?", "日", "a"]);
    }

    #[test]
    fn a_plain_terminal_gets_ascii_without_colours() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        buffer.set_string(0, 0, "é…a", Style::new().fg(Color::Red).bg(Color::Blue));
        scrub(&mut buffer, &TerminalLook::default());
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, ["?", "~", "a"]);
        assert!(buffer.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
    }
}
