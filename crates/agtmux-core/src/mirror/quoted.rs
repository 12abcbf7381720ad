//! Texts in marks: quoted by bash and zsh, or percent-encoded by fish.

use crate::text;

/// Reads one word as bash (`${x@Q}`) and zsh (`${(qqqq)x}`) quote it. `None` if the quotes are not closed.
pub(super) fn unquote(word: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'$', [b'\'', quoted @ ..]) => read_escaped(quoted, &mut out)?,
            (b'\'', quoted) => {
                let end = quoted.iter().position(|byte| *byte == b'\'')?;
                out.extend_from_slice(&quoted[..end]);
                &quoted[end + 1..]
            }
            (b'\\', [byte, after @ ..]) => {
                out.push(*byte);
                after
            }
            (byte, after) => {
                out.push(byte);
                after
            }
        };
    }
    Some(text::from_bytes(&out))
}

/// Reads the inside of `$'…'`. Returns the bytes after the closing quote.
fn read_escaped<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&first, after) = rest.split_first()?;
        rest = match first {
            b'\'' => return Some(after),
            b'\\' => read_escape(after, out)?,
            byte => {
                out.push(byte);
                after
            }
        };
    }
}

fn read_escape<'a>(escape: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (&kind, after) = escape.split_first()?;
    let simple = match kind {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'e' | b'E' => 0x1b,
        b'0'..=b'7' => return Some(read_number(escape, 8, 3, |code| out.push(code.to_le_bytes()[0]))),
        b'x' => return Some(read_number(after, 16, 2, |code| out.push(code.to_le_bytes()[0]))),
        b'u' => return Some(read_number(after, 16, 4, |code| push_char(out, code))),
        b'U' => return Some(read_number(after, 16, 8, |code| push_char(out, code))),
        other => other,
    };
    out.push(simple);
    Some(after)
}

/// Reads up to `max_digits` digits and passes their value to `take`. Returns the bytes after the digits.
fn read_number(digits: &[u8], radix: u32, max_digits: usize, mut take: impl FnMut(u32)) -> &[u8] {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let length = digits.iter().take(max_digits).take_while(is_digit).count();
    let value = digits[..length].iter().fold(0_u32, |value, byte| {
        value.wrapping_mul(radix).wrapping_add(char::from(*byte).to_digit(radix).unwrap_or_default())
    });
    take(value);
    &digits[length..]
}

fn push_char(out: &mut Vec<u8>, code: u32) {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Decodes percent-encoded text, such as `%41` for `A`. fish writes such text with `string escape --style=url`.
pub(super) fn percent_decode(word: &[u8]) -> String {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|hex| first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        rest = match hex {
            Some(hex) => {
                read_number(hex, 16, 2, |code| out.push(code.to_le_bytes()[0]));
                &after[2..]
            }
            None => {
                out.push(first);
                after
            }
        };
    }
    text::from_bytes(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_of_bash_and_zsh_are_read() {
        for (quoted, text) in [
            ("''", ""),
            ("'ls -l'", "ls -l"),
            (r"'it'\''s'", "it's"),
            (r"$'a\nb\tc\'d\\'", "a\nb\tc'd\\"),
            (r"$'\E[1m\001\x41\u00e9'", "\u{1b}[1m\u{1}Aé"),
            ("'日本;x'", "日本;x"),
        ] {
            assert_eq!(unquote(quoted.as_bytes()).as_deref(), Some(text), "{quoted}");
        }
        assert_eq!(unquote(br"$'\303\251'").as_deref(), Some("é"));
        for open in ["'a", "$'a", r"$'a\"] {
            assert_eq!(unquote(open.as_bytes()), None, "{open}");
        }
    }

    #[test]
    fn percent_encoded_words_of_fish_are_read() {
        assert_eq!(percent_decode(b"echo%20%22a%3Bb%22%0A/x"), "echo \"a;b\"\n/x");
        assert_eq!(percent_decode(b"100%"), "100%");
        assert_eq!(percent_decode(b"%C3%A9"), "é");
    }
}
