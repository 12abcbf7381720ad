//! Text of other programs, made safe and cut to fit.

use agtmux_core::sanitize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many characters of one text are looked at per column. Combining characters have no width, so a text that fits
/// may still be very long.
const MAX_CHARS_PER_COLUMN: usize = 4;
/// The longest line that is wrapped.
const MAX_LINE: usize = 20_000;

/// Makes one line of foreign text safe and cuts it to this width. A cut text ends with `…`.
pub(crate) fn fit(foreign: &str, width: usize) -> String {
    let most = (width + 1) * MAX_CHARS_PER_COLUMN;
    let part = foreign.char_indices().nth(most).map_or(foreign, |(end, _)| &foreign[..end]);
    sanitize::for_column(&plain(part), width)
}

/// Like `fit`, and fills the width with blanks.
pub(crate) fn column(foreign: &str, width: usize) -> String {
    let text = fit(foreign, width);
    let blanks = width.saturating_sub(text.width());
    text + &" ".repeat(blanks)
}

/// Makes foreign text safe. Line ends are escaped.
pub(crate) fn safe(foreign: &str) -> String {
    sanitize::for_terminal(&plain(foreign))
}

/// Makes foreign text safe, and wraps it to this width. Prefers to break at blanks.
pub(crate) fn wrap(foreign: &str, width: usize) -> Vec<String> {
    let width = width.max(4);
    foreign.lines().flat_map(|line| wrap_line(line, width)).collect()
}

/// Terminals disagree about the width of a character with a variation selector, so the selectors are dropped. A tab
/// becomes blanks.
fn plain(text: &str) -> String {
    text.replace('\u{fe0f}', "").replace('\t', "    ")
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let part = line.char_indices().nth(MAX_LINE).map_or(line, |(end, _)| &line[..end]);
    let line = safe(part);
    let (mut rows, mut row, mut used, mut blank) = (Vec::new(), String::new(), 0, None);
    for c in line.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width {
            let rest = match blank.filter(|at| *at > 0 && c != ' ') {
                Some(at) => row.split_off(at),
                None => String::new(),
            };
            rows.push(row.trim_end().to_owned());
            row = rest.trim_start().to_owned();
            used = row.width();
            blank = None;
            if c == ' ' && row.is_empty() {
                continue;
            }
        }
        if c == ' ' && !row.trim().is_empty() {
            blank = Some(row.len());
        }
        row.push(c);
        used += columns;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_wrapped_at_blanks() {
        assert_eq!(wrap("cargo test --workspace", 10), ["cargo test", "--workspac", "e"]);
        assert_eq!(wrap("one two\nthree", 20), ["one two", "three"]);
        assert_eq!(wrap("日本語のタ", 6), ["日本語", "のタ"]);
        assert_eq!(wrap("    indented text", 14), ["    indented", "text"]);
        assert_eq!(wrap("a\u{1b}[2J", 40), ["a\\x1b[2J"]);
    }

    #[test]
    fn a_column_is_exactly_as_wide_as_asked() {
        let stacked = "e\u{301}".repeat(10_000);
        for text in ["", "abc", "日本語日本語", "❤\u{fe0f}❤\u{fe0f}", "a\tb", "\u{1b}[31mred", &stacked] {
            for width in [1, 2, 7, 30] {
                assert_eq!(column(text, width).width(), width, "{width}");
            }
        }
    }

    proptest! {
        #[test]
        fn wrapped_rows_fit_and_are_safe(text in "\\PC{0,60}", control in any::<char>(), width in 4usize..20) {
            for row in wrap(&format!("{text}{control}{text}"), width) {
                prop_assert!(row.width() <= width);
                prop_assert!(!row.contains(char::is_control));
            }
        }
    }
}
