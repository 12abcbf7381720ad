//! Turns a captured row into spans of styled text.

use agtmux_api::wire::{SpanColour, StyledSpan};
use agtmux_core::sanitize;

/// A longer row is cut. No terminal is that wide.
const MAX_ROW_BYTES: usize = 16 << 10;

/// Reads captured rows. A style stays in effect in the next row, as in the output of tmux.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    style: StyledSpan,
}

impl RowReader {
    /// The spans of one row. Control characters are shown as text, and all escape sequences except styles are dropped
    /// or shown as text.
    pub(super) fn read(&mut self, row: &str) -> Vec<StyledSpan> {
        let clean = sanitize::keeping_colours(&row[..row.floor_char_boundary(MAX_ROW_BYTES)]);
        let mut spans: Vec<StyledSpan> = Vec::new();
        // Only styles are left as escape sequences.
        for (at, part) in clean.split("\u{1b}[").enumerate() {
            let text = match part.split_once('m').filter(|_| at > 0) {
                Some((parameters, text)) => {
                    self.apply(parameters);
                    text
                }
                None => part,
            };
            match spans.last_mut().filter(|last| same_style(last, &self.style)) {
                Some(last) => last.text.push_str(text),
                None if text.is_empty() => {}
                None => spans.push(StyledSpan { text: text.to_owned(), ..self.style.clone() }),
            }
        }
        trim_end(&mut spans);
        spans
    }

    fn apply(&mut self, parameters: &str) {
        let mut words = parameters.split(';');
        while let Some(word) = words.next() {
            let mut parts = word.split(':').map(|part| part.parse::<u16>().unwrap_or(0));
            let code = parts.next().unwrap_or(0);
            let subs: Vec<u16> = parts.collect();
            match code {
                38 | 48 => {
                    let values = if subs.is_empty() { following_values(&mut words) } else { subs };
                    match (code, colour(&values)) {
                        (_, None) => {}
                        (38, colour) => self.style.fg = colour,
                        (_, colour) => self.style.bg = colour,
                    }
                }
                _ => self.set(code, subs.first().copied()),
            }
        }
    }

    fn set(&mut self, code: u16, sub: Option<u16>) {
        let style = &mut self.style;
        let palette = |n: u16| u8::try_from(n).ok().map(SpanColour::Palette);
        match code {
            0 => *style = StyledSpan::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = sub != Some(0),
            7 => style.reverse = true,
            9 => style.strike = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            29 => style.strike = false,
            30..=37 => style.fg = palette(code - 30),
            39 => style.fg = None,
            40..=47 => style.bg = palette(code - 40),
            49 => style.bg = None,
            90..=97 => style.fg = palette(code - 82),
            100..=107 => style.bg = palette(code - 92),
            _ => {}
        }
    }
}

/// The values of `38;5;N` or `38;2;R;G;B`, which are separate parameters.
fn following_values<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<u16> {
    let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    match next() {
        5 => vec![5, next()],
        2 => vec![2, next(), next(), next()],
        _ => Vec::new(),
    }
}

fn colour(values: &[u16]) -> Option<SpanColour> {
    let byte = |value: u16| u8::try_from(value).unwrap_or(u8::MAX);
    match *values {
        [5, n, ..] => Some(SpanColour::Palette(byte(n))),
        // With colons there may be a colour space before the three values.
        [2, r, g, b] | [2, _, r, g, b, ..] => {
            Some(SpanColour::Rgb(format!("#{:02x}{:02x}{:02x}", byte(r), byte(g), byte(b))))
        }
        _ => None,
    }
}

fn same_style(span: &StyledSpan, style: &StyledSpan) -> bool {
    StyledSpan { text: String::new(), ..span.clone() } == *style
}

/// Removes spaces at the end that have no visible style.
fn trim_end(spans: &mut Vec<StyledSpan>) {
    while let Some(last) = spans.last_mut() {
        if last.bg.is_some() || last.reverse || last.underline || last.strike {
            return;
        }
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            return;
        }
        spans.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> StyledSpan {
        StyledSpan { text: text.into(), ..StyledSpan::default() }
    }

    #[test]
    fn styles_become_spans_and_continue_in_the_next_row() {
        let mut reader = RowReader::default();
        let spans = reader.read("a\u{1b}[1;31mred\u{1b}[0m b\u{1b}[38;5;208;48:2::1:2:3mc  ");
        let red = StyledSpan { bold: true, fg: Some(SpanColour::Palette(1)), ..plain("red") };
        let c = StyledSpan {
            fg: Some(SpanColour::Palette(208)),
            bg: Some(SpanColour::Rgb("#010203".into())),
            ..plain("c  ")
        };
        assert_eq!(spans, [plain("a"), red, plain(" b"), c.clone()]);
        assert_eq!(reader.read("d"), [StyledSpan { text: "d".into(), ..c }]);
    }

    #[test]
    fn other_escape_sequences_and_controls_become_text() {
        let spans = RowReader::default().read("x\u{1b}]52;c;AAAA\u{7}\u{1b}[2Jy\u{202e}z\u{9b}31m   ");
        let text: String = spans.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(text, "x\\x1b]52;c;AAAA\\x07\\x1b[2Jy\\u{202e}z\\x9b31m");
        assert_eq!(spans.len(), 1);
    }

    #[test]
    fn a_long_row_is_cut_and_blank_ends_are_removed() {
        let spans = RowReader::default().read(&"é".repeat(MAX_ROW_BYTES));
        assert_eq!(spans[0].text.len(), MAX_ROW_BYTES);
        assert_eq!(RowReader::default().read("   \u{1b}[32m   \u{1b}[0m"), []);
    }
}
