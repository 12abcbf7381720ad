//! Extracts the last useful lines of a task's output.

use std::sync::LazyLock;

use regex::Regex;

use crate::{output, redact, sanitize};

/// The maximum number of output lines that an event shows.
const MAX_LINES: usize = 3;

/// A line with more columns than this is cut.
const MAX_COLUMNS: usize = 200;

/// Only this many bytes at the end of the output are searched.
const MAX_BYTES: usize = 16 * 1024;

static PANE_IS_DEAD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^Pane is dead(?: \((?:status|signal) .*\))?$").expect("a pattern that compiles"));

/// Returns the last useful lines of the output. Blank lines, separator lines and tmux's own "Pane is dead" text are
/// skipped. Secrets are redacted, and control characters are escaped.
pub fn recent_output(written: &str) -> Vec<String> {
    let shown = output::lines(tail(written).as_bytes()).join("\n");
    let clean = redact::text(&shown);
    let mut last: Vec<String> =
        clean.lines().rev().filter(|line| is_useful(line)).take(MAX_LINES).map(shorten).collect();
    last.reverse();
    last
}

fn tail(written: &str) -> &str {
    let start = written.len().saturating_sub(MAX_BYTES);
    let start = (start..=written.len()).find(|at| written.is_char_boundary(*at)).unwrap_or_default();
    &written[start..]
}

fn is_useful(line: &str) -> bool {
    let line = line.trim();
    line.chars().any(char::is_alphanumeric) && !PANE_IS_DEAD.is_match(line)
}

fn shorten(line: &str) -> String {
    sanitize::for_column(line.trim_end(), MAX_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_three_useful_lines_are_returned() {
        let output = "one\n\ntwo\n  three  \n-----\n\n====\nfour\n   \n";
        assert_eq!(recent_output(output), ["two", "  three", "four"]);
        assert_eq!(recent_output("\n \n"), Vec::<String>::new());
    }

    #[test]
    fn the_pane_is_dead_line_of_tmux_is_skipped() {
        for dead in
            ["Pane is dead", "Pane is dead (status 2, Sun Nov 15 10:00:00 2026)", "Pane is dead (signal 9, now)"]
        {
            assert_eq!(recent_output(&format!("built\n{dead}\n")), ["built"]);
        }
        assert_eq!(recent_output("Pane is dead, long live the pane"), ["Pane is dead, long live the pane"]);
    }

    #[test]
    fn secrets_and_escapes_are_removed() {
        let lines = recent_output(
            "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}text\u{1b}(B\r\nexport API_KEY=abcdef0123456789abcdef\r\n",
        );
        assert_eq!(lines[0], "red text");
        assert!(lines[1].contains("[redacted:") && !lines[1].contains("abcdef0123456789"), "{lines:?}");
    }

    #[test]
    fn a_progress_bar_shows_its_last_state() {
        assert_eq!(recent_output("10 %\r50 %\r100 % done\r\n"), ["100 % done"]);
    }

    #[test]
    fn a_long_line_is_cut() {
        let lines = recent_output(&"x".repeat(100_000));
        assert_eq!(lines[0].chars().count(), MAX_COLUMNS);
    }

    proptest! {
        #[test]
        fn any_output_gives_at_most_three_harmless_lines(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let lines = recent_output(&crate::text::from_bytes(&bytes));
            prop_assert!(lines.len() <= MAX_LINES);
            prop_assert!(lines.iter().flat_map(|line| line.chars()).all(|c| !c.is_control()));
        }
    }
}
