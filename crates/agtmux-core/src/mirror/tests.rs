mod cleaning;
mod properties;
mod shells;

use super::{ShellEvent, ShellTracker, TrackedPiece};

const NONCE: &str = "N0";

/// The events of a stream, and the output of each command by the number of the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tracked {
    events: Vec<ShellEvent>,
    outputs: Vec<Vec<u8>>,
}

impl Tracked {
    fn take(&mut self, piece: TrackedPiece<'_>) {
        match piece {
            TrackedPiece::Output(bytes) => self.outputs.last_mut().expect("a command runs").extend_from_slice(bytes),
            TrackedPiece::Event(event) => {
                if matches!(event, ShellEvent::Started { .. }) {
                    self.outputs.push(Vec::new());
                }
                self.events.push(event);
            }
        }
    }
}

/// Tracks a stream that arrives in pieces. The pieces have these lengths; after the last length, the first one follows
/// again.
fn track(stream: &[u8], lengths: &[usize]) -> Tracked {
    let (mut tracker, mut tracked) = (ShellTracker::new(NONCE, 0), Tracked::default());
    let (mut rest, mut lengths) = (stream, lengths.iter().cycle());
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (now, later) = rest.split_at(length);
        tracker.push(now, &mut |piece| tracked.take(piece));
        rest = later;
    }
    tracker.finish(true, &mut |piece| tracked.take(piece));
    tracked
}

fn mark(content: &str) -> String {
    format!("\x1b]133;{content}\x07")
}

/// A shell prompt with this number.
fn prompt(seq: u64) -> String {
    format!("{}$ {}", mark(&format!("A;agt={NONCE};{seq};q='/home'")), mark(&format!("B;agt={NONCE};{seq};0")))
}

/// The bytes of one command at this prompt, with marks as bash writes them.
fn command(seq: u64, output: &str, code: i32) -> String {
    let start = mark(&format!("C;agt={NONCE};{seq}"));
    format!("{start}{output}{}", mark(&format!("D;{code};agt={NONCE};{seq};r=1;h=1;q='x'")))
}
