//! The daemon's events, also across its restarts.

use std::time::Duration;

use agtmux_api::client::{ClientError, EventStream};
use agtmux_api::wire::{ListQuery, WatchEvent};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::connect::DaemonClient;
use crate::error::CliError;

/// A daemon that is being restarted by somebody is back by then; afterwards it is started from here.
const RESTART_GRACE: Duration = Duration::from_secs(1);
/// Between two attempts with a daemon that accepts the connection and then drops it.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Enough for a burst; beyond it the daemon is held back, which knows what to do with a slow client.
const CHANNEL_CAPACITY: usize = 256;

#[derive(Debug)]
pub(crate) enum WatchSignal {
    Event(Box<WatchEvent>),
    /// The daemon went away, for this reason; events go on once it is back.
    Disconnected(String),
    /// No way to go on.
    Failed(CliError),
}

/// Reads on a task of its own, so that a reader who is busy elsewhere interrupts nothing half done.
pub(crate) fn follow(daemon: DaemonClient, query: ListQuery) -> mpsc::Receiver<WatchSignal> {
    let (signals, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    tokio::spawn(async move {
        if let Err(error) = forward(&daemon, query, &signals).await {
            // Whoever no longer listens does not care.
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
            Ok(None) => "it ended the stream".to_owned(),
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
        // Between listening and serving, or on its way out: it gets one more chance.
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
