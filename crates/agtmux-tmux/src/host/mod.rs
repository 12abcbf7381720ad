//! A host with tmux and a POSIX shell but without agtmux. One shell stays open for all commands.
//!
//! agtmux leaves nothing on the host: no file, no process after the shell is closed, and no change in tmux except by
//! actions.

mod batch;
mod channel;
mod probe;
mod processes;
mod quote;
mod scan;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use batch::{ShellBatch, ShellOutput};
pub(crate) use quote::print_command;

pub use probe::{EXTRA_PATH_DIRS, HostFacts, find_agtmux_commands};
pub use quote::{command_line, quoted};
pub use scan::{HostScan, HostScanRequest, MAX_SOCKETS};

/// The command for the login shell. It is so short that every shell reads it the same way.
pub const REMOTE_COMMAND: &str = "exec sh";

/// The time for the network round trip. The caller waits this much longer than the timeout that applies on the host.
pub const ROUND_TRIP_ALLOWANCE: Duration = Duration::from_secs(2);
/// A long text extends the timeout of a call by at most this much.
pub const MAX_TEXT_ALLOWANCE: Duration = Duration::from_secs(3);

/// The maximum number of requests in the queue.
const MAX_QUEUED_REQUESTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    #[error("could not start ssh: {0}")]
    Spawn(String),
    #[error("the host did not answer within {within:?}")]
    Timeout {
        within: Duration,
        /// How many lines of the batch had finished before the timeout.
        answered: usize,
    },
    #[error("the connection ended: {0}")]
    Closed(String),
    #[error("the host sent more than {0} MiB")]
    OutputTooLarge(usize),
    #[error("{0}")]
    Unsupported(String),
}

/// One shell on another host. It is closed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct HostShell(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: mpsc::Sender<channel::ShellRequest>,
    ended: watch::Receiver<Option<ShellError>>,
    facts: HostFacts,
    /// How far the host's clock is ahead of ours, in milliseconds. This is a lower limit: the true value is the same or
    /// larger.
    clock_ahead: AtomicI64,
}

impl HostShell {
    /// Starts a program that leads to a shell, such as `ssh host 'exec sh'`, and probes the host.
    pub async fn open(command: Command, within: Duration) -> Result<Self, ShellError> {
        let (requests, receiver) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let (end, ended) = watch::channel(None);
        channel::start(command, receiver, end)?;
        let batch = probe::probe_batch();
        let began = SystemTime::now();
        let outputs = send_request(&requests, &ended, batch, within, within).await?;
        let (facts, clock) = probe::parse_facts(&outputs)?;
        let shell = Self(Arc::new(Inner { requests, ended, facts, clock_ahead: AtomicI64::new(0) }));
        shell.update_clock_offset(clock, began);
        Ok(shell)
    }

    pub fn facts(&self) -> &HostFacts {
        &self.0.facts
    }

    /// Waits until the shell has ended and returns the reason.
    pub async fn ended(&self) -> ShellError {
        let mut ended = self.0.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| ShellError::Closed("the shell was closed".into()))
    }

    pub fn has_ended(&self) -> bool {
        self.0.ended.borrow().is_some()
    }

    pub(crate) async fn run(&self, batch: ShellBatch, within: Duration) -> Result<Vec<ShellOutput>, ShellError> {
        self.run_with_silence_timeout(batch, within, within).await
    }

    /// Runs a single line.
    pub(crate) async fn run_line(&self, line: impl Into<Vec<u8>>, within: Duration) -> Result<ShellOutput, ShellError> {
        let mut batch = ShellBatch::default();
        batch.add(line);
        let output = self.run(batch, within).await?.pop();
        output.ok_or_else(|| ShellError::Unsupported("no answer".into()))
    }

    /// Runs a batch. Fails if the host prints nothing for `silence`, or if the batch takes longer than `within`.
    pub(crate) async fn run_with_silence_timeout(
        &self,
        batch: ShellBatch,
        silence: Duration,
        within: Duration,
    ) -> Result<Vec<ShellOutput>, ShellError> {
        send_request(&self.0.requests, &self.0.ended, batch, silence, within).await
    }

    /// Checks that the shell answers in time. No process is started on the host.
    pub async fn ping(&self, within: Duration) -> Result<(), ShellError> {
        self.run_line(":", within + ROUND_TRIP_ALLOWANCE).await.map(|_| ())
    }

    /// How far the host's clock is ahead of ours, in milliseconds. The error is at most about one second.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.0.clock_ahead.load(Ordering::Relaxed)
    }

    /// The time on the host, or slightly earlier.
    pub(crate) fn now(&self) -> SystemTime {
        let ahead = self.0.clock_ahead.load(Ordering::Relaxed);
        let span = Duration::from_millis(ahead.unsigned_abs());
        let now = SystemTime::now();
        let host_time = if ahead < 0 { now.checked_sub(span) } else { now.checked_add(span) };
        host_time.unwrap_or(now)
    }

    /// Updates the clock offset. The host's clock showed `seconds` at some moment between `asked_at` and now.
    pub(crate) fn update_clock_offset(&self, seconds: i64, asked_at: SystemTime) {
        let millis = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        };
        // The lower limit of the offset: the host read its clock before its answer arrived here.
        let least = seconds.saturating_mul(1000).saturating_sub(millis(SystemTime::now()));
        let most = seconds.saturating_mul(1000).saturating_add(999).saturating_sub(millis(asked_at));
        let known = self.0.clock_ahead.load(Ordering::Relaxed);
        // Keep the known offset while it is between both limits, because it is more precise than the new lower limit.
        if known < least || known > most {
            self.0.clock_ahead.store(least, Ordering::Relaxed);
        }
    }
}

async fn send_request(
    requests: &mpsc::Sender<channel::ShellRequest>,
    ended: &watch::Receiver<Option<ShellError>>,
    batch: ShellBatch,
    silence: Duration,
    within: Duration,
) -> Result<Vec<ShellOutput>, ShellError> {
    let why = || ended.borrow().clone().unwrap_or_else(|| ShellError::Closed("the shell was closed".into()));
    let (reply, answer) = oneshot::channel();
    let request = channel::ShellRequest { batch, silence_timeout: silence, timeout: within, reply };
    if requests.send(request).await.is_err() {
        return Err(why());
    }
    answer.await.unwrap_or_else(|_| Err(why()))
}
