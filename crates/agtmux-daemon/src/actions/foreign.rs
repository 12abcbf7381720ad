//! What another host answers may be anything. It is made harmless here once more, whatever was promised there.

use agtmux_api::wire::Output;
use agtmux_core::{sanitize, text};
use serde_json::Value;

use super::CUT;

/// Longer texts are cut, and say so.
const LONGEST_TEXT: usize = 16 << 10;
const LONGEST_MESSAGE: usize = 500;
/// No list in an answer is longer but that of what a pane shows.
const MOST_LISTED: usize = 1024;
/// What a pane shows has no more bytes; the newest are kept.
const MOST_SHOWN: usize = 4 << 20;

/// Cuts every list and every text of a report, and leaves nothing in them that a terminal would obey. The lines that a pane
/// shows are left to [`shown`].
pub(super) fn report(value: &mut Value) {
    match value {
        Value::String(text) => *text = harmless(text),
        Value::Array(items) => {
            items.truncate(MOST_LISTED);
            items.iter_mut().for_each(report);
        }
        Value::Object(fields) => fields.iter_mut().filter(|(name, _)| *name != "lines").for_each(|(_, v)| report(v)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A message of one line.
pub(super) fn message(text: &str) -> String {
    let (text, more) = cut(text, LONGEST_MESSAGE);
    format!("{}{more}", sanitize::for_terminal(text))
}

/// The start of what is too long, and what stands for the rest of it.
fn cut(text: &str, most: usize) -> (&str, &'static str) {
    let kept = &text[..text.floor_char_boundary(most)];
    if kept.len() == text.len() {
        return (text, "");
    }
    // Half of what changes a colour would be shown.
    let whole = kept.rfind('\u{1b}').filter(|at| !kept[*at..].contains('m')).map_or(kept, |at| &kept[..at]);
    (whole, CUT)
}

/// What a pane there shows, in colours where they were asked for.
pub(super) fn shown(mut output: Output, most_lines: usize, ansi: bool) -> Output {
    let clean = |line: &String| {
        let (line, more) = cut(line, LONGEST_TEXT);
        let clean = if ansi { sanitize::keeping_colours(line) } else { sanitize::for_terminal(line) };
        clean + more
    };
    let newest = output.lines.iter().rev().take(most_lines).map(clean);
    let mut left = MOST_SHOWN;
    let fitting = newest.take_while(|line| {
        let fits = line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    let mut lines: Vec<String> = fitting.collect();
    lines.reverse();
    output.lines = lines;
    output.title = output.title.as_deref().map(message).filter(|title| !title.is_empty());
    // A terminal of another host is none that could be watched here.
    output.tty = None;
    output
}

/// Lines stay lines, and what stands for a byte that is no text still does.
fn harmless(foreign: &str) -> String {
    let (kept, more) = cut(foreign, LONGEST_TEXT);
    let mut out = String::with_capacity(kept.len() + more.len());
    for c in kept.chars() {
        if c == '\n' || text::stood_for(c).is_some() {
            out.push(c);
        } else {
            out.push_str(&sanitize::for_terminal(c.encode_utf8(&mut [0; 4])));
        }
    }
    out + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COPIES: &str = "\u{1b}]52;c;eA==\u{7}";

    #[test]
    fn nothing_in_a_report_is_obeyed_by_a_terminal() {
        let mut value = json!({"dialog": {"question": format!("a\nb{COPIES}")}, "ids": vec![COPIES; 5000], "n": 1});
        report(&mut value);
        assert_eq!(value["dialog"]["question"], "a\nb\\x1b]52;c;eA==\\x07");
        assert_eq!(value["ids"].as_array().map(Vec::len), Some(MOST_LISTED));
        assert!(!value["ids"][0].as_str().is_some_and(|text| text.contains('\u{1b}')));
        assert_eq!(message(&format!("x{COPIES}")), "x\\x1b]52;c;eA==\\x07");
    }

    #[test]
    fn what_a_pane_shows_is_cleaned_and_bounded() {
        let output = |lines: Vec<String>| Output {
            lines,
            title: Some(COPIES.into()),
            full_screen: false,
            tty: Some("/dev/pts/0".into()),
        };
        let coloured = format!("\u{1b}[31mred{COPIES}\n");
        let clean = shown(output(vec![coloured.clone()]), 10, false);
        assert_eq!(clean.lines, ["\\x1b[31mred\\x1b]52;c;eA==\\x07\\n"]);
        assert_eq!((clean.title.as_deref(), clean.tty), (Some("\\x1b]52;c;eA==\\x07"), None));
        assert_eq!(shown(output(vec![coloured]), 10, true).lines, ["\u{1b}[31mred\\x1b]52;c;eA==\\x07\\n"]);
        let many = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(shown(output(many), 2, false).lines, ["98", "99"]);
        let long = format!("\u{1b}[31m{}\u{1b}[32mgreen", "é".repeat(LONGEST_TEXT / 2 - 4));
        let cut = shown(output(vec![long]), 10, true);
        assert!(cut.lines[0].ends_with("é… [cut]"), "{}", &cut.lines[0][LONGEST_TEXT - 40..]);
        assert_eq!(message(&"x".repeat(501)), format!("{}… [cut]", "x".repeat(500)));
        assert_eq!(message(&"x".repeat(500)), "x".repeat(500));
        let much = shown(output(vec!["x".repeat(LONGEST_TEXT + 1); 1000]), 1000, false);
        assert!(much.lines.iter().map(String::len).sum::<usize>() <= MOST_SHOWN);
    }
}
