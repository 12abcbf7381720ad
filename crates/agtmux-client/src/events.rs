use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::ClientError;
use crate::error::broken;

/// A stream of server-sent events.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    buffer: BytesMut,
}

/// One server-sent event. The daemon sends an id without data to mark a position.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The position after this event. A client may resume there.
    pub id: Option<u64>,
    pub kind: String,
    pub data: Option<Bytes>,
}

impl EventStream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// Returns the next event, or `None` when the daemon ends the stream.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        let mut event = ServerEvent::default();
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1).freeze();
                if !event.read(&line) && (event.id.is_some() || event.data.is_some()) {
                    return Ok(Some(event));
                }
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

impl ServerEvent {
    /// Reads one line. Returns false at the empty line that ends the event.
    fn read(&mut self, line: &Bytes) -> bool {
        let text = line.trim_ascii_end();
        // The daemon sends the data of each event on one line. Other lines are comments.
        if let Some(data) = text.strip_prefix(b"data: ") {
            self.data = Some(line.slice_ref(data));
        } else if let Some(id) = text.strip_prefix(b"id: ") {
            self.id = str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        } else if let Some(kind) = text.strip_prefix(b"event: ") {
            self.kind = String::from_utf8_lossy(kind).into_owned();
        }
        !text.is_empty()
    }
}
