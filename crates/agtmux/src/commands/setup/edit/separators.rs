//! The text between two values: whitespace, comments and commas.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeparatorKind {
    Comma,
    /// A `//` comment, up to the end of its line.
    LineComment,
    BlockComment,
    Other,
}

/// The tokens in this range without whitespace, in order, with their ranges in the whole text.
pub(super) fn tokens(text: &str, gap: Range<usize>) -> Vec<(SeparatorKind, Range<usize>)> {
    let (mut at, mut found) = (gap.start, Vec::new());
    while at < gap.end {
        let rest = &text[at..gap.end];
        let Some(first) = rest.chars().next() else { break };
        let (kind, length) = if rest.starts_with("//") {
            let line = rest.find('\n').unwrap_or(rest.len());
            (SeparatorKind::LineComment, rest[..line].strip_suffix('\r').map_or(line, str::len))
        } else if rest.starts_with("/*") {
            (SeparatorKind::BlockComment, rest.find("*/").map_or(rest.len(), |end| end + 2))
        } else if first == ',' {
            (SeparatorKind::Comma, 1)
        } else if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else {
            (SeparatorKind::Other, first.len_utf8())
        };
        found.push((kind, at..at + length));
        at += length;
    }
    found
}

/// The texts of the comments.
pub(super) fn comments(text: &str, gap: Range<usize>) -> Vec<&str> {
    let all = tokens(text, gap).into_iter().filter(|(kind, _)| *kind != SeparatorKind::Comma);
    all.map(|(_, range)| &text[range]).collect()
}

pub(super) fn comma(text: &str, gap: Range<usize>) -> Option<Range<usize>> {
    tokens(text, gap).into_iter().find(|(kind, _)| *kind == SeparatorKind::Comma).map(|(_, range)| range)
}

/// The end of the comments on the same line, and whether the last one is a line comment.
pub(super) fn end_of_comments(text: &str, gap: Range<usize>) -> (usize, bool) {
    let (mut end, mut to_line_end) = (gap.start, false);
    for (kind, range) in tokens(text, gap) {
        let same_line = !text[end..range.start].contains('\n') && !text[range.clone()].contains('\n');
        if !same_line || !matches!(kind, SeparatorKind::LineComment | SeparatorKind::BlockComment) {
            break;
        }
        (end, to_line_end) = (range.end, kind == SeparatorKind::LineComment);
    }
    (end, to_line_end)
}

pub(super) fn end_of_last_token(text: &str, gap: Range<usize>) -> usize {
    let start = gap.start;
    tokens(text, gap).last().map_or(start, |(_, range)| range.end)
}

/// The start of the whitespace to remove with a value. `rest` is the offset of the text that follows. A line comment
/// before the value keeps its newline, so that the comment does not include that text.
pub(super) fn blanks_before(text: &str, gap: Range<usize>, rest: usize) -> usize {
    let end = gap.end;
    let (kind, start) =
        tokens(text, gap.clone()).last().map_or((SeparatorKind::Other, gap.start), |(kind, r)| (*kind, r.end));
    let line_ends = text[rest..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    match text[start..end].find('\n') {
        Some(newline) if kind == SeparatorKind::LineComment && !line_ends => start + newline + 1,
        _ => start,
    }
}
