//! OSC 52: puts a text into the clipboard of the terminal, also over ssh.

/// Terminals ignore longer sequences.
const MAX_BYTES: usize = 74_000;

/// The sequence. A longer text is cut at a character.
pub(super) fn sequence(text: &str) -> String {
    let part = &text[..text.floor_char_boundary(MAX_BYTES)];
    format!("\u{1b}]52;c;{}\u{7}", base64(part.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for n in 0..4 {
            let digit = (bits >> (18 - 6 * n)) & 63;
            let is_padding = n > group.len();
            out.push(if is_padding { '=' } else { char::from(DIGITS[digit as usize]) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_in_base_64() {
        for (text, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("é~\u{7f}", "w6l+fw==")]
        {
            assert_eq!(base64(text.as_bytes()), coded, "{text}");
        }
        assert_eq!(sequence("f"), "\u{1b}]52;c;Zg==\u{7}");
        assert!(sequence(&"é".repeat(MAX_BYTES)).len() < 100_000);
    }
}
