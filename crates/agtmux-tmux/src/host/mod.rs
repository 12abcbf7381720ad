//! A host that has tmux and a POSIX shell, and nothing of ours: it is asked through one shell that stays open.
//!
//! Nothing is left there: no file, no process once the shell is closed, and in its tmux nothing but what an action does.

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

pub use probe::{EXTRA_PATH_DIRS, HostFacts};
pub use quote::{command_line, quoted};
pub use scan::{HostScan, HostScanRequest, MAX_SOCKETS};

/// What the login shell of the host is asked to run: short enough for each of them to take it the same way.
pub const REMOTE_COMMAND: &str = "exec sh";

/// The way there and back, on top of what is waited for there.
pub const ROUND_TRIP_ALLOWANCE: Duration = Duration::from_secs(2);
/// What a long text may add to that, at the most: it takes its time.
pub const MAX_TEXT_ALLOWANCE: Duration = Duration::from_secs(3);

/// Those who wait for their turn.
const MAX_QUEUED_REQUESTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    #[error("ssh could not be started: {0}")]
    Spawn(String),
    #[error("the host did not answer within {within:?}")]
    Timeout {
        within: Duration,
        /// How many lines of the question were answered by then.
        answered: usize,
    },
    #[error("the connection ended: {0}")]
    Closed(String),
    #[error("the host sent more than {0} MiB")]
    OutputTooLarge(usize),
    #[error("{0}")]
    Unsupported(String),
}

/// One shell on another host. It is closed when the last of those who hold it lets go of it.
#[derive(Debug, Clone)]
pub struct HostShell(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: mpsc::Sender<channel::ShellRequest>,
    ended: watch::Receiver<Option<ShellError>>,
    facts: HostFacts,
    /// What its clock shows beyond ours, in milliseconds, and never more than it does.
    clock_ahead: AtomicI64,
}

impl HostShell {
    /// Starts the program that leads to a shell there, such as `ssh host 'exec sh'`, and gets to know the host.
    pub async fn open(command: Command, within: Duration) -> Result<Self, ShellError> {
        let (questions, asked) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let (end, ended) = watch::channel(None);
        channel::start(command, asked, end)?;
        let question = probe::probe_batch();
        let began = SystemTime::now();
        let answers = send_request(&questions, &ended, question, within, within).await?;
        let (facts, clock) = probe::parse_facts(&answers)?;
        let shell = Self(Arc::new(Inner { requests: questions, ended, facts, clock_ahead: AtomicI64::new(0) }));
        shell.update_clock_offset(clock, began);
        Ok(shell)
    }

    pub fn facts(&self) -> &HostFacts {
        &self.0.facts
    }

    /// Returns when the shell has ended, with the reason.
    pub async fn ended(&self) -> ShellError {
        let mut ended = self.0.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| ShellError::Closed("it was closed".into()))
    }

    pub fn has_ended(&self) -> bool {
        self.0.ended.borrow().is_some()
    }

    pub(crate) async fn run(&self, question: ShellBatch, within: Duration) -> Result<Vec<ShellOutput>, ShellError> {
        self.run_with_silence_timeout(question, within, within).await
    }

    /// For a question of many lines: each of them may take so long, and all of them that.
    pub(crate) async fn run_with_silence_timeout(
        &self,
        question: ShellBatch,
        silence: Duration,
        within: Duration,
    ) -> Result<Vec<ShellOutput>, ShellError> {
        send_request(&self.0.requests, &self.0.ended, question, silence, within).await
    }

    /// Returns when it has answered. It starts nothing there.
    pub async fn ping(&self, within: Duration) -> Result<(), ShellError> {
        let mut question = ShellBatch::default();
        question.add(":");
        self.run(question, within + ROUND_TRIP_ALLOWANCE).await.map(|_| ())
    }

    /// How far its clock is ahead of ours, in milliseconds, to a second.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.0.clock_ahead.load(Ordering::Relaxed)
    }

    /// The time there, or a moment before it.
    pub(crate) fn now(&self) -> SystemTime {
        let ahead = self.0.clock_ahead.load(Ordering::Relaxed);
        let span = Duration::from_millis(ahead.unsigned_abs());
        let now = SystemTime::now();
        let there = if ahead < 0 { now.checked_sub(span) } else { now.checked_add(span) };
        there.unwrap_or(now)
    }

    /// It showed these seconds at some time after that one of ours, and shows them to the end of the second.
    pub(crate) fn update_clock_offset(&self, seconds: i64, asked: SystemTime) {
        let millis = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        };
        // Not earlier than asked and not later than answered: the least that it can be ahead.
        let least = seconds.saturating_mul(1000).saturating_sub(millis(SystemTime::now()));
        let most = seconds.saturating_mul(1000).saturating_add(999).saturating_sub(millis(asked));
        let known = self.0.clock_ahead.load(Ordering::Relaxed);
        // What was known stays as long as it can be true: it is the nearest that was seen.
        if known < least || known > most {
            self.0.clock_ahead.store(least, Ordering::Relaxed);
        }
    }
}

async fn send_request(
    questions: &mpsc::Sender<channel::ShellRequest>,
    ended: &watch::Receiver<Option<ShellError>>,
    question: ShellBatch,
    silence: Duration,
    within: Duration,
) -> Result<Vec<ShellOutput>, ShellError> {
    let why = || ended.borrow().clone().unwrap_or_else(|| ShellError::Closed("it was closed".into()));
    let (reply, answer) = oneshot::channel();
    let asked = channel::ShellRequest { batch: question, silence_timeout: silence, timeout: within, reply };
    if questions.send(asked).await.is_err() {
        return Err(why());
    }
    answer.await.unwrap_or_else(|_| Err(why()))
}
