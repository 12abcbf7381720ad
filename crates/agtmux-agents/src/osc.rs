//! Finds the escape codes with which an agent reports its state on its terminal: `ESC ] 7501 ; state=S:app=A:kind=K
//! ST`.

use serde_json::{Map, Value};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const START: &[u8] = b"\x1b]7501;";
/// The maximum length of a code in bytes. A longer code is ignored.
const MAX_CODE: usize = 4096;
const FIELDS: [&str; 3] = ["state", "app", "kind"];

/// Finds state reports in a terminal's output, which arrives in pieces.
#[derive(Debug, Default)]
pub struct OscScanner {
    /// The bytes of an escape code whose end has not arrived yet. Empty between codes.
    pending: Vec<u8>,
}

impl OscScanner {
    /// Returns each state that this piece of the stream reports, with all fields of the code that reports it.
    pub fn read(&mut self, piece: &[u8]) -> Vec<(String, Value)> {
        let mut states = Vec::new();
        for byte in piece {
            if let Some(code) = self.push(*byte) {
                states.extend(parse(&code));
            }
        }
        states
    }

    /// Adds a byte. If this byte completes a code, returns the contents of the code: the bytes between its start
    /// sequence and its terminator.
    fn push(&mut self, byte: u8) -> Option<Vec<u8>> {
        if self.pending.is_empty() && byte != ESC {
            return None;
        }
        self.pending.push(byte);
        let known = self.pending.len();
        if known <= START.len() {
            if !START.starts_with(&self.pending) {
                // This byte may start the next code.
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
        // A code that contains an escape or is too long is not valid.
        let broken = self.pending[known - 2] == ESC && known > START.len() + 1;
        if broken || known > MAX_CODE {
            self.pending = Vec::new();
        }
        None
    }
}

/// Parses a code into its state and its fields. Keeps only known fields with alphanumeric values, because any program
/// can write to the terminal.
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
    fn a_code_is_found_wherever_the_stream_is_split() {
        let stream =
            [b"text \x1b[1m\x1b]0;title\x07 ", BLOCKED, b"\x1b\x1b]7501;state=idle:app=codex\x07 more"].concat();
        let wanted = vec![
            ("blocked".to_owned(), json!({"state": "blocked", "app": "codex", "kind": "permission"})),
            ("idle".to_owned(), json!({"state": "idle", "app": "codex"})),
        ];
        for cut in 0..=stream.len() {
            let mut codes = OscScanner::default();
            let mut states = codes.read(&stream[..cut]);
            states.extend(codes.read(&stream[cut..]));
            assert_eq!(states, wanted, "cut at {cut}");
        }
    }

    #[test]
    fn other_codes_are_ignored() {
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
        fn any_input_is_scanned_with_bounded_memory(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut codes = OscScanner::default();
            let stream = [START, &bytes, BLOCKED].concat();
            codes.read(&stream);
            prop_assert!(codes.pending.len() <= MAX_CODE);
        }
    }
}
