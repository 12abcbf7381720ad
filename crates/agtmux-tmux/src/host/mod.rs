//! Runs commands on a host that has tmux and a POSIX shell but not agtmux. One shell stays open for all commands.
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

/// The command that ssh passes to the user's login shell. It is so simple that every login shell reads it the same way.
pub const REMOTE_COMMAND: &str = "exec sh";

/// How long the network round trip may take. A caller waits this much longer than the timeout that applies on the host.
pub const ROUND_TRIP_ALLOWANCE: Duration = Duration::from_secs(2);
/// A call that sends a long text gets more time, but at most this much more.
pub const MAX_TEXT_ALLOWANCE: Duration = Duration::from_secs(3);

/// The maximum number of requests that wait for the shell.
const MAX_QUEUED_REQUESTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    #[error("could not start ssh: {0}")]
    Spawn(String),
    #[error("the host did not answer within {within:?}")]
    Timeout {
        within: Duration,
        /// How many lines of the batch had ended before the timeout.
        answered: usize,
    },
    #[error("the connection ended: {0}")]
    Closed(String),
    #[error("the host sent more than {0} MiB")]
    OutputTooLarge(usize),
    #[error("{0}")]
    Unsupported(String),
}

/// A shell on another host. The shell is closed when the last clone of this value is dropped.
#[derive(Debug, Clone)]
pub struct HostShell(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: mpsc::Sender<channel::ShellRequest>,
    ended: watch::Receiver<Option<ShellError>>,
    facts: HostFacts,
    /// How many milliseconds the host's clock is ahead of the clock of this machine. The true value may be larger, but
    /// not smaller.
    clock_ahead: AtomicI64,
}

impl HostShell {
    /// Starts a program that opens a shell on a host, such as `ssh host 'exec sh'`. Then finds out what is installed
    /// there.
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

    /// Runs one line in the shell.
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

    /// How many milliseconds the host's clock is ahead of the clock of this machine, with an error of about one second
    /// at most.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.0.clock_ahead.load(Ordering::Relaxed)
    }

    /// The time by the host's clock. The result may be slightly too early, but not too late.
    pub(crate) fn now(&self) -> SystemTime {
        let ahead = self.0.clock_ahead.load(Ordering::Relaxed);
        let span = Duration::from_millis(ahead.unsigned_abs());
        let now = SystemTime::now();
        let host_time = if ahead < 0 { now.checked_sub(span) } else { now.checked_add(span) };
        host_time.unwrap_or(now)
    }

    /// Corrects the clock offset. At some moment between `asked_at` and now, the host's clock showed
    /// `seconds`.
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
