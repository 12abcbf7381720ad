//! Reads lines with colours, as the daemon returns them, into styled text.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;
use vte::{Params, Parser, Perform};

use crate::text;

/// The styled text of one line, cut to this width. Sequences other than colours and attributes are dropped.
pub(crate) fn styled(line: &str, width: usize) -> Line<'static> {
    let mut reader = StyleReader { room: width, ..StyleReader::default() };
    Parser::new().advance(&mut reader, line.as_bytes());
    reader.flush();
    Line::from(reader.spans)
}

/// The text of a line without its colours.
pub(crate) fn without_colours(line: &str) -> String {
    styled(line, usize::MAX).spans.into_iter().map(|span| span.content.into_owned()).collect()
}

#[derive(Default)]
struct StyleReader {
    spans: Vec<Span<'static>>,
    text: String,
    style: Style,
    room: usize,
}

impl StyleReader {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.spans.push(Span::styled(text::safe(&std::mem::take(&mut self.text)), self.style));
        }
    }
}

impl Perform for StyleReader {
    fn print(&mut self, c: char) {
        let width = c.width().unwrap_or(0);
        if width > self.room || (width == 0 && self.room == 0) {
            self.room = 0;
            return;
        }
        self.room -= width;
        self.text.push(c);
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if action != 'm' || !intermediates.is_empty() {
            return;
        }
        self.flush();
        let mut words = params.iter();
        if params.is_empty() {
            self.style = Style::default();
        }
        while let Some(word) = words.next() {
            self.style = match word {
                [kind @ (38 | 48), rest @ ..] => {
                    let values: Vec<u16> = match rest {
                        [] => extended(&mut words),
                        given => given.to_vec(),
                    };
                    with_colour(self.style, *kind, colour_of(&values))
                }
                [code, ..] => attribute(self.style, *code),
                [] => self.style,
            };
        }
    }
}

/// The values of `38;5;N` or `38;2;R;G;B`, which are separate parameters.
fn extended<'a>(words: &mut impl Iterator<Item = &'a [u16]>) -> Vec<u16> {
    let mut next = || words.next().and_then(|word| word.first().copied()).unwrap_or(0);
    match next() {
        5 => vec![5, next()],
        2 => vec![2, next(), next(), next()],
        _ => Vec::new(),
    }
}

fn colour_of(values: &[u16]) -> Option<Color> {
    let byte = |value: &u16| u8::try_from(*value).unwrap_or(u8::MAX);
    match values {
        [5, n, ..] => Some(Color::Indexed(byte(n))),
        // With colons there may be a colour space before the three values.
        [2, _, r, g, b] | [2, r, g, b] => Some(Color::Rgb(byte(r), byte(g), byte(b))),
        _ => None,
    }
}

fn with_colour(style: Style, kind: u16, colour: Option<Color>) -> Style {
    match (kind, colour) {
        (_, None) => style,
        (38, Some(colour)) => style.fg(colour),
        (_, Some(colour)) => style.bg(colour),
    }
}

fn attribute(style: Style, code: u16) -> Style {
    let indexed = |n: u16| Color::Indexed(u8::try_from(n).unwrap_or(0));
    match code {
        0 => Style::default(),
        1 => style.add_modifier(Modifier::BOLD),
        2 => style.add_modifier(Modifier::DIM),
        3 => style.add_modifier(Modifier::ITALIC),
        4 => style.add_modifier(Modifier::UNDERLINED),
        7 => style.add_modifier(Modifier::REVERSED),
        9 => style.add_modifier(Modifier::CROSSED_OUT),
        22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
        23 => style.remove_modifier(Modifier::ITALIC),
        24 => style.remove_modifier(Modifier::UNDERLINED),
        27 => style.remove_modifier(Modifier::REVERSED),
        29 => style.remove_modifier(Modifier::CROSSED_OUT),
        30..=37 => style.fg(indexed(code - 30)),
        39 => style.fg(Color::Reset),
        40..=47 => style.bg(indexed(code - 40)),
        49 => style.bg(Color::Reset),
        90..=97 => style.fg(indexed(code - 82)),
        100..=107 => style.bg(indexed(code - 92)),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_attributes_become_styles() {
        let line = styled("\u{1b}[1;31mred\u{1b}[0m \u{1b}[38;5;9ma\u{1b}[38:2::1:2:3mb\u{1b}[48;2;4;5;6mc", 40);
        let shown: Vec<_> = line.spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        let plain = Style::default();
        assert_eq!(shown[0], ("red", plain.fg(Color::Indexed(1)).add_modifier(Modifier::BOLD)));
        assert_eq!(shown[1], (" ", plain));
        assert_eq!(shown[2], ("a", plain.fg(Color::Indexed(9))));
        assert_eq!(shown[3], ("b", plain.fg(Color::Rgb(1, 2, 3))));
        assert_eq!(shown[4], ("c", plain.fg(Color::Rgb(1, 2, 3)).bg(Color::Rgb(4, 5, 6))));
    }

    #[test]
    fn other_sequences_are_dropped_and_the_line_is_cut() {
        assert_eq!(without_colours("a\u{1b}[2J\u{1b}]52;c;eA==\u{7}b\u{9b}31m\u{202e}"), "ab31m\\u{202e}");
        let cut: String = styled("日本語", 5).spans.iter().map(|span| span.content.as_ref()).collect();
        assert_eq!(cut, "日本");
    }
}
