//! What is new in a pane, given what it showed before.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines that were not there before, in their order. What stands above everything that both have in common is older, not
/// newer: it comes from further up in the history.
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

    fn told(before: &str, now: &str) -> String {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let now = lines(now);
        new_lines(&lines(before), &now).into_iter().cloned().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_is_new_is_told() {
        assert_eq!(told("a b c", "a b c"), "");
        assert_eq!(told("a b c", "a b c d e"), "d e");
        assert_eq!(told("a b c", "c d e"), "d e");
        assert_eq!(told("c d", "a b c d e"), "e", "the history is not new");
        assert_eq!(told("a box", "a b box"), "b", "what stays at the bottom is not told again");
        assert_eq!(told("a 1%", "a 2%"), "2%");
        assert_eq!(told("a b", "x y"), "x y");
    }
}
