//! The daemon's event stream, continued across restarts of the daemon.

use std::time::Duration;

use agtmux_api::client::{ClientError, EventStream};
use agtmux_api::wire::{ListQuery, WatchEvent};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::connect::DaemonClient;
use crate::error::CliError;

/// How long to wait for a daemon that is being restarted. After that, this client starts it.
const RESTART_GRACE: Duration = Duration::from_secs(1);
/// Pause before reconnecting to a daemon that accepts connections and drops them.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Capacity of the channel. When it is full, the client stops reading and the daemon handles it as a slow client.
const CHANNEL_CAPACITY: usize = 256;

#[derive(Debug)]
pub(crate) enum WatchSignal {
    Event(Box<WatchEvent>),
    /// The daemon disconnected, with the reason. Events continue when it is back.
    Disconnected(String),
    /// The stream cannot continue.
    Failed(CliError),
}

/// Reads on a separate task, so that a cancelled `recv` never drops a half-read event.
pub(crate) fn follow(daemon: DaemonClient, query: ListQuery) -> mpsc::Receiver<WatchSignal> {
    let (signals, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    tokio::spawn(async move {
        if let Err(error) = forward(&daemon, query, &signals).await {
            // The receiver may be gone.
            let _ = signals.send(WatchSignal::Failed(error)).await;
        }
    });
    receiver
}

async fn forward(
    daemon: &DaemonClient,
    mut query: ListQuery,
    signals: &mpsc::Sender<WatchSignal>,
) -> Result<(), CliError> {
    let mut stream = open(daemon, &query).await?;
    loop {
        let reason = match stream.next().await {
            Ok(Some(event)) => {
                query.last_event_id = Some(event.seq);
                if signals.send(WatchSignal::Event(Box::new(event))).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            Ok(None) => "the daemon closed the stream".to_owned(),
            Err(error) => error.to_string(),
        };
        if signals.send(WatchSignal::Disconnected(reason)).await.is_err() {
            return Ok(());
        }
        sleep(RETRY_PAUSE).await;
        daemon.wait_until_listening(Instant::now() + RESTART_GRACE).await;
        stream = open(daemon, &query).await?;
    }
}

async fn open(daemon: &DaemonClient, query: &ListQuery) -> Result<EventStream, CliError> {
    match daemon.client.events(query).await {
        Err(ClientError::NotRunning(_)) => {
            daemon.autostart().await?;
            Ok(daemon.client.events(query).await?)
        }
        // The daemon is starting or exiting: try once more.
        Err(ClientError::Broken(_)) => {
            sleep(RETRY_PAUSE).await;
            if !daemon.wait_until_listening(Instant::now() + RESTART_GRACE).await {
                daemon.autostart().await?;
            }
            Ok(daemon.client.events(query).await?)
        }
        answer => Ok(answer?),
    }
}
