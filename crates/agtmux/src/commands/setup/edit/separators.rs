//! What stands between two values: blanks, comments and commas.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeparatorKind {
    Comma,
    /// Ends where its line does.
    LineComment,
    BlockComment,
    Other,
}

/// Everything in it but blanks, in order, with its place in the whole text.
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

/// Where the comments that follow on the same line end, and whether the last of them takes the rest of its line.
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

/// Where the blanks before a value begin that go with it. `rest` is what will follow: a comment must not swallow it.
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
