//! Checks text before it is typed.

use std::borrow::Cow;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};

const MAX_TEXT_BYTES: usize = 1 << 20;

/// Returns the text as it is typed: each CRLF is replaced by LF. Refuses all control characters except newlines and
/// tabs, because they could end the paste early and act as keys.
pub(crate) fn checked_text(text: &str) -> ApiResult<Cow<'_, str>> {
    if text.is_empty() {
        return Err(bad("the text is empty".into(), "pass a text with --text, or press keys with --key"));
    }
    if text.len() > MAX_TEXT_BYTES {
        let error = ApiError::new(ErrorCode::TooLarge, format!("the text must have at most {MAX_TEXT_BYTES} bytes"));
        return Err(error.with_hint("write the text to a file and tell the agent to read it"));
    }
    let text = if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let obeyed = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.char_indices().find(|(_, c)| obeyed(c)) {
        None => Ok(text),
        Some((at, c)) => {
            let message = format!("the text contains a control character (U+{:04X}) at byte {at}", u32::from(c));
            Err(bad(message, "remove the character; press keys with --key"))
        }
    }
}

fn bad(message: String, hint: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn checked_text_contains_no_control_characters(
            text in prop_oneof![any::<String>(), "[a\\r\\n\\t\\x1b\\x00\\x7f\\u{9b}]{0,12}"]
        ) {
            if let Ok(typed) = checked_text(&text) {
                prop_assert!(!typed.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{:?}", typed);
                prop_assert_eq!(typed.replace('\n', ""), text.replace("\r\n", "").replace('\n', ""));
            }
        }
    }

    #[test]
    fn empty_large_or_control_text_is_refused() {
        for bad in ["", "a\u{1b}[201~b", "a\rb", "\0", "\u{7f}", "\u{9b}0m", "\u{8}"] {
            assert!(checked_text(bad).is_err(), "{bad:?}");
        }
        assert!(checked_text(&"a".repeat(MAX_TEXT_BYTES + 1)).is_err());
    }

    #[test]
    fn plain_text_is_unchanged_except_for_crlf() {
        for good in ["a", "a\nb\t;", "-x", "trailing\\", "日本語 🦀", &"a".repeat(MAX_TEXT_BYTES)] {
            assert_eq!(checked_text(good).expect("valid text"), good);
        }
        assert_eq!(checked_text("a\r\nb\r\n").expect("valid text"), "a\nb\n");
    }
}
