//! Reads the agent's JSON from stdin, with a time limit.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How many bytes of the input are kept. The daemon would reject a longer request.
const MAX_KEPT: usize = 1 << 20;
/// How many bytes to read and drop after the first `MAX_KEPT` bytes. If agtmux closed the pipe instead, the agent's
/// write could fail.
const MAX_DROPPED: usize = 64 << 20;
/// The time limit for reading stdin. Some agents do not close the pipe after they have written their JSON.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for more input after a complete JSON document.
const AFTER_DOCUMENT: Duration = Duration::from_millis(5);

pub(super) fn read() -> Vec<u8> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Vec::new();
    }
    read_from(&stdin, TIMEOUT)
}

fn read_from(fd: &impl AsFd, patience: Duration) -> Vec<u8> {
    let deadline = Instant::now() + patience;
    let (mut kept, mut dropped, mut buffer) = (Vec::new(), 0, [0; 32 * 1024]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = if is_complete_json(&kept) { left.min(AFTER_DOCUMENT) } else { left };
        if !readable(fd, wait) {
            return kept;
        }
        match rustix::io::read(fd, &mut buffer) {
            Ok(count @ 1..) => {
                let room = count.min(MAX_KEPT - kept.len());
                kept.extend_from_slice(&buffer[..room]);
                dropped += count - room;
            }
            Err(Errno::INTR) => {}
            _ => return kept,
        }
        if dropped > MAX_DROPPED || left.is_zero() {
            return kept;
        }
    }
}

fn is_complete_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

fn readable(fd: &impl AsFd, wait: Duration) -> bool {
    let Ok(wait) = Timespec::try_from(wait) else { return false };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&wait)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn received(written: &[u8], close: bool) -> Vec<u8> {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        ours.write_all(written).expect("written");
        let open = (!close).then_some(ours);
        let kept = read_from(&theirs, Duration::from_millis(50));
        drop(open);
        kept
    }

    #[test]
    fn an_open_pipe_does_not_delay_a_complete_document() {
        assert_eq!(received(b"{\"a\":1}\n", false), b"{\"a\":1}\n");
        assert_eq!(received(b"{\"a\":", false), b"{\"a\":");
        assert_eq!(received(b"", false), b"");
        assert_eq!(received(b"{\"a\":1}", true), b"{\"a\":1}");
    }

    #[test]
    fn more_than_a_mebibyte_is_read_but_not_kept() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let writer = std::thread::spawn(move || ours.write_all(&vec![b'x'; 3 << 20]));
        assert_eq!(read_from(&theirs, Duration::from_secs(20)).len(), MAX_KEPT);
        assert!(writer.join().expect("no panic").is_ok(), "the pipe was not broken");
    }
}
