//! Event streams that continue across restarts of the daemon.

#[cfg(test)]
mod tests;

use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ListQuery, WatchEvent, WatchEventKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::error::broken;
use crate::{ClientError, DaemonClient, EventStream, ServerEvent};

/// How long to wait until a daemon that is being restarted listens again. If a daemon crashed and does not listen again
/// within this time, the client starts one.
const RESTART_GRACE: Duration = Duration::from_secs(1);
/// The pause before each reconnect. Without this pause, the client would reconnect in a tight loop to a daemon that
/// accepts connections and drops them.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How often to check whether a daemon that was stopped is running again.
const STOPPED_POLL: Duration = Duration::from_millis(500);
/// How many signals may wait until the caller reads them. When this many wait, the client stops reading the stream, and
/// the daemon treats the client as a slow client.
const CHANNEL_CAPACITY: usize = 256;

/// An item that a [`Follower`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamSignal<T> {
    Event(T),
    /// The daemon has sent all events up to now. This signal follows each snapshot.
    CaughtUp,
    /// The stream broke; the text says why. More events follow when the client has reconnected.
    Disconnected(String),
}

/// A stream that reconnects by itself and resumes after the last event. Dropping the follower closes the stream.
#[derive(Debug)]
pub struct Follower<T> {
    signals: mpsc::Receiver<Result<StreamSignal<T>, ClientError>>,
    reader: AbortHandle,
}

/// Whether a stream starts a daemon if none is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DaemonStart {
    /// Not after the daemon was stopped.
    IfNeeded,
    Never,
}

fn decode_watch_event(event: &ServerEvent, data: &[u8]) -> serde_json::Result<Option<WatchEvent>> {
    let known = WatchEventKind::ALL.iter().any(|kind| kind.as_str() == event.kind);
    if known { serde_json::from_slice(data).map(Some) } else { Ok(None) }
}

/// Decodes the data of an event. Returns `None` if this version does not know the kind of the event.
type Decoder<T> = fn(&ServerEvent, &[u8]) -> serde_json::Result<Option<T>>;

impl DaemonClient {
    /// Follows `/v1/events`. The stream starts after the event `query.last_event_id`, or with a snapshot if that field
    /// is not set.
    pub fn watch(&self, mut query: ListQuery) -> Follower<WatchEvent> {
        let after = query.last_event_id.take();
        self.follow_with("/v1/events", query, after, DaemonStart::IfNeeded, decode_watch_event)
    }

    /// Like [`watch`](Self::watch), but never starts a daemon. Without a daemon, the stream begins with
    /// [`StreamSignal::Disconnected`] and waits for one.
    pub fn watch_running(&self, query: ListQuery) -> Follower<WatchEvent> {
        self.follow_with("/v1/events", query, None, DaemonStart::Never, decode_watch_event)
    }

    /// Follows the event stream at `path`. With `after`, the stream starts after the event with this id.
    pub fn follow<T: DeserializeOwned + Send + 'static>(
        &self,
        path: &'static str,
        query: impl Serialize + Send + Sync + 'static,
        after: Option<u64>,
    ) -> Follower<T> {
        self.follow_with(path, query, after, DaemonStart::IfNeeded, |_, data| serde_json::from_slice(data).map(Some))
    }

    /// Reads the stream in a separate tokio task, so that a cancelled call of `next` never drops a half-read event.
    fn follow_with<T: Send + 'static>(
        &self,
        path: &'static str,
        query: impl Serialize + Send + Sync + 'static,
        after: Option<u64>,
        start: DaemonStart,
        decode: Decoder<T>,
    ) -> Follower<T> {
        let (sender, signals) = mpsc::channel(CHANNEL_CAPACITY);
        let daemon = self.clone();
        let reader = tokio::spawn(async move {
            if let Err(error) = daemon.forward(path, &query, after, start, decode, &sender).await {
                // The receiver may be gone.
                let _ = sender.send(Err(error)).await;
            }
        });
        Follower { signals, reader: reader.abort_handle() }
    }

    async fn forward<T>(
        &self,
        path: &str,
        query: &impl Serialize,
        mut position: Option<u64>,
        start: DaemonStart,
        decode: Decoder<T>,
        signals: &mpsc::Sender<Result<StreamSignal<T>, ClientError>>,
    ) -> Result<(), ClientError> {
        let mut stream = match start {
            DaemonStart::IfNeeded => self.open(path, query, position).await?,
            DaemonStart::Never => {
                if let Err(ClientError::NotRunning(_)) = self.api.connect().await
                    && signals.send(Ok(StreamSignal::Disconnected("no daemon is running".into()))).await.is_err()
                {
                    return Ok(());
                }
                self.reopen(path, query, position, true).await?
            }
        };
        loop {
            // A daemon that is stopped ends its streams. A daemon that crashes breaks them.
            let mut was_stopped = false;
            let signal = match stream.next().await {
                Ok(Some(event)) => {
                    position = event.id.or(position);
                    match &event.data {
                        None => Ok(StreamSignal::CaughtUp),
                        Some(data) => match decode(&event, data) {
                            Ok(None) => continue,
                            Ok(Some(event)) => Ok(StreamSignal::Event(event)),
                            Err(error) => Err(format!("invalid event: {error}")),
                        },
                    }
                }
                Ok(None) => {
                    was_stopped = true;
                    Err("the daemon closed the stream".to_owned())
                }
                Err(error) => Err(error.to_string()),
            };
            let disconnected = signal.is_err();
            let signal = signal.unwrap_or_else(StreamSignal::Disconnected);
            if signals.send(Ok(signal)).await.is_err() {
                return Ok(());
            }
            if disconnected {
                self.wait_for_restart().await;
                stream = self.reopen(path, query, position, was_stopped || start == DaemonStart::Never).await?;
            }
        }
    }

    /// Opens the stream again. If the daemon has no room for another client, tries again until the daemon has room.
    async fn reopen(
        &self,
        path: &str,
        query: &impl Serialize,
        after: Option<u64>,
        was_stopped: bool,
    ) -> Result<EventStream, ClientError> {
        loop {
            let opened = match was_stopped {
                true => self.open_running(path, query, after).await,
                false => self.open(path, query, after).await,
            };
            match opened {
                Err(error) if error.code() == Some(ErrorCode::Busy) => sleep(STOPPED_POLL).await,
                opened => return opened,
            }
        }
    }

    async fn open(&self, path: &str, query: &impl Serialize, after: Option<u64>) -> Result<EventStream, ClientError> {
        let open = || self.api.events(path, query, after);
        match self.retry_started(open).await {
            // The daemon is starting or exiting: try once more.
            Err(ClientError::Broken(_)) => {
                self.wait_for_restart().await;
                self.retry_started(open).await
            }
            answer => answer,
        }
    }

    /// Waits until a daemon is running, then opens the stream. Does not start a daemon, because the user has stopped
    /// it.
    async fn open_running(
        &self,
        path: &str,
        query: &impl Serialize,
        after: Option<u64>,
    ) -> Result<EventStream, ClientError> {
        loop {
            match self.api.events(path, query, after).await {
                Err(ClientError::NotRunning(_) | ClientError::Broken(_)) => sleep(STOPPED_POLL).await,
                answer => return answer,
            }
        }
    }

    async fn wait_for_restart(&self) {
        sleep(RETRY_PAUSE).await;
        self.wait_until_listening(Instant::now() + RESTART_GRACE).await;
    }
}

impl<T> Follower<T> {
    /// Returns the next signal. After an error, the stream has ended. Cancelling this call loses no signal.
    pub async fn next(&mut self) -> Result<StreamSignal<T>, ClientError> {
        self.signals.recv().await.unwrap_or_else(|| Err(broken("the stream has ended")))
    }
}

impl<T> Drop for Follower<T> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
