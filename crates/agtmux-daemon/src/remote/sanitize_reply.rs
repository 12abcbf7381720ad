//! Sanitizes replies of remote hosts, which are not trusted.

use agtmux_api::wire::{LastReport, OutputReport};
use agtmux_core::{sanitize, text};
use serde_json::Value;

use crate::actions::CUT_MARK;

/// Longer texts are truncated and marked.
const MAX_TEXT_BYTES: usize = 16 << 10;
const MAX_MESSAGE_BYTES: usize = 500;
/// The maximum number of items kept from each list in a reply. The lines of a pane have their own limit.
const MAX_LIST_ITEMS: usize = 1024;
/// The most bytes of pane output. The newest lines are kept.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The most bytes of one answer of an agent, and of all answers in one reply. The newest answers are kept.
const MAX_ANSWER_BYTES: usize = 1 << 20;
const MAX_ANSWERS_BYTES: usize = 4 << 20;

/// Truncates every list and text in a report and escapes control sequences. Pane output (`lines`) is left to
/// [`sanitize_output`], and answers (`turns`) to [`sanitize_last`].
pub(super) fn sanitize_report(value: &mut Value) {
    match value {
        Value::String(text) => *text = sanitize_text(text),
        Value::Array(items) => {
            items.truncate(MAX_LIST_ITEMS);
            items.iter_mut().for_each(sanitize_report);
        }
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !matches!(name.as_str(), "lines" | "turns"))
            .for_each(|(_, v)| sanitize_report(v)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Sanitizes a one-line message.
pub(super) fn sanitize_message(text: &str) -> String {
    let (text, more) = truncate(text, MAX_MESSAGE_BYTES);
    format!("{}{more}", sanitize::for_terminal(text))
}

/// Truncates a text. Returns the kept part and a mark. The mark is empty if nothing was cut off.
fn truncate(text: &str, most: usize) -> (&str, &'static str) {
    let kept = &text[..text.floor_char_boundary(most)];
    if kept.len() == text.len() {
        return (text, "");
    }
    // Drop an incomplete colour sequence at the end: it would be printed as text.
    let whole = kept.rfind('\u{1b}').filter(|at| !kept[*at..].contains('m')).map_or(kept, |at| &kept[..at]);
    (whole, CUT_MARK)
}

/// Sanitizes pane output. Keeps colour sequences if `ansi` is set.
pub(crate) fn sanitize_output(mut output: OutputReport, most_lines: usize, ansi: bool) -> OutputReport {
    let clean = |line: &String| {
        let (line, more) = truncate(line, MAX_TEXT_BYTES);
        let clean = if ansi { sanitize::keeping_colours(line) } else { sanitize::for_terminal(line) };
        clean + more
    };
    let newest = output.lines.iter().rev().take(most_lines).map(clean);
    let mut left = MAX_OUTPUT_BYTES;
    let fitting = newest.take_while(|line| {
        let fits = line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    let mut lines: Vec<String> = fitting.collect();
    lines.reverse();
    output.lines = lines;
    output.title = output.title.as_deref().map(sanitize_message).filter(|title| !title.is_empty());
    // The terminal is on the other host and cannot be watched from here.
    output.tty = None;
    output
}

/// Sanitizes the answers of an agent. Newlines and tabs stay.
pub(crate) fn sanitize_last(mut last: LastReport, most_turns: usize) -> LastReport {
    let clean = |text: String| {
        let (kept, more) = truncate(&text, MAX_ANSWER_BYTES);
        let lines: Vec<String> = kept.split('\n').map(sanitize::keeping_tabs).collect();
        lines.join("\n") + more
    };
    let mut left = MAX_ANSWERS_BYTES;
    let newest = std::mem::take(&mut last.turns).into_iter().rev().take(most_turns).map(|mut turn| {
        turn.prompt = turn.prompt.map(clean);
        turn.answer = turn.answer.map(clean);
        turn
    });
    let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    last.turns = newest
        .take_while(|turn| {
            let size = bytes(&turn.prompt) + bytes(&turn.answer);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        })
        .collect();
    last.turns.reverse();
    last
}

/// Truncates a text and escapes its control characters, except newlines and the placeholders for bytes that are not
/// valid text.
fn sanitize_text(foreign: &str) -> String {
    let (kept, more) = truncate(foreign, MAX_TEXT_BYTES);
    let mut out = String::with_capacity(kept.len() + more.len());
    for c in kept.chars() {
        if c == '\n' || text::escaped_byte(c).is_some() {
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
    use agtmux_api::wire::{AnswerEnding, AnswerSource, AnsweredTurn};
    use serde_json::json;

    const COPIES: &str = "\u{1b}]52;c;eA==\u{7}";

    #[test]
    fn answers_keep_their_lines_and_tabs_and_the_newest_fit() {
        let turn = |answer: String| AnsweredTurn {
            prompt: Some(format!("p{COPIES}")),
            prompted_at: None,
            answer: Some(answer),
            answered_at: None,
            ending: AnswerEnding::Answered,
        };
        let last = |turns: Vec<AnsweredTurn>| LastReport {
            source: AnswerSource::Transcript,
            session: None,
            outdated: false,
            turns,
        };
        let clean = sanitize_last(last(vec![turn("old".into()), turn(format!("a\n\tb{COPIES}"))]), 1).turns;
        assert_eq!(clean.len(), 1);
        assert_eq!(clean[0].answer.as_deref(), Some("a\n\tb\\x1b]52;c;eA==\\x07"));
        assert_eq!(clean[0].prompt.as_deref(), Some("p\\x1b]52;c;eA==\\x07"));
        let long = sanitize_last(last(vec![turn("x".repeat(2 * MAX_ANSWER_BYTES)); 100]), 100).turns;
        let bytes: usize = long.iter().filter_map(|turn| turn.answer.as_ref()).map(String::len).sum();
        assert!((MAX_ANSWER_BYTES..=MAX_ANSWERS_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_report_contains_no_control_sequences() {
        let mut value = json!({"dialog": {"question": format!("a\nb{COPIES}")}, "ids": vec![COPIES; 5000], "n": 1});
        sanitize_report(&mut value);
        assert_eq!(value["dialog"]["question"], "a\nb\\x1b]52;c;eA==\\x07");
        assert_eq!(value["ids"].as_array().map(Vec::len), Some(MAX_LIST_ITEMS));
        assert!(!value["ids"][0].as_str().is_some_and(|text| text.contains('\u{1b}')));
        assert_eq!(sanitize_message(&format!("x{COPIES}")), "x\\x1b]52;c;eA==\\x07");
    }

    #[test]
    fn pane_output_is_sanitized_and_bounded() {
        let output = |lines: Vec<String>| OutputReport {
            lines,
            title: Some(COPIES.into()),
            full_screen: false,
            tty: Some("/dev/pts/0".into()),
        };
        let coloured = format!("\u{1b}[31mred{COPIES}\n");
        let clean = sanitize_output(output(vec![coloured.clone()]), 10, false);
        assert_eq!(clean.lines, ["\\x1b[31mred\\x1b]52;c;eA==\\x07\\n"]);
        assert_eq!((clean.title.as_deref(), clean.tty), (Some("\\x1b]52;c;eA==\\x07"), None));
        assert_eq!(sanitize_output(output(vec![coloured]), 10, true).lines, ["\u{1b}[31mred\\x1b]52;c;eA==\\x07\\n"]);
        let many = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(sanitize_output(output(many), 2, false).lines, ["98", "99"]);
        let long = format!("\u{1b}[31m{}\u{1b}[32mgreen", "é".repeat(MAX_TEXT_BYTES / 2 - 4));
        let cut = sanitize_output(output(vec![long]), 10, true);
        assert!(cut.lines[0].ends_with("é… [cut]"), "{}", &cut.lines[0][MAX_TEXT_BYTES - 40..]);
        assert_eq!(sanitize_message(&"x".repeat(501)), format!("{}… [cut]", "x".repeat(500)));
        assert_eq!(sanitize_message(&"x".repeat(500)), "x".repeat(500));
        let much = sanitize_output(output(vec!["x".repeat(MAX_TEXT_BYTES + 1); 1000]), 1000, false);
        assert!(much.lines.iter().map(String::len).sum::<usize>() <= MAX_OUTPUT_BYTES);
    }
}
