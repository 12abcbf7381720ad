//! Compares a typed text with a screen or an event that may show only a part of the text.

const MIN_TEXT_CHARS: usize = 40;
const MIN_LINE_CHARS: usize = 15;
const MAX_SNIPPET_CHARS: usize = 60;

/// The end of the last non-empty line, without whitespace. `None` if the text or its last line is too short to identify
/// the text.
pub(super) fn text_snippet(text: &str) -> Option<String> {
    if text.trim().chars().count() < MIN_TEXT_CHARS {
        return None;
    }
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let length = line.chars().count();
    let end: String = line.chars().skip(length.saturating_sub(MAX_SNIPPET_CHARS)).collect();
    (length >= MIN_LINE_CHARS).then(|| without_whitespace(&end))
}

/// Removes whitespace, because input boxes wrap lines anywhere.
pub(in crate::actions) fn without_whitespace(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Removes whitespace and accented letters. Some agents replace a letter and a combining accent by one character, so
/// accented letters cannot be compared.
pub(super) fn comparable_text(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '\u{300}'..='\u{36f}');
    let is_composed = |c: char| matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}');
    let mut kept = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            // The accent changes the letter before it, so drop that letter too.
            c if is_mark(c) => _ = kept.pop(),
            c if is_composed(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_returns_none() {
        assert_eq!(text_snippet("short"), None);
        assert_eq!(text_snippet(&"x".repeat(39)), None);
        assert_eq!(text_snippet(&"x".repeat(40)), Some("x".repeat(40)));
    }

    #[test]
    fn empty_or_whitespace_only_text() {
        assert_eq!([text_snippet(""), text_snippet(&" \n\t".repeat(30))], [None, None]);
    }

    #[test]
    fn text_with_only_short_lines() {
        assert_eq!(text_snippet("a line that is long enough to count for something\nshort"), None);
        assert_eq!(text_snippet("a line that is long enough to count for something\nfourteen chars"), None);
    }

    #[test]
    fn composed_and_decomposed_accents_compare_equal() {
        assert_eq!(comparable_text("e\u{301}t e\u{301} x"), comparable_text("ét é x"));
        assert_eq!(comparable_text("日本 語;"), "日本語;");
    }

    #[test]
    fn long_text_produces_snippet() {
        let text = format!("{}\n{} the end of it\n\n", "x".repeat(50), "y".repeat(80));
        let snippet = text_snippet(&text).expect("long enough");
        assert!(snippet.ends_with("theendofit") && snippet.starts_with('y'));
        assert!(snippet.chars().count() <= MAX_SNIPPET_CHARS);
    }
}
