//! Tells from the screen what a shell without marks does with the keys that agtmux types.

use unicode_width::UnicodeWidthChar;

use super::{ScreenPrompt, ScreenText};

impl ScreenText<'_> {
    /// The row of the cursor, split at the cursor. The first part is filled up with blanks to the cursor.
    pub(super) fn split_at_cursor(&self) -> (String, &str) {
        let row = self.rows.get(self.cursor_row).map_or("", String::as_str);
        let (mut at, mut width) = (0, 0);
        for (start, c) in row.char_indices() {
            let next = width + c.width().unwrap_or(0);
            if next > self.cursor_column {
                break;
            }
            (at, width) = (start + c.len_utf8(), next);
        }
        let (before, after) = row.split_at(at);
        (format!("{before}{}", " ".repeat(self.cursor_column.saturating_sub(width))), after)
    }

    /// Compares the screen with the one before a blank was typed. Returns the part of the edited line to the right of
    /// the cursor, which moves with the cursor. A clock or a suggestion at the right does not move. `None` if the shell
    /// has not inserted the blank, for example in the command mode of vi. The case is not compared: with a suggestion at
    /// the right, fish shows the typed text in the case of the suggestion.
    pub fn line_after_inserted_blank(&self, earlier: ScreenText<'_>) -> Option<String> {
        let ((before, after), (earlier_before, earlier_after)) = (self.split_at_cursor(), earlier.split_at_cursor());
        if self.cursor_row != earlier.cursor_row || before.to_lowercase() != earlier_before.to_lowercase() + " " {
            return None;
        }
        let pairs = after.chars().zip(earlier_after.chars());
        let moved: String = pairs.take_while(|(one, other)| one == other).map(|(one, _)| one).collect();
        Some(moved.trim_end().to_owned())
    }

    /// Whether all rows below the cursor are blank. The rest of an edited line may be there.
    pub fn is_blank_below(&self) -> bool {
        self.rows.iter().skip(self.cursor_row + 1).all(|row| row.trim().is_empty())
    }

    /// Whether the screen shows the prompt and this text up to the cursor, and nothing else between them. A long text
    /// takes several rows; its beginning may have left the screen. Blanks are not compared, because a row that ends in
    /// front of a wide character is filled up, and neither is the case, because fish shows the one of its suggestion.
    pub fn shows_typed(&self, prompt: &ScreenPrompt, text: &str) -> bool {
        let expected: String = without_blanks(prompt.last_row()) + &without_blanks(text);
        let mut shown = without_blanks(&self.split_at_cursor().0);
        for row in self.rows.get(..self.cursor_row).unwrap_or_default().iter().rev() {
            if shown.len() >= expected.len() {
                break;
            }
            shown.insert_str(0, &without_blanks(row));
        }
        let is_cut = shown.len() < expected.len() && self.cursor_row > 0;
        shown == expected || is_cut && expected.ends_with(&shown)
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// The screen with the cursor at `|`.
    fn at_cursor(text: &str, check: impl FnOnce(ScreenText<'_>)) {
        let cursor_row = text.lines().position(|row| row.contains('|')).expect("a cursor");
        let before = text.lines().nth(cursor_row).and_then(|row| row.split('|').next()).unwrap_or_default();
        let cursor_column = unicode_width::UnicodeWidthStr::width(before);
        check(ScreenText { rows: &rows(&text.replacen('|', "", 1)), cursor_column, cursor_row });
    }

    #[track_caller]
    fn after_blank(earlier: &str, now: &str) -> Option<String> {
        let mut found = None;
        at_cursor(earlier, |earlier| at_cursor(now, |now| found = now.line_after_inserted_blank(earlier)));
        found
    }

    #[test]
    fn the_line_to_the_right_of_the_cursor_moves_with_it() {
        let is = |earlier, now, expected: Option<&str>| {
            assert_eq!(after_blank(earlier, now).as_deref(), expected, "{earlier} {now}");
        };
        is("$ |", "$  |", Some(""));
        is("$ half|", "$ half |", Some(""));
        is("$ |rm -rf build", "$  |rm -rf build", Some("rm -rf build"));
        is("$ rm |-rf build", "$ rm  |-rf build", Some("-rf build"));
        is("$ |      12:00", "$  |     12:00", Some(""));
        is("$ |rm -rf      12:00", "$  |rm -rf     12:00", Some("rm -rf"));
        is("$ ech|o suggested", "$ ech |", Some(""));
        is("$ echo A|RCHIVE", "$ echo a |", Some(""));
        is("日本 $ |half", "日本 $  |half", Some("half"));
        // The command mode of vi, and a shell that shows another row.
        is("$ |", "$ |", None);
        is("$ hal|f", "$ half|", None);
        is("$ |", "$ \n  |", None);
    }

    #[test]
    fn a_typed_text_is_shown_exactly_or_not_at_all() {
        let mut prompt = None;
        at_cursor("$ |", |screen| prompt = ScreenPrompt::find(None, 1, screen).map(|line| line.prompt));
        let prompt = prompt.expect("a prompt");
        let shows = |screen: &str, text: &str| {
            let mut found = false;
            at_cursor(screen, |screen| found = screen.shows_typed(&prompt, text));
            found
        };
        assert!(shows("out\n$ echo a|", "echo a"));
        assert!(shows("$ echo a|   12:00", "echo a"), "a clock at the right");
        assert!(shows("$ echo A|RCHIVE", "echo a"), "a suggestion of fish");
        assert!(shows("$ echo\n aaa\n bbb|", "echo aaa bbb"), "three rows");
        assert!(shows(" aaa\n bbb|", "echo aaa bbb"), "the first row has left the screen");
        for wrong in ["$ echo b|", "$ x echo a|", "$ echo ax|", "$ |echo a"] {
            assert!(!shows(wrong, "echo a"), "{wrong}");
        }
        assert!(!shows("bbb|", "echo aaa bbb"), "one row can have no earlier rows above the screen");
    }

    #[test]
    fn text_below_the_cursor_is_found() {
        at_cursor("$ |\n\n  \n", |screen| assert!(screen.is_blank_below()));
        at_cursor("$ |\nsecond line", |screen| assert!(!screen.is_blank_below()));
    }
}
