//! Finds the new lines of a pane by comparing two reads.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Returns the lines of `now` that are new since `before`, in order. Lines above the first line that occurs in both
/// reads come from the history and do not count as new.
pub(super) fn new_lines<'a>(before: &[String], now: &'a [String]) -> Vec<&'a String> {
    let ops = capture_diff_slices(Algorithm::Myers, before, now);
    let common = ops.iter().position(|op| matches!(op, DiffOp::Equal { .. }));
    let newer = &ops[common.unwrap_or(0)..];
    let fresh = newer.iter().flat_map(|op| match *op {
        DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
            &now[new_index..new_index + new_len]
        }
        DiffOp::Equal { .. } | DiffOp::Delete { .. } => &[],
    });
    fresh.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, now: &str) -> String {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let now = lines(now);
        new_lines(&lines(before), &now).into_iter().cloned().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_new_lines_are_returned() {
        assert_eq!(diff("a b c", "a b c"), "");
        assert_eq!(diff("a b c", "a b c d e"), "d e");
        assert_eq!(diff("a b c", "c d e"), "d e");
        assert_eq!(diff("c d", "a b c d e"), "e", "the history is not new");
        assert_eq!(diff("a box", "a b box"), "b", "lines that stay at the bottom are not new");
        assert_eq!(diff("a 1%", "a 2%"), "2%");
        assert_eq!(diff("a b", "x y"), "x y");
    }
}
