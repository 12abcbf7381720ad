use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

/// How far back a log is read that was there before us.
const LOOKBACK_BYTES: u64 = 256 << 10;
/// How much is read at a time.
const READ_BYTES: usize = 1 << 20;
/// A longer line says nothing that matters here, and is not kept.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Where in a log we are.
#[derive(Debug)]
pub(super) struct LogTail {
    start: TailStart,
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
    /// In the middle of a line that does not count.
    skipping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TailStart {
    NearTheEnd,
    AtTheEnd,
    Done,
}

impl LogTail {
    pub(super) fn near_the_end() -> Self {
        Self { start: TailStart::NearTheEnd, offset: 0, partial: Vec::new(), skipping: false }
    }

    pub(super) fn at_the_end() -> Self {
        Self { start: TailStart::AtTheEnd, ..Self::near_the_end() }
    }

    /// The lines that were completed since the last time. Says whether there is more.
    pub(super) fn read(&mut self, mut file: File, length: u64) -> (Vec<Vec<u8>>, bool) {
        self.begin(length);
        if length < self.offset {
            // It was written anew.
            *self = Self { start: TailStart::Done, ..Self::near_the_end() };
        }
        let mut text = Vec::new();
        let seeked = file.seek(SeekFrom::Start(self.offset));
        if seeked.and_then(|_| file.take(READ_BYTES as u64).read_to_end(&mut text)).is_err() {
            return (Vec::new(), false);
        }
        self.offset += text.len() as u64;
        (self.split(&text), self.offset < length)
    }

    fn begin(&mut self, length: u64) {
        let from = match std::mem::replace(&mut self.start, TailStart::Done) {
            TailStart::NearTheEnd => length.saturating_sub(LOOKBACK_BYTES),
            TailStart::AtTheEnd => length,
            TailStart::Done => return,
        };
        // What ends there is not read; most likely that is in the middle of a line. The byte before tells.
        (self.offset, self.skipping) = (from.saturating_sub(1), from > 0);
    }

    fn split(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            let whole = piece.strip_suffix(b"\n");
            if !self.skipping {
                self.partial.extend_from_slice(whole.unwrap_or(piece));
                self.skipping = self.partial.len() > MAX_LINE_BYTES;
            }
            if whole.is_some() {
                let line = std::mem::take(&mut self.partial);
                if !std::mem::take(&mut self.skipping) {
                    lines.push(line);
                }
            } else if self.skipping {
                self.partial = Vec::new();
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    struct Log(tempfile::NamedTempFile);

    impl Log {
        fn new() -> Self {
            Self(tempfile::NamedTempFile::new().expect("a writable place"))
        }

        fn write(&mut self, text: &str) {
            self.0.write_all(text.as_bytes()).expect("writable");
        }

        fn read(&self, tail: &mut LogTail) -> Vec<String> {
            let file = self.0.reopen().expect("is there");
            let length = file.metadata().expect("is there").len();
            let (lines, _) = tail.read(file, length);
            lines.into_iter().map(|line| String::from_utf8(line).expect("text")).collect()
        }
    }

    #[test]
    fn a_line_counts_when_it_is_whole() {
        let (mut log, mut tail) = (Log::new(), LogTail::near_the_end());
        log.write("one\ntw");
        assert_eq!(log.read(&mut tail), ["one"]);
        assert_eq!(log.read(&mut tail), Vec::<String>::new());
        log.write("o\nthree\n");
        assert_eq!(log.read(&mut tail), ["two", "three"]);
    }

    #[test]
    fn what_was_there_before_is_left_out_or_read_from_near_the_end() {
        let mut log = Log::new();
        log.write(&format!("{}\nlast\n", "x".repeat(LOOKBACK_BYTES as usize)));
        assert_eq!(log.read(&mut LogTail::near_the_end()), ["last"]);
        let mut tail = LogTail::at_the_end();
        assert_eq!(log.read(&mut tail), Vec::<String>::new());
        log.write("new\n");
        assert_eq!(log.read(&mut tail), ["new"]);
        log.write("half");
        let mut tail = LogTail::at_the_end();
        assert_eq!(log.read(&mut tail), Vec::<String>::new());
        log.write(" of it\nnext\n");
        assert_eq!(log.read(&mut tail), ["next"]);
    }

    #[test]
    fn a_log_that_was_written_anew_is_read_anew() {
        let (mut log, mut tail) = (Log::new(), LogTail::near_the_end());
        log.write("one\ntwo\nthree\n");
        assert_eq!(log.read(&mut tail).len(), 3);
        log.0.as_file().set_len(0).expect("ours");
        log.0.as_file_mut().rewind().expect("a file");
        log.write("again\n");
        assert_eq!(log.read(&mut tail), ["again"]);
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let (mut log, mut tail) = (Log::new(), LogTail::near_the_end());
        log.write("first\n");
        assert_eq!(log.read(&mut tail), ["first"]);
        for _ in 0..3 {
            log.write(&"y".repeat(READ_BYTES));
            assert_eq!(log.read(&mut tail), Vec::<String>::new());
            assert!(tail.partial.len() <= MAX_LINE_BYTES);
        }
        log.write("\nlast\n");
        assert_eq!(log.read(&mut tail), ["last"]);
    }
}
