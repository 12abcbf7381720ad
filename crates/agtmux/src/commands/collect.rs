//! `agtmux collect`: forwards evidence from this host's daemon to a hub, and requests from the hub to the daemon. The
//! hub runs this command over ssh.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use agtmux_api::VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::host_protocol::{
    EVIDENCE_PATH, HostLine, HostReply, HubLine, HubRequest, MAX_LINE_BYTES, NumberedRequest, PROTOCOL_VERSIONS,
    ReplyOutcome, VersionGap,
};
use agtmux_client::{ApiClient, ClientError, DaemonClient};
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::error::{CliError, CliExit, CliResult};

/// The capacity of each of the two queues: lines from the hub, and lines for the hub. While the queue of lines for the
/// hub is full, `collect` reads no more evidence from the daemon.
const MAX_QUEUED_LINES: usize = 16;
/// The maximum number of the hub's requests that run at the same time.
const MAX_CONCURRENT: usize = 16;

pub(crate) async fn run() -> CliResult {
    let mut requests = read_lines();
    // The hub sends its hello at once.
    let Some(hello) = requests.recv().await else { return Ok(()) };
    check_hello(&hello)?;
    let daemon = DaemonClient::from_env()?;
    let mut evidence = daemon.lines(EVIDENCE_PATH).await?;
    let (lines, waiting) = mpsc::channel(MAX_QUEUED_LINES);
    let forward_evidence = async {
        while let Some(line) = evidence.next().await? {
            if lines.send(line).await.is_err() {
                break;
            }
        }
        Ok::<_, ClientError>(())
    };
    // The command ends when the hub or the daemon closes its side.
    tokio::select! {
        forwarded = forward_evidence => forwarded.map_err(CliError::from)?,
        handled = handle_requests(requests, daemon.api.clone(), lines.clone()) => handled?,
        written = write_lines(waiting) => {
            written.map_err(|error| CliError::io("write to the daemon that watches this host", error))?;
        }
    }
    Ok(())
}

/// Writes the lines to stdout on a separate thread. A hub that stops reading then cannot block the handling of its
/// requests.
async fn write_lines(mut lines: mpsc::Receiver<Bytes>) -> io::Result<()> {
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        let mut out = io::stdout().lock();
        let mut write = || -> io::Result<()> {
            // Start on a new line: the login shell may have printed text without a newline.
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

/// Runs the hub's requests until the hub closes stdin.
async fn handle_requests(
    mut requests: mpsc::Receiver<Vec<u8>>,
    client: ApiClient,
    replies: mpsc::Sender<Bytes>,
) -> CliResult {
    let room = Arc::new(Semaphore::new(MAX_CONCURRENT));
    loop {
        let Some(line) = requests.recv().await else { return Ok(()) };
        match serde_json::from_slice(&line) {
            Ok(HubLine::Hello { .. }) => return Err(unexpected("the message is a second hello")),
            Ok(HubLine::Request(NumberedRequest { id, action })) => {
                let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
                let (client, replies) = (client.clone(), replies.clone());
                tokio::spawn(async move {
                    send_reply(&replies, id, run_request(&client, &action).await).await;
                    drop(permit);
                });
            }
            Err(error) => {
                let Ok(UnsupportedRequest { id }) = serde_json::from_slice(&line) else {
                    return Err(unexpected(error));
                };
                let message = format!("agtmux {VERSION} does not support this request: {error}");
                let refused = ReplyOutcome::Refused(ApiError::new(ErrorCode::BadRequest, message));
                send_reply(&replies, id, refused).await;
            }
        }
    }
}

fn check_hello(line: &[u8]) -> CliResult {
    match serde_json::from_slice(line).map_err(unexpected)? {
        HubLine::Hello { protocol, version } => match PROTOCOL_VERSIONS.negotiate(protocol) {
            Ok(_) => Ok(()),
            Err(gap) => Err(version_mismatch(gap, &version)),
        },
        HubLine::Request(_) => Err(unexpected("the message is a request, but the first message must be a hello")),
    }
}

fn unexpected(why: impl ToString) -> CliError {
    CliError::failed("cannot read a message from the daemon that watches this host")
        .because(why.to_string())
        .hint("agtmux target doctor NAME   (on the machine that watches this host)")
}

/// The id of a request that this version cannot parse, because the hub is newer. `collect` refuses the request, because
/// an unknown field may be a guard.
#[derive(Deserialize)]
struct UnsupportedRequest {
    id: u64,
}

async fn send_reply(replies: &mpsc::Sender<Bytes>, id: u64, outcome: ReplyOutcome) {
    if let Ok(bytes) = serde_json::to_vec(&HostLine::Reply(HostReply { id, outcome })) {
        let _ = replies.send(bytes.into()).await;
    }
}

/// Reads the hub's lines from stdin on a separate thread. The process exits without waiting for this thread.
fn read_lines() -> mpsc::Receiver<Vec<u8>> {
    let (lines, requests) = mpsc::channel(MAX_QUEUED_LINES);
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
    requests
}

async fn run_request(client: &ApiClient, action: &HubRequest) -> ReplyOutcome {
    let Ok(body) = action.body() else { return ReplyOutcome::Lost("the request could not be encoded".into()) };
    match client.post_action(&action.path(), body.to_string().into()).await {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(outcome) => ReplyOutcome::Done(outcome),
            Err(error) => ReplyOutcome::Lost(error.to_string()),
        },
        Err(ClientError::Refused(error)) => ReplyOutcome::Refused(error),
        Err(error) => ReplyOutcome::Lost(error.to_string()),
    }
}

fn version_mismatch(gap: VersionGap, hub: &str) -> CliError {
    let (older, newest) = match gap {
        VersionGap::PeerTooOld => ("the watching host", VERSION),
        VersionGap::PeerTooNew => ("the watched host", hub),
    };
    let message = format!(
        "the watching host has agtmux {hub}, the watched host has agtmux {VERSION}: agtmux on {older} is too old"
    );
    let hint = format!("install agtmux {newest} on {older}, then run on that host: agtmux daemon restart");
    CliError::new(CliExit::OtherVersion, message).hint(hint)
}
