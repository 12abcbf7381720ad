//! `ESC ] 7501 ; state=S:app=A:kind=K ST` in a stream of anything.

use serde_json::{Map, Value};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const START: &[u8] = b"\x1b]7501;";
/// More than any of them has.
const MAX_CODE: usize = 4096;
const FIELDS: [&str; 3] = ["state", "app", "kind"];

/// What is left of a code whose end has not come yet.
#[derive(Debug, Default)]
pub(super) struct OscScanner {
    /// Begins with a beginning of [`START`], or is empty.
    pending: Vec<u8>,
}

impl OscScanner {
    /// The states that were told in this piece of the stream, with what was told beside each.
    pub(super) fn read(&mut self, piece: &[u8]) -> Vec<(String, Value)> {
        let mut told = Vec::new();
        for byte in piece {
            if let Some(code) = self.push(*byte) {
                told.extend(parse(&code));
            }
        }
        told
    }

    /// A whole code, without what begins and ends it.
    fn push(&mut self, byte: u8) -> Option<Vec<u8>> {
        if self.pending.is_empty() && byte != ESC {
            return None;
        }
        self.pending.push(byte);
        let known = self.pending.len();
        if known <= START.len() {
            if !START.starts_with(&self.pending) {
                // It may be the beginning of the next one.
                self.pending = if byte == ESC { vec![ESC] } else { Vec::new() };
            }
            return None;
        }
        let ended = byte == BEL || (byte == b'\\' && self.pending[known - 2] == ESC);
        if ended {
            let code = std::mem::take(&mut self.pending);
            let end = if byte == BEL { 1 } else { 2 };
            return Some(code[START.len()..known - end].to_vec());
        }
        // An escape within it, or too much of it: no code of ours.
        let broken = self.pending[known - 2] == ESC && known > START.len() + 1;
        if broken || known > MAX_CODE {
            self.pending = Vec::new();
        }
        None
    }
}

/// Only what is known is passed on, and only plain words: the rest is anybody's.
fn parse(code: &[u8]) -> Option<(String, Value)> {
    let text = std::str::from_utf8(code).ok()?;
    let pairs = text.split(':').filter_map(|pair| pair.split_once('='));
    let is_plain = |word: &str| !word.is_empty() && word.len() <= 32 && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let known = pairs.filter(|(name, value)| FIELDS.contains(name) && is_plain(value));
    let fields: Map<String, Value> = known.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let state = fields.get("state")?.as_str()?.to_owned();
    Some((state, Value::Object(fields)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const BLOCKED: &[u8] = b"\x1b]7501;state=blocked:app=codex:kind=permission\x1b\\";

    #[test]
    fn a_code_is_found_wherever_the_stream_is_cut() {
        let stream =
            [b"text \x1b[1m\x1b]0;title\x07 ", BLOCKED, b"\x1b\x1b]7501;state=idle:app=codex\x07 more"].concat();
        let wanted = vec![
            ("blocked".to_owned(), json!({"state": "blocked", "app": "codex", "kind": "permission"})),
            ("idle".to_owned(), json!({"state": "idle", "app": "codex"})),
        ];
        for cut in 0..=stream.len() {
            let mut codes = OscScanner::default();
            let mut told = codes.read(&stream[..cut]);
            told.extend(codes.read(&stream[cut..]));
            assert_eq!(told, wanted, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_such_code_says_nothing() {
        for stream in [
            &b"\x1b]7501;?\x1b\\"[..],
            b"\x1b]7502;state=idle\x1b\\",
            b"\x1b]7501;state=\x1b\\",
            b"\x1b]7501;state=a b\x07",
            b"\x1b]7501;state=$(x)\x07",
            b"\x1b]7501;app=codex\x07",
            b"]7501;state=idle\x07",
            b"\x1b]7501;state=idle\x1b[0m",
        ] {
            assert_eq!(OscScanner::default().read(stream), [], "{}", stream.escape_ascii());
        }
        let endless = [b"\x1b]7501;state=idle:msg=".as_slice(), &vec![b'x'; 1 << 20]].concat();
        let mut codes = OscScanner::default();
        assert_eq!(codes.read(&endless), []);
        assert!(codes.pending.len() <= MAX_CODE);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_or_keep_much(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut codes = OscScanner::default();
            let stream = [START, &bytes, BLOCKED].concat();
            codes.read(&stream);
            prop_assert!(codes.pending.len() <= MAX_CODE);
        }
    }
}
