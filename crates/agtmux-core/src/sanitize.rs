//! Makes untrusted text safe to print on a terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use crate::text;

/// Escapes control characters, invisible characters, characters that change the text direction, and invalid bytes.
/// Other text is unchanged.
pub fn for_terminal(untrusted: &str) -> String {
    let mut out = String::with_capacity(untrusted.len());
    for c in untrusted.chars() {
        push_safe(&mut out, c);
    }
    out
}

/// Like [`for_terminal`], but keeps tabs.
pub fn keeping_tabs(untrusted: &str) -> String {
    untrusted.split('\t').map(for_terminal).collect::<Vec<_>>().join("\t")
}

/// Makes a JSON document safe for a terminal: writes each hidden character as the JSON escape `\uXXXX`. This does not
/// change the value of the document, because JSON allows these characters only in strings.
pub fn in_json(document: &str) -> Cow<'_, str> {
    let is_kept = |c: char| matches!(c, '\n' | '\t' | '\r') || !is_hidden(c);
    if document.chars().all(is_kept) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        match is_kept(c) {
            true => out.push(c),
            false => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    Cow::Owned(out)
}

/// Like [`for_terminal`], but keeps colours and text attributes, and reduces hyperlinks to their text.
pub fn keeping_colours(untrusted: &str) -> String {
    let mut out = String::with_capacity(untrusted.len());
    let mut rest = untrusted;
    while let Some(c) = rest.chars().next() {
        let length = attribute(rest).or_else(|| link(rest));
        match length {
            Some((length, kept)) => {
                out.push_str(if kept { &rest[..length] } else { "" });
                rest = &rest[length..];
            }
            None => {
                push_safe(&mut out, c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Matches `CSI … m`, which sets a colour or attribute, at the start of the text. Returns the length of the sequence,
/// and true because the sequence is kept.
fn attribute(text: &str) -> Option<(usize, bool)> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | ':'))?;
    parameters[end..].starts_with('m').then_some((end + 3, true))
}

/// Matches `OSC 8 ; … ST`, which begins or ends a hyperlink, at the start of the text. Returns the length of the
/// sequence, and false because the sequence is dropped.
fn link(text: &str) -> Option<(usize, bool)> {
    let body = text.strip_prefix("\u{1b}]8;")?;
    let end = body.find(|c: char| c.is_control())?;
    let close = if body[end..].starts_with("\u{1b}\\") {
        2
    } else if body[end..].starts_with('\u{7}') {
        1
    } else {
        return None;
    };
    Some((4 + end + close, false))
}

/// Like [`for_terminal`], but cuts the result to at most `columns` columns. A text that was cut ends with `…`.
pub fn for_column(untrusted: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    let mut before_last = 0;
    for c in untrusted.chars() {
        let start = out.len();
        push_safe(&mut out, c);
        let width: usize = out[start..].chars().map(|c| c.width().unwrap_or(0)).sum();
        if used + width > columns {
            out.truncate(before_last);
            if columns > 0 {
                out.push('…');
            }
            return out;
        }
        used += width;
        if used < columns {
            before_last = out.len();
        }
    }
    out
}

fn push_safe(out: &mut String, c: char) {
    if let Some(byte) = text::escaped_byte(c) {
        out.push_str(&format!("\\x{byte:02x}"));
    } else if is_hidden(c) {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
        }
    } else {
        out.push(c);
    }
}

/// Whether this character is invisible but affects a terminal or misleads a reader.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeping_colours_keeps_only_text_attributes() {
        let shown =
            "\u{1b}[1;38:5:9mred\u{1b}[0m \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}]52;c;eA==\u{7}";
        let kept = keeping_colours(shown);
        assert_eq!(kept, "\u{1b}[1;38:5:9mred\u{1b}[0m link \\x1b]52;c;eA==\\x07");
        assert_eq!(keeping_colours("\u{1b}[2J\u{1b}["), "\\x1b[2J\\x1b[");
    }
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(for_terminal("a\x1b[31mb\u{9b}c"), "a\\x1b[31mb\\x9bc");
        assert_eq!(for_terminal("x\u{202e}y\u{200b}z"), "x\\u{202e}y\\u{200b}z");
        assert_eq!(for_terminal("two\nlines\t"), "two\\nlines\\t");
        assert_eq!(for_terminal(&text::from_bytes(b"bad\xff")), "bad\\xff");
        assert_eq!(for_terminal("Ünïcode 日本 ✳"), "Ünïcode 日本 ✳");
    }

    #[test]
    fn a_json_document_is_escaped_and_stays_the_same_value() {
        let value = serde_json::json!({"n\u{9b}ame": ["\u{7f}\u{202e}\u{e0001}x\u{1b}\n", "日本 ✳", 1]});
        let written = value.to_string();
        let escaped = in_json(&written);
        assert!(escaped.chars().all(|c| !is_hidden(c)), "{escaped}");
        assert!(escaped.contains("n\\u009bame") && escaped.contains("\\udb40\\udc01x"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("JSON"), value);
        assert_eq!(in_json("{\n\t\"a\": 1\r\n}\n"), "{\n\t\"a\": 1\r\n}\n");
    }

    #[test]
    fn cut_text_ends_with_an_ellipsis_and_fits() {
        assert_eq!(for_column("abcdef", 4), "abc…");
        assert_eq!(for_column("abcd", 4), "abcd");
        assert_eq!(for_column("日本語", 4), "日…");
        assert_eq!(for_column("abc", 0), "");
    }

    proptest! {
        #[test]
        fn output_is_always_printable(bytes in proptest::collection::vec(any::<u8>(), 0..80), columns in 0usize..30) {
            let untrusted = text::from_bytes(&bytes);
            prop_assert!(for_terminal(&untrusted).chars().all(|c| !is_hidden(c)));
            prop_assert!(for_column(&untrusted, columns).width() <= columns);
        }
    }
}
