//! The process of the remote shell and the tokio task that runs its requests one by one.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};

use super::ShellError;
use super::batch::{self, ShellBatch, ShellOutput, ShellOutputReader};
use crate::ssh::ProcessGroup;

/// How many bytes of the end of stderr are stored. If the shell exits, these bytes are reported as the reason.
const MAX_STDERR_TAIL_BYTES: usize = 2048;
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a shell may take to exit after its stdin is closed.
const EXIT_GRACE: Duration = Duration::from_millis(500);

pub(super) struct ShellRequest {
    pub(super) batch: ShellBatch,
    /// The maximum time during which the host prints nothing. `timeout` is the maximum time for the whole batch.
    pub(super) silence_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) reply: oneshot::Sender<Result<Vec<ShellOutput>, ShellError>>,
}

struct ShellProcess {
    group: ProcessGroup,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// The last bytes that the shell has written to stderr.
    stderr_tail: Vec<u8>,
}

/// Starts the program and runs requests one after the other. Stops when all senders are dropped, when the program
/// exits, or when a request takes too long.
pub(super) fn start(
    mut command: Command,
    requests: mpsc::Receiver<ShellRequest>,
    ended: watch::Sender<Option<ShellError>>,
) -> Result<(), ShellError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    let mut child = command.spawn().map_err(|error| ShellError::Spawn(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ShellError::Spawn("the process has no pipes".into()));
    };
    let shell = ShellProcess { group: ProcessGroup::new(child), stdin, stdout, stderr, stderr_tail: Vec::new() };
    tokio::spawn(serve(shell, requests, ended));
    Ok(())
}

async fn serve(
    mut shell: ShellProcess,
    mut requests: mpsc::Receiver<ShellRequest>,
    ended: watch::Sender<Option<ShellError>>,
) {
    let mut preamble = batch::preamble().into_bytes();
    let error = loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(request) = request else { return shell.shut_down().await };
                // Run the batch to its end even if the caller is gone. Otherwise the output of this batch would be read
                // as the output of the next one.
                let answer = shell.run_batch(std::mem::take(&mut preamble), &request).await;
                let failed = answer.as_ref().err().cloned();
                // Publish the end first, so that `has_ended` is true when the caller gets the error.
                if let Some(error) = &failed {
                    ended.send_replace(Some(error.clone()));
                }
                let _ = request.reply.send(answer);
                if let Some(error) = failed {
                    break error;
                }
            }
            () = shell.drain_until_eof() => break shell.closed_error().await,
        }
    };
    ended.send_replace(Some(error));
    // Wait only briefly: the process may hang forever.
    shell.group.terminate(EXIT_GRACE).await;
}

impl ShellProcess {
    async fn run_batch(&mut self, preamble: Vec<u8>, request: &ShellRequest) -> Result<Vec<ShellOutput>, ShellError> {
        let marker = uuid::Uuid::new_v4().simple().to_string();
        let script = [preamble, request.batch.script(&marker)].concat();
        let (mut out, mut err) = (request.batch.reader(&marker), request.batch.reader(&marker));
        self.stderr_tail.clear();
        let (stdin, tail) = (&mut self.stdin, &mut self.stderr_tail);
        let (activity, activity_seen) = watch::channel(());
        let (stdout, stderr) = (&mut self.stdout, &mut self.stderr);
        let exchange = async {
            // Ignore a write error: it means that the shell is exiting, and `read_out` and `read_err` report that.
            let write = async {
                let _ = stdin.write_all(&script).await;
                let _ = stdin.flush().await;
                Ok(())
            };
            let read_out = async { read_until_complete(stdout, &mut out, |_| activity.send_replace(())).await };
            let on_bytes = |bytes: &[u8]| {
                activity.send_replace(());
                append_tail(tail, bytes);
            };
            let read_err = async { read_until_complete(stderr, &mut err, on_bytes).await };
            tokio::try_join!(write, read_out, read_err).map(|_| ())
        };
        let outcome = tokio::select! {
            // Poll the exchange first. Bytes that have arrived then reset the silence timeout, even if this tokio task
            // reads them late.
            biased;
            outcome = tokio::time::timeout(request.timeout, exchange) => outcome.map_err(|_| request.timeout),
            () = wait_for_silence(activity_seen, request.silence_timeout) => Err(request.silence_timeout),
        };
        match outcome {
            Ok(Ok(())) => Ok(batch::merge_outputs(out, err)),
            Ok(Err(ShellError::Closed(_))) => Err(self.closed_error().await),
            Ok(Err(error)) => Err(error),
            Err(within) => Err(ShellError::Timeout { within, answered: out.finished_lines() }),
        }
    }

    /// Discards what the shell prints to stdout between two requests, and stores the end of stderr. Returns when stdout
    /// ends.
    async fn drain_until_eof(&mut self) {
        let (mut bytes, mut stderr_bytes) = ([0; 4096], [0; 4096]);
        let mut stderr_is_open = true;
        loop {
            tokio::select! {
                read = self.stdout.read(&mut bytes) => if matches!(read, Ok(0) | Err(_)) { return },
                read = self.stderr.read(&mut stderr_bytes), if stderr_is_open => match read {
                    Ok(n) if n > 0 => append_tail(&mut self.stderr_tail, &stderr_bytes[..n]),
                    _ => stderr_is_open = false,
                },
            }
        }
    }

    /// Tells why the shell ended. The reason is what the shell wrote to stderr, or its exit status if stderr is empty.
    async fn closed_error(&mut self) -> ShellError {
        let mut bytes = [0; 4096];
        let rest = async {
            while let Ok(n @ 1..) = self.stderr.read(&mut bytes).await {
                append_tail(&mut self.stderr_tail, &bytes[..n]);
            }
        };
        let _ = tokio::time::timeout(STDERR_TIMEOUT, rest).await;
        let status = tokio::time::timeout(STDERR_TIMEOUT, self.group.child().wait()).await;
        let tail = String::from_utf8_lossy(&self.stderr_tail).trim().to_owned();
        ShellError::Closed(match (tail.is_empty(), status) {
            (false, _) => tail,
            (true, Ok(Ok(status))) => status.to_string(),
            (true, _) => "the host closed the connection".into(),
        })
    }

    async fn shut_down(mut self) {
        drop(self.stdin);
        if tokio::time::timeout(EXIT_GRACE, self.group.child().wait()).await.is_err() {
            self.group.terminate(EXIT_GRACE).await;
        }
    }
}

/// Returns when the shell has printed nothing for `timeout`.
async fn wait_for_silence(mut activity: watch::Receiver<()>, timeout: Duration) {
    while let Ok(Ok(())) = tokio::time::timeout(timeout, activity.changed()).await {}
}

async fn read_until_complete(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    reader: &mut ShellOutputReader,
    mut on_bytes: impl FnMut(&[u8]),
) -> Result<(), ShellError> {
    let mut bytes = vec![0; 64 * 1024];
    while !reader.is_complete() {
        match from.read(&mut bytes).await {
            Ok(n @ 1..) => {
                on_bytes(&bytes[..n]);
                reader.push(&bytes[..n])?;
            }
            _ => return Err(ShellError::Closed(String::new())),
        }
    }
    Ok(())
}

fn append_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(bytes);
    let excess = tail.len().saturating_sub(MAX_STDERR_TAIL_BYTES);
    tail.drain(..excess);
}
