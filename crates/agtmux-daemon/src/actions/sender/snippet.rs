//! A part of a text by which it is known again.

const SHORTEST_TEXT: usize = 40;
const SHORTEST: usize = 15;
const LONGEST: usize = 60;

/// The end of its last line that has one, without blanks. None where that would be too little to go by.
pub(super) fn of(text: &str) -> Option<String> {
    if text.trim().chars().count() < SHORTEST_TEXT {
        return None;
    }
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let length = line.chars().count();
    let end: String = line.chars().skip(length.saturating_sub(LONGEST)).collect();
    (length >= SHORTEST).then(|| squashed(&end))
}

/// Boxes break lines where they like.
pub(in crate::actions) fn squashed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// What is the same whether letters and their accents are written as one or as two: some agents compose them.
pub(super) fn skeleton(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '\u{300}'..='\u{36f}');
    let is_composed = |c: char| matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}');
    let mut kept = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            // The letter that it belongs to is not what it was.
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
        assert_eq!(of("short"), None);
        assert_eq!(of(&"x".repeat(39)), None);
        assert_eq!(of(&"x".repeat(40)), Some("x".repeat(40)));
    }

    #[test]
    fn empty_or_whitespace_only_text() {
        assert_eq!([of(""), of(&" \n\t".repeat(30))], [None, None]);
    }

    #[test]
    fn text_with_only_short_lines() {
        assert_eq!(of("a line that is long enough to count for something\nshort"), None);
        assert_eq!(of("a line that is long enough to count for something\nfourteen chars"), None);
    }

    #[test]
    fn accents_are_the_same_in_both_spellings() {
        assert_eq!(skeleton("e\u{301}t e\u{301} x"), skeleton("ét é x"));
        assert_eq!(skeleton("日本 語;"), "日本語;");
    }

    #[test]
    fn long_text_produces_snippet() {
        let text = format!("{}\n{} the end of it\n\n", "x".repeat(50), "y".repeat(80));
        let snippet = of(&text).expect("long enough");
        assert!(snippet.ends_with("theendofit") && snippet.starts_with('y'));
        assert!(snippet.chars().count() <= LONGEST);
    }
}
