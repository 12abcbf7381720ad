//! One conversation with the agtmux of another host, over the standard streams of `ssh host agtmux collect --stdio`.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::collect::{Answer, Batch, COLLECT_VERSION, FromHost, FromHub, HostHello};
use agtmux_core::sanitize;
use agtmux_core::target::Fault;
use agtmux_tmux::ssh::{Sharing, Ssh};
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::lines::Lines;
use super::link::Asked;
use crate::clock::Clock;

/// Runs agtmux where login shells, and those that read no settings, would find it. One word to every shell: it has no
/// quotes but those around it.
const COLLECT: &str = "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin\" \
                       exec agtmux collect --stdio'";

/// From the call of ssh to the first word: a login, and perhaps the start of a daemon.
const HELLO_WITHIN: Duration = Duration::from_secs(9);
/// A host that beats every three seconds and says nothing for so long is not there.
const SILENT_AFTER: Duration = Duration::from_secs(7);
/// A line that cannot be written by then is stuck, or so much later if it is long.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);
/// What a slow link carries in a second.
const BYTES_A_SECOND: usize = 32 << 10;
/// Shells greet people. More than this is no greeting.
const MOST_GREETING: usize = 64 << 10;
const MOST_COMPLAINT: u64 = 8 << 10;
const NOT_FOUND: i32 = 127;
const SSH_FAILED: i32 = 255;
const WRONG_USAGE: i32 = 2;
/// How agtmux ends whose daemon is another version.
const OTHER_VERSION: i32 = 4;

/// Why a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) fault: Fault,
    pub(super) message: String,
}

impl End {
    pub(super) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }
}

/// What the host said next.
#[derive(Debug)]
pub(super) enum Said {
    Batch(Batch),
    /// A beat, or an answer that somebody waited for.
    Nothing,
}

pub(super) struct Channel {
    child: Child,
    input: ChildStdin,
    lines: Lines<ChildStdout>,
    complaint: tokio::task::JoinHandle<String>,
    pending: HashMap<u64, oneshot::Sender<Answer>>,
    last_id: u64,
    clock: Clock,
    /// How much the clock there is ahead of ours, by what came last. What was long on its way makes it less, never more.
    ahead: SignedDuration,
}

impl Channel {
    /// Returns when the host has said who it is.
    pub(super) async fn open(ssh: &Ssh, clock: Clock) -> Result<(Self, HostHello), End> {
        // Whoever may listen on it is not ours, or is stuck.
        ssh.forget_connection();
        let mut command = ssh.command(Sharing::Shared, COLLECT);
        command.stdin(std::process::Stdio::piped());
        let unstarted = |error: std::io::Error| End::new(Fault::Unreachable, format!("ssh cannot be started: {error}"));
        let mut child = command.spawn().map_err(unstarted)?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(End::new(Fault::Unreachable, "ssh has no streams"));
        };
        let complaint = tokio::spawn(async move {
            let mut said = Vec::new();
            let _ = errors.take(MOST_COMPLAINT).read_to_end(&mut said).await;
            String::from_utf8_lossy(&said).into_owned()
        });
        let (lines, pending) = (Lines::new(output), HashMap::new());
        let ahead = SignedDuration::ZERO;
        let mut channel = Self { child, input, lines, complaint, pending, last_id: 0, clock, ahead };
        let deadline = Instant::now() + HELLO_WITHIN;
        match timeout_at(deadline, channel.greet()).await {
            Ok(Ok(hello)) => Ok((channel, hello)),
            Ok(Err(end)) => Err(end),
            Err(_) => Err(End::new(Fault::Silent, format!("it did not answer within {} s", HELLO_WITHIN.as_secs()))),
        }
    }

    async fn greet(&mut self) -> Result<HostHello, End> {
        let hello = FromHub::Hello { collect: COLLECT_VERSION, version: VERSION.into() };
        // One that has ended by now says more than a pipe that is broken.
        let _ = self.write(&hello).await;
        let mut greeted = 0;
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.ended().await),
                Err(error) => return Err(End::new(Fault::Cut, error)),
            };
            match serde_json::from_slice(&line) {
                Ok(FromHost::Hello(hello)) => {
                    self.ahead = hello.now.duration_since(self.clock.now());
                    return understood(hello);
                }
                _ => greeted += line.len() + 1,
            }
            if greeted > MOST_GREETING {
                return Err(End::new(Fault::Mismatch, "what answers there is not agtmux"));
            }
        }
    }

    /// What the host says next, or why it does not.
    pub(super) async fn hear(&mut self) -> Result<Said, End> {
        let line = loop {
            // Half a line is a sign of life too: on a slow link a whole one takes its time.
            let silent_at = self.lines.heard_at() + SILENT_AFTER;
            match timeout_at(silent_at, self.lines.next()).await {
                Ok(Ok(Some(line))) => break line,
                Ok(Ok(None)) => return Err(self.ended().await),
                Ok(Err(error)) => return Err(End::new(Fault::Cut, error)),
                Err(_) if self.lines.heard_at() + SILENT_AFTER > silent_at => {}
                Err(_) => {
                    let message = format!("it has said nothing for {} s", SILENT_AFTER.as_secs());
                    return Err(End::new(Fault::Silent, message));
                }
            }
        };
        match serde_json::from_slice(&line) {
            Ok(FromHost::Batch(batch)) => Ok(Said::Batch(batch)),
            Ok(FromHost::Reply(reply)) => {
                if let Some(waiting) = self.pending.remove(&reply.id) {
                    let _ = waiting.send(reply.answer);
                }
                Ok(Said::Nothing)
            }
            Ok(FromHost::Beat { now }) => {
                self.ahead = now.duration_since(self.clock.now());
                Ok(Said::Nothing)
            }
            Ok(FromHost::Hello(_)) | Err(_) => {
                Err(End::new(Fault::Mismatch, "it said something that this agtmux does not understand"))
            }
        }
    }

    pub(super) async fn ask(&mut self, asked: Asked) -> Result<(), End> {
        if asked.reply.is_closed() {
            return Ok(());
        }
        // Those who gave up are forgotten.
        self.pending.retain(|_, waiting| !waiting.is_closed());
        self.last_id += 1;
        self.pending.insert(self.last_id, asked.reply);
        asked.sent.store(true, Ordering::SeqCst);
        let mut ask = asked.ask;
        let size = serde_json::to_vec(&ask).map_or(0, |bytes| bytes.len());
        let not_after = self.given_up_at(size);
        if let Some(guards) = ask.conditions_of_change() {
            guards.not_after = not_after;
        }
        self.write(&FromHub::Request { id: self.last_id, ask: Box::new(ask) }).await
    }

    /// When this connection is given up if nothing comes any more, by the clock there. What comes there later is not to be
    /// done: whoever asked has been told that it may not have been.
    fn given_up_at(&self, size: usize) -> Option<Timestamp> {
        let left = (self.lines.heard_at() + SILENT_AFTER + on_its_way(size)).saturating_duration_since(Instant::now());
        self.clock.now().checked_add(self.ahead).ok()?.checked_add(left).ok()
    }

    async fn write(&mut self, line: &FromHub) -> Result<(), End> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| End::new(Fault::Cut, error.to_string()))?;
        bytes.push(b'\n');
        let written = async {
            self.input.write_all(&bytes).await?;
            self.input.flush().await
        };
        match timeout(WRITTEN_WITHIN + on_its_way(bytes.len()), written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(End::new(Fault::Cut, error.to_string())),
            Err(_) => Err(End::new(Fault::Silent, "it takes nothing any more")),
        }
    }

    /// What ssh, or whatever it ran there, said at its end.
    async fn ended(&mut self) -> End {
        let soon = Duration::from_secs(1);
        let status = timeout(soon, self.child.wait()).await.ok().and_then(Result::ok);
        let said = timeout(soon, &mut self.complaint).await.ok().and_then(Result::ok).unwrap_or_default();
        judge(status, &said)
    }
}

fn on_its_way(bytes: usize) -> Duration {
    Duration::from_secs((bytes / BYTES_A_SECOND) as u64)
}

fn understood(hello: HostHello) -> Result<HostHello, End> {
    if hello.collect == COLLECT_VERSION {
        return Ok(hello);
    }
    let version: String = hello.version.chars().take(32).collect();
    let message = format!(
        "agtmux {} there speaks version {} of the language between hosts, and this one, {VERSION}, speaks {COLLECT_VERSION}",
        sanitize::for_terminal(&version),
        hello.collect
    );
    Err(End::new(Fault::Mismatch, message))
}

fn judge(status: Option<ExitStatus>, said: &str) -> End {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let words = sanitize::for_terminal(&last.chars().take(300).collect::<String>());
    let or = |otherwise: &str| if words.is_empty() { otherwise.to_owned() } else { words.clone() };
    match status.and_then(|status| status.code()) {
        Some(SSH_FAILED) => {
            let refused = ["Permission denied", "Host key verification failed", "Too many authentication failures"];
            let fault =
                if refused.iter().any(|words| said.contains(words)) { Fault::Refused } else { Fault::Unreachable };
            End::new(fault, or("ssh could not connect"))
        }
        Some(NOT_FOUND) => End::new(Fault::NothingThere, "agtmux is not installed there"),
        Some(OTHER_VERSION) => {
            let first =
                said.lines().find(|line| !line.trim().is_empty()).unwrap_or("the daemon there is another version");
            let first: String = first.trim_start_matches("agtmux: ").chars().take(300).collect();
            End::new(Fault::Mismatch, sanitize::for_terminal(&first))
        }
        Some(WRONG_USAGE) if said.contains("collect") => {
            End::new(Fault::Mismatch, "the agtmux there is too old to be asked from here")
        }
        _ => End::new(Fault::Cut, or("the connection ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn ended(code: i32, said: &str) -> End {
        judge(Some(ExitStatus::from_raw(code << 8)), said)
    }

    #[test]
    fn the_end_of_ssh_tells_what_is_wrong() {
        let refused = ended(255, "x\nme@vm1: Permission denied (publickey).\n");
        assert_eq!(refused, End::new(Fault::Refused, "me@vm1: Permission denied (publickey)."));
        assert_eq!(ended(255, "ssh: connect to host vm1 port 22: No route to host\r\n").fault, Fault::Unreachable);
        assert_eq!(ended(127, "sh: 1: exec: agtmux: not found").fault, Fault::NothingThere);
        assert_eq!(ended(2, "error: unrecognized subcommand 'collect'").fault, Fault::Mismatch);
        let old = ended(4, "agtmux: the daemon is version 0\n  try: agtmux daemon restart\n");
        assert_eq!(old, End::new(Fault::Mismatch, "the daemon is version 0"));
        assert_eq!(ended(1, "\u{1b}[31mboom").message, sanitize::for_terminal("\u{1b}[31mboom"));
        assert_eq!(judge(None, ""), End::new(Fault::Cut, "the connection ended"));
    }

    #[test]
    fn the_command_has_no_quotes_in_its_quotes() {
        let inner = COLLECT.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')));
    }
}
