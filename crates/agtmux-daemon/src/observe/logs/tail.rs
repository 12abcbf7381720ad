use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

/// The first read of an existing log starts this many bytes before its end.
const LOOKBACK_BYTES: u64 = 256 << 10;
/// The most bytes that one call reads from the file.
const READ_BYTES: usize = 1 << 20;
/// A line that is longer than this is skipped.
const MAX_LINE_BYTES: usize = 1 << 20;

/// How far a log file has been read.
#[derive(Debug)]
pub(super) struct LogTail {
    start: TailStart,
    offset: u64,
    /// The beginning of a line whose end has not been written yet.
    partial: Vec<u8>,
    /// Whether the rest of the current line must be skipped, because the line is too long.
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

    /// Returns the lines that were completed since the last read, and whether the file has more to read.
    pub(super) fn read(&mut self, mut file: File, length: u64) -> (Vec<Vec<u8>>, bool) {
        self.begin(length);
        if length < self.offset {
            // The file was truncated.
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
        // The line at this offset is most likely incomplete, so skip to the next newline. Start one byte earlier: if
        // that byte is a newline, the line is complete and is kept.
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
            Self(tempfile::NamedTempFile::new().expect("a temporary file"))
        }

        fn write(&mut self, text: &str) {
            self.0.write_all(text.as_bytes()).expect("writable");
        }

        fn read(&self, tail: &mut LogTail) -> Vec<String> {
            let file = self.0.reopen().expect("the file exists");
            let length = file.metadata().expect("the file exists").len();
            let (lines, _) = tail.read(file, length);
            lines.into_iter().map(|line| String::from_utf8(line).expect("text")).collect()
        }
    }

    #[test]
    fn a_line_is_returned_when_it_is_complete() {
        let (mut log, mut tail) = (Log::new(), LogTail::near_the_end());
        log.write("one\ntw");
        assert_eq!(log.read(&mut tail), ["one"]);
        assert_eq!(log.read(&mut tail), Vec::<String>::new());
        log.write("o\nthree\n");
        assert_eq!(log.read(&mut tail), ["two", "three"]);
    }

    #[test]
    fn existing_lines_are_skipped_or_read_from_near_the_end() {
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
    fn a_truncated_log_is_read_from_its_start() {
        let (mut log, mut tail) = (Log::new(), LogTail::near_the_end());
        log.write("one\ntwo\nthree\n");
        assert_eq!(log.read(&mut tail).len(), 3);
        log.0.as_file().set_len(0).expect("the file is writable");
        log.0.as_file_mut().rewind().expect("the file is seekable");
        log.write("again\n");
        assert_eq!(log.read(&mut tail), ["again"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
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
