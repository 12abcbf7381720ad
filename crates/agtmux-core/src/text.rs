//! Lossless conversion between external bytes and `String`.
//!
//! Paths and process names are bytes; JSON, SQL and terminals need text. A byte `b` that is not valid UTF-8 becomes the
//! private-use character U+10FF00 + b. If the input already contains one of these characters, each UTF-8
//! byte of the character is converted in the same way, so the conversion can always be reversed.

const BASE: u32 = 0x10_FF00;

fn escape_byte(byte: u8) -> char {
    char::from_u32(BASE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that this character stands for, if it is one of the private-use characters for invalid bytes.
pub fn escaped_byte(c: char) -> Option<u8> {
    u8::try_from((c as u32).checked_sub(BASE)?).ok().filter(|b| *b >= 0x80)
}

/// Converts bytes to text without loss.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if escaped_byte(c).is_some() {
                let mut buffer = [0; 4];
                out.extend(c.encode_utf8(&mut buffer).bytes().map(escape_byte));
            } else {
                out.push(c);
            }
        }
        out.extend(chunk.invalid().iter().copied().map(escape_byte));
    }
    out
}

/// Reverses [`from_bytes`].
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        match escaped_byte(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(to_bytes(&from_bytes(&bytes)), bytes);
        }

        #[test]
        fn valid_text_is_unchanged(text in "\\PC*") {
            prop_assume!(!text.chars().any(|c| escaped_byte(c).is_some()));
            prop_assert_eq!(from_bytes(text.as_bytes()), text);
        }
    }
}
