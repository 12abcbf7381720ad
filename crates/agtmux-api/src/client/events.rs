use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use super::ClientError;
use crate::wire::WatchEvent;

/// A stream of server-sent events. Comments, which the daemon sends as heartbeats, are skipped.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    buffer: BytesMut,
}

impl EventStream {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// Returns the next event, or `None` when the daemon ends the stream.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, ClientError> {
        self.next_as().await
    }

    /// Like [`next`](Self::next), for other event types.
    pub async fn next_as<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line = self.buffer.split_to(end + 1);
                // The daemon sends the data of each event on one line.
                if let Some(data) = line.strip_prefix(b"data:") {
                    let event =
                        serde_json::from_slice(data).map_err(|e| ClientError::Broken(format!("invalid event: {e}")))?;
                    return Ok(Some(event));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(ClientError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
