//! The shell's process, and whoever talks to it: one question after the other.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot, watch};

use super::ShellError;
use super::batch::{self, ShellBatch, ShellOutput, ShellOutputReader};
use crate::ssh::ProcessGroup;

/// What it said last is the reason why it ended.
const MAX_STDERR_TAIL_BYTES: usize = 2048;
const STDERR_TIMEOUT: Duration = Duration::from_millis(300);
/// A shell that is told that there are no more questions ends by itself.
const EXIT_GRACE: Duration = Duration::from_millis(500);

pub(super) struct ShellRequest {
    pub(super) batch: ShellBatch,
    /// Nothing may come for so long, and all of it has to be there by then.
    pub(super) silence_timeout: Duration,
    pub(super) timeout: Duration,
    pub(super) reply: oneshot::Sender<Result<Vec<ShellOutput>, ShellError>>,
}

struct ShellProcess {
    group: ProcessGroup,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// What came on stderr while nobody asked, or with the last question.
    stderr_tail: Vec<u8>,
}

/// Starts the program and serves those who ask, until they are gone, the program has ended, or has missed a deadline.
pub(super) fn start(
    mut command: Command,
    questions: mpsc::Receiver<ShellRequest>,
    ended: watch::Sender<Option<ShellError>>,
) -> Result<(), ShellError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    let mut child = command.spawn().map_err(|error| ShellError::Spawn(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ShellError::Spawn("it has no pipes".into()));
    };
    let channel = ShellProcess { group: ProcessGroup::new(child), stdin, stdout, stderr, stderr_tail: Vec::new() };
    tokio::spawn(serve(channel, questions, ended));
    Ok(())
}

async fn serve(
    mut channel: ShellProcess,
    mut questions: mpsc::Receiver<ShellRequest>,
    ended: watch::Sender<Option<ShellError>>,
) {
    let mut greeting = batch::preamble().into_bytes();
    let why = loop {
        tokio::select! {
            asked = questions.recv() => {
                let Some(asked) = asked else { return channel.shut_down().await };
                // Whether or not somebody still waits for it: the next answer must not be taken for this one.
                let answer = channel.run_batch(std::mem::take(&mut greeting), &asked).await;
                let failed = answer.as_ref().err().cloned();
                // Known before anybody hears of it.
                if let Some(why) = &failed {
                    ended.send_replace(Some(why.clone()));
                }
                let _ = asked.reply.send(answer);
                if let Some(why) = failed {
                    break why;
                }
            }
            () = channel.drain_until_eof() => break channel.closed_error().await,
        }
    };
    ended.send_replace(Some(why));
    // It is not waited for long: what hangs may hang for good.
    channel.group.terminate(EXIT_GRACE).await;
}

impl ShellProcess {
    async fn run_batch(&mut self, greeting: Vec<u8>, asked: &ShellRequest) -> Result<Vec<ShellOutput>, ShellError> {
        let word = uuid::Uuid::new_v4().simple().to_string();
        let script = [greeting, asked.batch.script(&word)].concat();
        let (mut out, mut err) = (asked.batch.reader(&word), asked.batch.reader(&word));
        self.stderr_tail.clear();
        let (stdin, said) = (&mut self.stdin, &mut self.stderr_tail);
        let (signs, seen) = watch::channel(());
        let (stdout, stderr) = (&mut self.stdout, &mut self.stderr);
        let talk = async {
            // One that does not listen any more is about to end, and reading tells.
            let write = async {
                let _ = stdin.write_all(&script).await;
                let _ = stdin.flush().await;
                Ok(())
            };
            let read_out = async { read_until_complete(stdout, &mut out, |_| signs.send_replace(())).await };
            let heard = |bytes: &[u8]| {
                signs.send_replace(());
                append_tail(said, bytes);
            };
            let read_err = async { read_until_complete(stderr, &mut err, heard).await };
            tokio::try_join!(write, read_out, read_err).map(|_| ())
        };
        let told = tokio::select! {
            // What has come while we were busy is no silence.
            biased;
            told = tokio::time::timeout(asked.timeout, talk) => told.map_err(|_| asked.timeout),
            () = wait_for_silence(seen, asked.silence_timeout) => Err(asked.silence_timeout),
        };
        match told {
            Ok(Ok(())) => Ok(batch::merge_outputs(out, err)),
            Ok(Err(ShellError::Closed(_))) => Err(self.closed_error().await),
            Ok(Err(error)) => Err(error),
            Err(within) => Err(ShellError::Timeout { within, answered: out.finished_lines() }),
        }
    }

    /// Reads what nobody asked for until there is no more.
    async fn drain_until_eof(&mut self) {
        let (mut bytes, mut words) = ([0; 4096], [0; 4096]);
        let mut speaks = true;
        loop {
            tokio::select! {
                read = self.stdout.read(&mut bytes) => if matches!(read, Ok(0) | Err(_)) { return },
                read = self.stderr.read(&mut words), if speaks => match read {
                    Ok(n) if n > 0 => append_tail(&mut self.stderr_tail, &words[..n]),
                    _ => speaks = false,
                },
            }
        }
    }

    /// Why it has ended, in its own words.
    async fn closed_error(&mut self) -> ShellError {
        let mut bytes = [0; 4096];
        let rest = async {
            while let Ok(n @ 1..) = self.stderr.read(&mut bytes).await {
                append_tail(&mut self.stderr_tail, &bytes[..n]);
            }
        };
        let _ = tokio::time::timeout(STDERR_TIMEOUT, rest).await;
        let status = tokio::time::timeout(STDERR_TIMEOUT, self.group.child().wait()).await;
        let said = String::from_utf8_lossy(&self.stderr_tail).trim().to_owned();
        ShellError::Closed(match (said.is_empty(), status) {
            (false, _) => said,
            (true, Ok(Ok(status))) => status.to_string(),
            (true, _) => "it closed the connection".into(),
        })
    }

    async fn shut_down(mut self) {
        drop(self.stdin);
        if tokio::time::timeout(EXIT_GRACE, self.group.child().wait()).await.is_err() {
            self.group.terminate(EXIT_GRACE).await;
        }
    }
}

/// Returns when there was no sign of life for so long.
async fn wait_for_silence(mut signs: watch::Receiver<()>, longest: Duration) {
    while let Ok(Ok(())) = tokio::time::timeout(longest, signs.changed()).await {}
}

async fn read_until_complete(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    reader: &mut ShellOutputReader,
    mut heard: impl FnMut(&[u8]),
) -> Result<(), ShellError> {
    let mut bytes = vec![0; 64 * 1024];
    while !reader.is_complete() {
        match from.read(&mut bytes).await {
            Ok(n @ 1..) => {
                heard(&bytes[..n]);
                reader.push(&bytes[..n])?;
            }
            _ => return Err(ShellError::Closed(String::new())),
        }
    }
    Ok(())
}

fn append_tail(said: &mut Vec<u8>, bytes: &[u8]) {
    said.extend_from_slice(bytes);
    let excess = said.len().saturating_sub(MAX_STDERR_TAIL_BYTES);
    said.drain(..excess);
}
