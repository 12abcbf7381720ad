//! `agtmux collect`: what a hub runs on this host by ssh. It passes on what the daemon here knows, and brings it what the
//! hub asks for.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use agtmux_api::VERSION;
use agtmux_api::client::{ApiClient, ClientError};
use agtmux_api::collect::{
    COLLECT_VERSION, EVIDENCE_PATH, HostLine, HostReply, HubLine, HubRequest, MAX_LINE_BYTES, ReplyOutcome,
};
use bytes::Bytes;
use clap::Args;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::connect::DaemonClient;
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;

/// Lines that wait to be written. The daemon tells no more until there is room.
const MAX_QUEUED_LINES: usize = 16;
/// Requests that are done side by side.
const MAX_CONCURRENT: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Speak on the standard streams, which is the only way there is
    #[arg(long, required = true)]
    stdio: bool,
}

pub(crate) async fn run(_args: CollectArgs) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let mut evidence = match daemon.client.lines(EVIDENCE_PATH).await {
        Err(ClientError::NotRunning(_)) => {
            daemon.autostart().await?;
            daemon.client.lines(EVIDENCE_PATH).await?
        }
        lines => lines?,
    };
    let (lines, waiting) = mpsc::channel(MAX_QUEUED_LINES);
    let pass_on = async {
        while let Some(line) = evidence.next().await? {
            if lines.send(line).await.is_err() {
                break;
            }
        }
        Ok::<_, ClientError>(())
    };
    // Whichever ends first ends all: the hub has gone, or the daemon has.
    tokio::select! {
        told = pass_on => told.map_err(CliError::from)?,
        asked = handle_requests(daemon.client.clone(), lines.clone()) => asked?,
        written = write_lines(waiting) => written.map_err(|error| CliError::io("tell the hub", error))?,
    }
    Ok(CliExit::Ok)
}

/// By a thread of its own: a hub that does not read holds up nobody but itself.
async fn write_lines(mut lines: mpsc::Receiver<Bytes>) -> io::Result<()> {
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        let mut out = io::stdout().lock();
        let mut write = || -> io::Result<()> {
            // A shell may have greeted without ending its line.
            out.write_all(b"\n")?;
            while let Some(line) = lines.blocking_recv() {
                out.write_all(&line)?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Ok(())
        };
        let _ = done.send(write());
    });
    written.await.unwrap_or(Ok(()))
}

/// Until the hub has nothing more to say.
async fn handle_requests(client: ApiClient, replies: mpsc::Sender<Bytes>) -> Result<(), CliError> {
    let mut asked = read_lines();
    let room = Arc::new(Semaphore::new(MAX_CONCURRENT));
    loop {
        let Some(line) = asked.recv().await else { return Ok(()) };
        match serde_json::from_slice(&line) {
            Ok(HubLine::Hello { collect, .. }) if collect == COLLECT_VERSION => {}
            Ok(HubLine::Hello { version, .. }) => return Err(version_mismatch(&version)),
            Ok(HubLine::Request { id, ask }) => {
                let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
                let (client, replies) = (client.clone(), replies.clone());
                tokio::spawn(async move {
                    let reply = HostLine::Reply(HostReply { id, outcome: run_request(&client, &ask).await });
                    if let Ok(bytes) = serde_json::to_vec(&reply) {
                        let _ = replies.send(bytes.into()).await;
                    }
                    drop(place);
                });
            }
            Err(error) => {
                let message = CliMessage::new("the hub said something that cannot be read").because(error.to_string());
                return Err(CliError::failed(message.hint("agtmux target doctor   (on the hub)")));
            }
        }
    }
}

/// By a thread of its own, which nobody waits for at the end.
fn read_lines() -> mpsc::Receiver<Vec<u8>> {
    let (lines, asked) = mpsc::channel(MAX_QUEUED_LINES);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match (&mut input).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line) {
                Ok(1..) if lines.blocking_send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    asked
}

async fn run_request(client: &ApiClient, ask: &HubRequest) -> ReplyOutcome {
    let (path, body) = ask.endpoint();
    let Ok(body) = body else { return ReplyOutcome::Lost("it could not be written".into()) };
    match client.post_action(path, body.into()).await {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(outcome) => ReplyOutcome::Done(outcome),
            Err(error) => ReplyOutcome::Lost(error.to_string()),
        },
        Err(ClientError::Refused(error)) => ReplyOutcome::Refused(error),
        Err(error) => ReplyOutcome::Lost(error.to_string()),
    }
}

fn version_mismatch(hub: &str) -> CliError {
    let message =
        CliMessage::new(format!("the hub's agtmux {hub} and this one, {VERSION}, do not understand each other"));
    CliError::new(CliExit::OtherVersion, message.hint("install the same version on both"))
}
