//! Redacts secrets in a screen and keeps its colours where possible.

use std::borrow::Cow;

use agtmux_agents::CapturedScreen;
use agtmux_core::redact;

pub(super) struct RedactedScreen {
    pub(super) plain: String,
    pub(super) ansi: Vec<u8>,
}

/// Redacts the secrets on a screen. Searches the plain text, because colour codes inside a secret would hide the
/// secret. Rows with a secret lose their colours. If a secret is found only when all rows are searched together, the
/// whole screen loses its colours.
pub(super) fn redact_screen(capture: &[u8]) -> RedactedScreen {
    let screen = CapturedScreen::parse(capture);
    let rows: Vec<&str> = screen.rows().iter().map(|row| row.text()).collect();
    let mut drawn: Vec<&[u8]> = capture.split(|byte| *byte == b'\n').collect();
    drawn.resize(drawn.len().max(rows.len()), b"");
    // The width of the widest row, which may be less than the width of the pane. In that case some rows are joined
    // unnecessarily.
    let width = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let (mut plain, mut ansi): (Vec<String>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < rows.len() {
        // Text that fills its row may continue in the next row.
        let full = rows[at..].iter().take_while(|row| row.chars().count() == width).count();
        let end = (at + full + 1).min(rows.len());
        let joined = rows[at..end].concat();
        let spans_rows = matches!(redact::text(&joined), Cow::Owned(_)) && full > 0;
        let cleaned = match spans_rows {
            true => wrapped(&redact::text(&joined), width).into_iter().map(|row| (row, None)).collect(),
            false => rows[at..end].iter().zip(&drawn[at..]).map(clean_row).collect::<Vec<_>>(),
        };
        for (row, looks) in cleaned {
            ansi.extend(looks.unwrap_or(format!("\x1b[0m{row}").as_bytes()));
            ansi.push(b'\n');
            plain.push(row);
        }
        at = end;
    }
    let plain = plain.join("\n") + "\n";
    if let Cow::Owned(clean) = redact::text(&plain) {
        return RedactedScreen { ansi: clean.clone().into_bytes(), plain: clean };
    }
    // Redact the escape sequences too: they contain the addresses of hyperlinks.
    let ansi = match std::str::from_utf8(&ansi).map(redact::text) {
        Ok(clean) => clean.into_owned().into_bytes(),
        Err(_) => plain.clone().into_bytes(),
    };
    RedactedScreen { plain, ansi }
}

/// Returns the redacted row. If the row contains no secret, also returns its original bytes, which include the colours.
fn clean_row<'d>((row, drawn): (&&str, &&'d [u8])) -> (String, Option<&'d [u8]>) {
    match redact::text(row) {
        Cow::Borrowed(row) => (row.to_owned(), Some(drawn)),
        Cow::Owned(clean) => (clean, None),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

    fn both(capture: &str) -> [String; 2] {
        let shown = redact_screen(capture.as_bytes());
        [shown.plain, String::from_utf8(shown.ansi).expect("text")]
    }

    #[test]
    fn rows_without_secrets_keep_their_colours() {
        let line = "─".repeat(120);
        let [plain, ansi] = both(&format!("\x1b[1mhello\x1b[0m\n{line}\nkey {KEY}\n\x1b[31mend\x1b[0m\n"));
        assert!(plain.starts_with(&format!("hello\n{line}")) && plain.ends_with("]\nend\n"), "{plain}");
        assert!(plain.contains("key [redacted:anthropic]"), "{plain}");
        assert!(ansi.starts_with("\x1b[1mhello\x1b[0m\n") && ansi.ends_with("\x1b[31mend\x1b[0m\n"), "{ansi}");
    }

    #[test]
    fn secrets_are_found_across_colours_and_rows() {
        let (first, rest) = KEY.split_at(30);
        for capture in [
            format!("a {}\x1b[32m{}\n", &KEY[..12], &KEY[12..]),
            format!("{first}\n{rest}\n").replace(rest, &format!("{}\n{}", &rest[..30], &rest[30..])),
            format!("\x1b]8;;https://u:{KEY}@example.com\x1b\\link\x1b]8;;\x1b\\\n"),
        ] {
            let all = both(&capture).concat();
            for piece in [&KEY[14..28], &KEY[32..46], &KEY[62..76]] {
                assert!(!all.contains(piece), "{piece} in {all}");
            }
        }
    }
}
