use agtmux_api::host_protocol::MAX_LINE_BYTES;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::ClientError;
use crate::error::broken;

/// A stream of lines.
#[derive(Debug)]
pub struct LineStream {
    body: Incoming,
    buffer: BytesMut,
}

impl LineStream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// Returns the next line without its line feed, or `None` when the daemon ends the stream.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n').map(|at| at + searched) {
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line.freeze()));
            }
            searched = self.buffer.len();
            if searched > MAX_LINE_BYTES {
                return Err(broken(format!("a line is longer than {} MiB", MAX_LINE_BYTES >> 20)));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
