//! Finds marks in raw bytes that arrive piece by piece.

use super::mark::ShellMark;

const INTRODUCER: &[u8] = b"\x1b]133;";

/// A sequence with more bytes than this is not a mark. The text of a command has at most 100 KiB, and quoting makes the
/// text at most four times longer.
const MAX_MARK_BYTES: usize = 1 << 20;

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum MarkedPiece<'a> {
    Bytes(&'a [u8]),
    Mark(ShellMark),
}

/// Splits a stream into marks and other bytes. Holds back only bytes that may be the beginning of a mark.
#[derive(Debug, Clone)]
pub struct MarkedStream {
    nonce: Vec<u8>,
    /// Bytes that may be the beginning of a mark. Empty, or begins with ESC.
    held: Vec<u8>,
}

/// The status of the held bytes after one more byte was added.
enum HeldState {
    Open,
    /// The held bytes are a complete sequence. Its terminator has this many bytes.
    Complete(usize),
    /// The held bytes are not a mark.
    Broken,
}

impl MarkedStream {
    pub fn new(nonce: impl Into<Vec<u8>>) -> Self {
        Self { nonce: nonce.into(), held: Vec::new() }
    }

    pub fn push(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(MarkedPiece<'_>)) {
        while !bytes.is_empty() {
            if self.held.is_empty() {
                let start = bytes.iter().position(|byte| *byte == 0x1b).unwrap_or(bytes.len());
                if start > 0 {
                    sink(MarkedPiece::Bytes(&bytes[..start]));
                }
                self.held.extend(bytes.get(start));
                bytes = bytes.get(start + 1..).unwrap_or_default();
                continue;
            }
            self.hold(bytes[0], sink);
            bytes = &bytes[1..];
        }
    }

    /// Ends the stream. Held bytes that never became a complete mark are passed on as output.
    pub fn finish(&mut self, sink: &mut impl FnMut(MarkedPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            sink(MarkedPiece::Bytes(&held));
        }
    }

    fn hold(&mut self, byte: u8, sink: &mut impl FnMut(MarkedPiece<'_>)) {
        self.held.push(byte);
        match held_state(&self.held) {
            HeldState::Open => {}
            HeldState::Complete(end) => {
                let held = std::mem::take(&mut self.held);
                match ShellMark::parse(&held[2..held.len() - end], &self.nonce) {
                    Some(mark) => sink(MarkedPiece::Mark(mark)),
                    None => sink(MarkedPiece::Bytes(&held)),
                }
            }
            HeldState::Broken => {
                let mut held = std::mem::take(&mut self.held);
                // An ESC ends a sequence and may begin the next sequence. The ESC is the last byte or the byte before
                // the last.
                let next = held[1..].iter().position(|byte| *byte == 0x1b).map_or(held.len(), |at| at + 1);
                let again = held.split_off(next);
                sink(MarkedPiece::Bytes(&held));
                self.push(&again, sink);
            }
        }
    }
}

fn held_state(held: &[u8]) -> HeldState {
    let prefix = held.len().min(INTRODUCER.len());
    if held[..prefix] != INTRODUCER[..prefix] {
        return HeldState::Broken;
    }
    let Some(content @ [.., last]) = held.get(INTRODUCER.len()..) else { return HeldState::Open };
    let after_escape = content.len() > 1 && content[content.len() - 2] == 0x1b;
    match last {
        b'\\' if after_escape => HeldState::Complete(2),
        _ if after_escape => HeldState::Broken,
        0x07 => HeldState::Complete(1),
        0x1b if held.len() <= MAX_MARK_BYTES => HeldState::Open,
        0x00..=0x1f => HeldState::Broken,
        _ if held.len() > MAX_MARK_BYTES => HeldState::Broken,
        _ => HeldState::Open,
    }
}
