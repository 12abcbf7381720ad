use bytes::Bytes;

use crate::{ClientError, LineStream};

/// A stream of server-sent events.
#[derive(Debug)]
pub struct EventStream(pub(crate) LineStream);

/// One server-sent event. The daemon also sends events that have an id but no data. Such an event only marks a position
/// in the stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The position in the stream after this event. A client that reconnects can resume the stream there.
    pub id: Option<u64>,
    pub kind: String,
    pub data: Option<Bytes>,
}

impl EventStream {
    /// Returns the next event, or `None` when the daemon ends the stream.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        let mut event = ServerEvent::default();
        while let Some(line) = self.0.next().await? {
            if !event.read(&line) && (event.id.is_some() || event.data.is_some()) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}

impl ServerEvent {
    /// Adds one line to this event. Returns false for the empty line that ends the event.
    fn read(&mut self, line: &Bytes) -> bool {
        // The daemon sends the data of each event on one line. Other lines are comments.
        if let Some(data) = line.strip_prefix(b"data: ") {
            self.data = Some(line.slice_ref(data));
        } else if let Some(id) = line.strip_prefix(b"id: ") {
            self.id = str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        } else if let Some(kind) = line.strip_prefix(b"event: ") {
            self.kind = String::from_utf8_lossy(kind).into_owned();
        }
        !line.is_empty()
    }
}
