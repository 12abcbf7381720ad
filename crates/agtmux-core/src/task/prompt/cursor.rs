//! Extracts the line at the cursor.

use unicode_width::UnicodeWidthChar;

use super::LINE_ENDED;

/// The cursor position in cells of the pane, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPosition {
    pub x: usize,
    pub y: usize,
}

/// The maximum number of rows that a wrapped prompt may span.
const MAX_ROWS: usize = 6;

/// Returns the text of the cursor's line up to the cursor. `rows` are the visible rows as printed by `capture-pane -p`
/// without `-J`, so this function joins wrapped rows itself. If the cursor's line is empty, returns the line above it,
/// with a line feed at the end, because some programs print a prompt and then move to the next line.
pub fn cursor_line(rows: &[&str], width: usize, cursor: CursorPosition) -> String {
    let row = rows.get(cursor.y).copied().unwrap_or_default();
    let line = join_wrapped(rows, width, cursor.y, row_before_cursor(row, cursor.x));
    if !line.trim().is_empty() || cursor.x > 0 || cursor.y == 0 {
        return line;
    }
    let above = cursor.y - 1;
    let mut line = join_wrapped(rows, width, above, rows.get(above).copied().unwrap_or_default());
    line.push(LINE_ENDED);
    line
}

/// Joins the row `last` with the rows directly above it that fill the whole width. These rows are the earlier parts of
/// one wrapped line.
fn join_wrapped(rows: &[&str], width: usize, y: usize, last: &str) -> String {
    let is_full = |row: &&&str| width > 0 && cells(row) >= width;
    let before = rows.get(..y).unwrap_or_default().iter().rev().take_while(is_full).take(MAX_ROWS - 1);
    let before: Vec<&str> = before.copied().collect();
    before.into_iter().rev().chain([last]).collect()
}

fn row_before_cursor(row: &str, cells: usize) -> &str {
    let mut used = 0;
    for (at, c) in row.char_indices() {
        if used >= cells {
            return &row[..at];
        }
        used += c.width().unwrap_or(0);
    }
    row
}

fn cells(row: &str) -> usize {
    row.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(rows: &[&str], x: usize, y: usize) -> String {
        cursor_line(rows, 10, CursorPosition { x, y })
    }

    #[test]
    fn the_line_ends_at_the_cursor() {
        assert_eq!(line(&["$ ./x", "Go? [y/N]", ""], 10, 1), "Go? [y/N]");
        assert_eq!(line(&["name: hint"], 6, 0), "name: ");
        assert_eq!(line(&["日本: x"], 5, 0), "日本:");
    }

    #[test]
    fn wrapped_rows_are_joined() {
        assert_eq!(line(&["old", "0123456789", "0123456789", "go?"], 3, 3), "01234567890123456789go?");
        assert_eq!(line(&["short", "go?"], 3, 1), "go?");
    }

    #[test]
    fn below_a_complete_line_that_line_is_returned() {
        assert_eq!(line(&["Press", "Enter", ""], 0, 2), "Enter\n");
        assert_eq!(line(&["Press", "", ""], 0, 2), "\n");
        assert_eq!(line(&[], 0, 0), "");
    }

    proptest! {
        #[test]
        fn any_screen_gives_a_line(rows in proptest::collection::vec("\\PC{0,12}", 0..6), x in 0usize..14, y in 0usize..8) {
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let _ = line(&rows, x, y);
        }
    }
}
