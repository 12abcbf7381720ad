//! Reads lines from an untrusted stream.

use agtmux_api::host_protocol::MAX_LINE_BYTES;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Bytes per read.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct LineReader<R> {
    from: R,
    buffer: BytesMut,
    /// There is no newline before this offset.
    searched: usize,
    /// When bytes last arrived.
    last_read_at: Instant,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, buffer: BytesMut::new(), searched: 0, last_read_at: Instant::now() }
    }

    pub(super) fn last_read_at(&self) -> Instant {
        self.last_read_at
    }

    /// When the last bytes of an unfinished line arrived.
    pub(super) fn partial_line_at(&self) -> Option<Instant> {
        (!self.buffer.is_empty()).then_some(self.last_read_at)
    }

    /// The next line without its newline; `None` at the end of the stream. Cancel-safe: nothing is lost if the future
    /// is dropped.
    pub(super) async fn next_line(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = found.map(|at| at + self.searched) {
                self.searched = 0;
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(format!("a line is longer than {} MiB", MAX_LINE_BYTES >> 20));
            }
            self.buffer.reserve(CHUNK);
            match self.from.read_buf(&mut self.buffer).await {
                // An unfinished last line is ignored.
                Ok(0) => return Ok(None),
                Ok(_) => self.last_read_at = Instant::now(),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn complete_lines_are_returned_and_a_partial_one_is_ignored() {
        let mut lines = LineReader::new(&b"one\n\ntwo\nhalf"[..]);
        assert_eq!(lines.next_line().await, Ok(Some(Bytes::from_static(b"one"))));
        assert_eq!(lines.next_line().await, Ok(Some(Bytes::new())));
        assert_eq!(lines.next_line().await, Ok(Some(Bytes::from_static(b"two"))));
        assert_eq!(lines.next_line().await, Ok(None));
    }

    #[tokio::test]
    async fn a_partial_line_updates_the_read_time() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = LineReader::new(reader);
        let began = lines.last_read_at();
        writer.write_all(b"half").await.expect("written");
        let waited = tokio::time::timeout(std::time::Duration::from_millis(10), lines.next_line()).await;
        assert!(waited.is_err() && lines.last_read_at() > began);
    }

    #[tokio::test]
    async fn an_endless_line_is_refused() {
        let mut lines = LineReader::new(tokio::io::repeat(b'x'));
        assert!(lines.next_line().await.is_err());
        assert!(lines.buffer.capacity() < 3 * MAX_LINE_BYTES, "memory is limited");
    }
}
