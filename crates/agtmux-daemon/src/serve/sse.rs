//! Server-sent event streams. All clients read from one shared buffer, each at its own pace. For a client that stops
//! reading, the daemon keeps only a position in the buffer. A client that is too far behind gets a reset.

use std::convert::Infallible;
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::extract::ErrorResponse;

/// How often a comment is sent to keep the connection alive. The first comment confirms that the stream is open.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The events that one client follows, and the client's position among these events.
pub(super) trait EventSource: Send + 'static {
    /// The events since the last call; empty if there are none.
    fn catch_up(&mut self) -> Bytes;

    /// The number of the last event that was sent or filtered out.
    fn position(&self) -> Option<u64>;
}

/// A comment with the current position. A client can resume from this position even if its filter has not passed an
/// event for a long time.
pub(super) fn comment(position: Option<u64>) -> Bytes {
    match position {
        Some(id) => Bytes::from(format!(":\nid: {id}\n\n")),
        None => Bytes::from_static(b":\n\n"),
    }
}

/// Streams the events of a source. The stream ends when the daemon stops, or when the sender of `latest` is dropped.
pub(super) fn stream(
    source: impl EventSource,
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
) -> Response {
    respond("text/event-stream", SseReader { source, latest, stopping, heartbeat: HEARTBEAT, started: false })
}

/// The chunks of a response that is sent over a long time.
pub(super) trait ChunkReader: Send + 'static {
    /// The next bytes to send, or `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

pub(super) fn respond(content_type: &'static str, reader: impl ChunkReader) -> Response {
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    let headers = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(chunks)).into_response()
}

/// The number of the last event that the client has. Browsers send it in a header when they reconnect. Without this
/// header, the number from the query (`requested`) applies.
pub(super) fn last_event(headers: &HeaderMap, requested: Option<u64>) -> Result<Option<u64>, ErrorResponse> {
    let Some(header) = headers.get("last-event-id") else { return Ok(requested) };
    let id = header.to_str().ok().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| {
        let error = ApiError::new(ErrorCode::BadRequest, "Last-Event-ID is not a number");
        error.with_hint("omit Last-Event-ID to start a new stream").into()
    })
}

struct SseReader<S> {
    source: S,
    /// The value changes with every event.
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    heartbeat: Duration,
    started: bool,
}

impl<S: EventSource> ChunkReader for SseReader<S> {
    async fn next(&mut self) -> Option<Bytes> {
        // The deadline is set once, so that events that are filtered out do not delay the heartbeat.
        let silent_until = Instant::now() + self.heartbeat;
        loop {
            self.latest.mark_unchanged();
            let chunk = self.source.catch_up();
            let first = !std::mem::replace(&mut self.started, true);
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if first {
                return Some(comment(self.source.position()));
            }
            tokio::select! {
                changed = self.latest.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = sleep_until(silent_until) => return Some(comment(self.source.position())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source with many events, all of them filtered out.
    struct FilteredSource(u64);

    impl EventSource for FilteredSource {
        fn catch_up(&mut self) -> Bytes {
            self.0 += 1;
            Bytes::new()
        }

        fn position(&self) -> Option<u64> {
            Some(self.0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_with_the_position_is_sent_when_all_events_are_filtered_out() {
        let (events, latest) = watch::channel(0);
        let (_stop, stopping) = watch::channel(false);
        let heartbeat = Duration::from_millis(100);
        let mut reader = SseReader { source: FilteredSource(0), latest, stopping, heartbeat, started: true };
        tokio::spawn(async move {
            while events.send(0).is_ok() {
                tokio::time::sleep(heartbeat / 10).await;
            }
        });
        let chunk = tokio::time::timeout(Duration::from_secs(20), reader.next()).await.expect("a heartbeat in time");
        assert_eq!(chunk, Some(comment(reader.source.position())));
    }
}
