//! The last check of a frame: only printable text reaches the terminal, and only what the terminal can show.

use agtmux_core::sanitize;
use ratatui::buffer::Buffer;

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
        cell.set_fg(look.colours.nearest(look.roles.shown(cell.fg)));
        cell.set_bg(look.colours.nearest(look.roles.shown(cell.bg)));
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

    use super::*;
    use crate::model::{ColourRoles, TerminalColours};

    #[test]
    fn cells_never_contain_control_characters() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        for (cell, symbol) in buffer.content.iter_mut().zip(["\u{1b}", "\u{202e}", "日", "a"]) {
            cell.set_symbol(symbol);
        }
        scrub(&mut buffer, &TerminalLook { unicode: true, ..TerminalLook::default() });
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

    #[test]
    fn the_configured_colours_replace_those_of_the_view() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
        buffer.set_string(0, 0, "a", Style::new().fg(Color::Yellow));
        buffer.set_string(1, 0, "b", Style::new().fg(Color::Rgb(0, 0, 250)));
        let colours = TerminalColours::Sixteen;
        scrub(&mut buffer, &TerminalLook { colours, roles: ColourRoles::LIGHT, ..TerminalLook::default() });
        assert_eq!((buffer.content[0].fg, buffer.content[1].fg), (Color::Magenta, Color::Indexed(12)));
    }
}
