//! Streams of server-sent events. Each reader pulls from a shared record at its own pace: one that stalls costs nothing but
//! its place in it, and one that falls too far behind is told so.

use std::convert::Infallible;
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::extract::ErrorResponse;

/// A comment this often tells both ends that the other is still there. One at the start tells that the stream stands.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What one reader follows, and where it is.
pub(super) trait EventSource: Send + 'static {
    /// What has come since the last time; empty where nothing has.
    fn catch_up(&mut self) -> Bytes;

    /// The number of the last event that it has, or that was not for it.
    fn position(&self) -> Option<u64>;
}

/// Says nothing but where the reader is: whoever chose a few events only, or has got none yet, can go on from there.
fn comment(position: Option<u64>) -> Bytes {
    match position {
        Some(id) => Bytes::from(format!(":\nid: {id}\n\n")),
        None => Bytes::from_static(b":\n\n"),
    }
}

/// Ends with the daemon, or when nobody writes any more.
pub(super) fn stream(
    place: impl EventSource,
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
) -> Response {
    let reader = SseReader { source: place, latest, stopping, heartbeat: HEARTBEAT, begun: false };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The last event that a reader has: by its header, as browsers send it when they come back, else by its query.
pub(super) fn last_event(headers: &HeaderMap, asked: Option<u64>) -> Result<Option<u64>, ErrorResponse> {
    let Some(header) = headers.get("last-event-id") else { return Ok(asked) };
    let id = header.to_str().ok().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| {
        let error = ApiError::new(ErrorCode::BadRequest, "Last-Event-ID is not a number");
        error.with_hint("leave it out to begin anew").into()
    })
}

struct SseReader<P> {
    source: P,
    /// Turns with every event.
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    heartbeat: Duration,
    begun: bool,
}

impl<P: EventSource> SseReader<P> {
    /// The next bytes to send, or `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        // Also where much happens that is not for this reader.
        let silent_until = Instant::now() + self.heartbeat;
        loop {
            self.latest.mark_unchanged();
            let chunk = self.source.catch_up();
            let first = !std::mem::replace(&mut self.begun, true);
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

    /// Much happens, and nothing of it is for this reader.
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

    #[tokio::test]
    async fn whoever_hears_nothing_of_what_happens_is_told_where_it_is() {
        let (happens, latest) = watch::channel(0);
        let (_goes_on, stopping) = watch::channel(false);
        let heartbeat = Duration::from_millis(100);
        let mut reader = SseReader { source: FilteredSource(0), latest, stopping, heartbeat, begun: true };
        tokio::spawn(async move {
            while happens.send(0).is_ok() {
                tokio::time::sleep(heartbeat / 10).await;
            }
        });
        let heard = tokio::time::timeout(Duration::from_secs(20), reader.next()).await.expect("a heartbeat in time");
        assert_eq!(heard, Some(comment(reader.source.position())));
    }
}
