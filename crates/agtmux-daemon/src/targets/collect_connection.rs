//! One conversation with the agtmux of another host, over the standard streams of `ssh host agtmux collect --stdio`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::collect::{COLLECT_VERSION, EvidenceBatch, HostHello, HostLine, HubLine, ReplyOutcome};
use agtmux_core::sanitize;
use agtmux_core::target::TargetFault;
use agtmux_tmux::ssh::{ConnectionSharing, ProcessGroup, SshClient};
use bytes::{Buf, BytesMut};
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection_end::{ConnectionEnd, classify_exit};
use super::line_reader::LineReader;
use super::link::TargetRequest;
use crate::clock::Clock;
use crate::remote_timeouts::{SILENCE_TIMEOUT, SSH_EXIT_TIMEOUT, WRITE_TIMEOUT};

/// Runs agtmux where login shells, and those that read no settings, would find it. One word to every shell: it has no
/// quotes but those around it.
const COLLECT_COMMAND: &str = "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin\" \
                       exec agtmux collect --stdio'";

/// With so much still to be written no more is taken on.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;
/// What a slow link carries in a second.
const SLOW_LINK_BYTES_PER_SECOND: usize = 32 << 10;
/// Shells greet people. More than this is no greeting.
const MAX_GREETING_BYTES: usize = 64 << 10;
const MAX_STDERR_BYTES: u64 = 8 << 10;

/// What the host said next.
#[derive(Debug)]
pub(super) enum HostMessage {
    Batch(EvidenceBatch),
    /// A beat, or an answer that somebody waited for.
    KeepAlive,
}

pub(super) struct CollectConnection {
    /// ssh, and whatever it has started to get there.
    group: ProcessGroup,
    input: ChildStdin,
    /// What is still to be written, and since when nothing of it was taken.
    unwritten: BytesMut,
    last_write_at: Instant,
    lines: LineReader<ChildStdout>,
    /// When the host was last known to be there.
    last_seen_at: Instant,
    stderr: tokio::task::JoinHandle<String>,
    pending: HashMap<u64, oneshot::Sender<ReplyOutcome>>,
    last_id: u64,
    clock: Clock,
    /// How much the clock there is ahead of ours, by what came last. What was long on its way makes it less, never more.
    remote_clock_ahead: SignedDuration,
}

impl CollectConnection {
    /// Returns when the host has said who it is.
    pub(super) async fn open(
        ssh: &SshClient,
        clock: Clock,
        within: Duration,
    ) -> Result<(Self, HostHello), ConnectionEnd> {
        // Whoever may listen on it is not ours, or is stuck.
        ssh.remove_control_socket();
        let mut channel = Self::start(ssh, clock)?;
        match timeout(within, channel.handshake()).await {
            Ok(Ok(hello)) => Ok((channel, hello)),
            Ok(Err(end)) => Err(end),
            Err(_) => Err(ConnectionEnd::new(
                TargetFault::NoResponse,
                format!("it did not answer within {} s", within.as_secs()),
            )),
        }
    }

    fn start(ssh: &SshClient, clock: Clock) -> Result<Self, ConnectionEnd> {
        let mut command = ssh.command(ConnectionSharing::Shared, COLLECT_COMMAND);
        command.stdin(std::process::Stdio::piped());
        let unstarted = |error: std::io::Error| {
            ConnectionEnd::new(TargetFault::Unreachable, format!("ssh cannot be started: {error}"))
        };
        let mut group = ProcessGroup::new(command.spawn().map_err(unstarted)?);
        let child = group.child();
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ConnectionEnd::new(TargetFault::Unreachable, "ssh has no streams"));
        };
        let complaint = tokio::spawn(async move {
            let mut said = Vec::new();
            let _ = errors.take(MAX_STDERR_BYTES).read_to_end(&mut said).await;
            String::from_utf8_lossy(&said).into_owned()
        });
        let now = Instant::now();
        Ok(Self {
            group,
            input,
            unwritten: BytesMut::new(),
            last_write_at: now,
            lines: LineReader::new(output),
            last_seen_at: now,
            stderr: complaint,
            pending: HashMap::new(),
            last_id: 0,
            clock,
            remote_clock_ahead: SignedDuration::ZERO,
        })
    }

    async fn handshake(&mut self) -> Result<HostHello, ConnectionEnd> {
        self.queue_line(&HubLine::Hello { collect: COLLECT_VERSION, version: VERSION.into() });
        // One that has ended by now says more than a pipe that is broken.
        let _ = self.input.write_all_buf(&mut self.unwritten).await;
        self.unwritten.clear();
        let mut greeted = 0;
        loop {
            let line = match self.lines.next_line().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.end_reason().await),
                Err(error) => return Err(ConnectionEnd::new(TargetFault::Disconnected, error)),
            };
            match serde_json::from_slice(&line) {
                Ok(HostLine::Hello(hello)) => {
                    self.last_seen_at = Instant::now();
                    self.remote_clock_ahead = hello.now.duration_since(self.clock.now());
                    return check_version(hello);
                }
                _ => greeted += line.len() + 1,
            }
            if greeted > MAX_GREETING_BYTES {
                return Err(ConnectionEnd::new(TargetFault::VersionMismatch, "what answers there is not agtmux"));
            }
        }
    }

    /// What the host says next, or why it does not. Meanwhile it is given what was asked of it, so that nobody who takes
    /// nothing keeps us from noticing that nothing comes. May be dropped and called again: nothing is lost.
    pub(super) async fn next_message(&mut self) -> Result<HostMessage, ConnectionEnd> {
        let line = loop {
            let (silent_at, stuck_at) = (self.silence_deadline(), self.write_deadline());
            tokio::select! {
                // What has come while we were busy is no silence, however late it is read.
                biased;
                line = self.lines.next_line() => match line {
                    Ok(Some(line)) => break line,
                    Ok(None) => return Err(self.end_reason().await),
                    Err(error) => return Err(ConnectionEnd::new(TargetFault::Disconnected, error)),
                },
                written = self.input.write(&self.unwritten), if !self.unwritten.is_empty() => match written {
                    Ok(taken) => {
                        self.unwritten.advance(taken);
                        self.last_write_at = Instant::now();
                    }
                    Err(_) => return Err(self.end_reason().await),
                },
                () = sleep_until(silent_at.min(stuck_at)) => {
                    let now = Instant::now();
                    if self.silence_deadline() <= now {
                        let message = format!("it has said nothing for {} s", SILENCE_TIMEOUT.as_secs());
                        return Err(ConnectionEnd::new(TargetFault::NoResponse, message));
                    }
                    if self.write_deadline() <= now {
                        return Err(ConnectionEnd::new(TargetFault::NoResponse, "it takes nothing any more"));
                    }
                }
            }
        };
        let heard_at = self.lines.last_read_at();
        let said = match serde_json::from_slice(&line) {
            Ok(HostLine::Batch(batch)) => HostMessage::Batch(batch),
            Ok(HostLine::Reply(reply)) => {
                let lost = matches!(reply.outcome, ReplyOutcome::Lost(_));
                if let Some(waiting) = self.pending.remove(&reply.id) {
                    let _ = waiting.send(reply.outcome);
                }
                if lost {
                    // It is the daemon there that counts, and this one tells that it does not answer.
                    return Ok(HostMessage::KeepAlive);
                }
                HostMessage::KeepAlive
            }
            Ok(HostLine::Heartbeat { now }) => {
                self.remote_clock_ahead = now.duration_since(self.clock.now());
                HostMessage::KeepAlive
            }
            Ok(HostLine::Hello(_)) | Err(_) => {
                return Err(ConnectionEnd::new(
                    TargetFault::VersionMismatch,
                    "it said something that this agtmux does not understand",
                ));
            }
        };
        self.last_seen_at = heard_at;
        Ok(said)
    }

    /// Half a line is a sign of life too: on a slow link a whole one takes its time.
    fn silence_deadline(&self) -> Instant {
        self.lines.partial_line_at().unwrap_or(self.last_seen_at).max(self.last_seen_at) + SILENCE_TIMEOUT
    }

    /// Nobody is stuck who has nothing to take.
    fn write_deadline(&self) -> Instant {
        let since = if self.unwritten.is_empty() { Instant::now() } else { self.last_write_at };
        since + WRITE_TIMEOUT
    }

    /// Whether more may be asked of it.
    pub(super) fn has_room(&self) -> bool {
        self.unwritten.len() < MAX_UNWRITTEN_BYTES
    }

    /// Has it asked with what is written next.
    pub(super) fn send_request(&mut self, asked: TargetRequest) {
        if asked.reply.is_closed() {
            return;
        }
        // Those who gave up are forgotten.
        self.pending.retain(|_, waiting| !waiting.is_closed());
        self.last_id += 1;
        self.pending.insert(self.last_id, asked.reply);
        asked.sent.store(true, Ordering::SeqCst);
        let mut ask = asked.ask;
        let size = serde_json::to_vec(&ask).map_or(0, |bytes| bytes.len());
        let not_after = self.deadline_on_host(self.unwritten.len() + size);
        if let Some(guards) = ask.mutation_guards() {
            guards.not_after = not_after;
        }
        self.queue_line(&HubLine::Request { id: self.last_id, ask: Box::new(ask) });
    }

    /// When this connection is given up if nothing comes any more, by the clock there. What comes there later is not to be
    /// done: whoever asked has been told that it may not have been.
    fn deadline_on_host(&self, size: usize) -> Option<Timestamp> {
        let left = (self.silence_deadline() + transfer_time(size)).saturating_duration_since(Instant::now());
        self.clock.now().checked_add(self.remote_clock_ahead).ok()?.checked_add(left).ok()
    }

    fn queue_line(&mut self, line: &HubLine) {
        // Whatever is asked can be written: it was read from the same form.
        let Ok(bytes) = serde_json::to_vec(line) else { return };
        if self.unwritten.is_empty() {
            self.last_write_at = Instant::now();
        }
        self.unwritten.extend_from_slice(&bytes);
        self.unwritten.extend_from_slice(b"\n");
    }

    /// What ssh, or whatever it ran there, said at its end.
    async fn end_reason(&mut self) -> ConnectionEnd {
        let (child, complaint) = (self.group.child(), &mut self.stderr);
        let (status, said) =
            tokio::join!(timeout(SSH_EXIT_TIMEOUT, child.wait()), timeout(SSH_EXIT_TIMEOUT, complaint));
        let said = said.ok().and_then(Result::ok).unwrap_or_default();
        classify_exit(status.ok().and_then(Result::ok), &said)
    }
}

fn transfer_time(bytes: usize) -> Duration {
    Duration::from_secs((bytes / SLOW_LINK_BYTES_PER_SECOND) as u64)
}

fn check_version(hello: HostHello) -> Result<HostHello, ConnectionEnd> {
    if hello.collect == COLLECT_VERSION {
        return Ok(hello);
    }
    let version: String = hello.version.chars().take(32).collect();
    let message = format!(
        "agtmux {} there speaks version {} of the language between hosts, and this one, {VERSION}, speaks {COLLECT_VERSION}",
        sanitize::for_terminal(&version),
        hello.collect
    );
    Err(ConnectionEnd::new(TargetFault::VersionMismatch, message))
}

#[cfg(test)]
mod tests {
    use super::super::test_process::{self, SOON};
    use super::*;
    use agtmux_api::collect::HubRequest;
    use agtmux_api::wire::SendAction;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const HELLO: &str =
        r#"echo '{"type":"hello","collect":1,"version":"9","now":"2026-01-01T00:00:00Z","tmux_versions":[]}'"#;

    /// A program that is taken for ssh, and says hello first.
    fn ssh(dir: &Path, then: &str) -> SshClient {
        use std::os::unix::fs::PermissionsExt;
        let program = dir.join("ssh");
        std::fs::write(&program, format!("#!/bin/sh\n{HELLO}\n{then}\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("set");
        SshClient::new(program, "vm1", dir.join("control"))
    }

    async fn opened(dir: &Path, then: &str) -> CollectConnection {
        CollectConnection::open(&ssh(dir, then), Clock::start(), SOON).await.expect("it says hello").0
    }

    /// How long it was listened to until it was given up.
    async fn given_up(mut channel: CollectConnection) -> (TargetFault, Duration) {
        let began = Instant::now();
        let end = async {
            loop {
                if let Err(end) = channel.next_message().await {
                    return end.fault;
                }
            }
        };
        let fault = timeout(SOON, end).await.expect("it is given up");
        (fault, began.elapsed())
    }

    fn long_text() -> (TargetRequest, oneshot::Receiver<ReplyOutcome>) {
        let (reply, answer) = oneshot::channel();
        let ask = HubRequest::Send(SendAction { text: Some("x".repeat(900 << 10)), ..SendAction::default() });
        (TargetRequest { ask, sent: Arc::new(AtomicBool::new(false)), reply }, answer)
    }

    /// Nothing is taken and nothing is said: that a text is on its way is no reason to wait for longer.
    #[tokio::test]
    async fn a_host_that_takes_nothing_is_given_up_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut channel = opened(dir.path(), "exec sleep 600").await;
        let (asked, _answer) = long_text();
        channel.send_request(asked);
        assert!(channel.has_room() && !channel.unwritten.is_empty());
        let (fault, after) = given_up(channel).await;
        assert_eq!(fault, TargetFault::NoResponse);
        assert!(after < SILENCE_TIMEOUT + Duration::from_secs(2), "{after:?}");
    }

    /// What passes the words of a daemon on may well live while the daemon does not.
    #[tokio::test]
    async fn a_daemon_that_answers_nobody_is_not_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let lost = r#"while echo '{"type":"reply","id":1,"answer":{"lost":"no answer"}}'; do sleep 0.5; done"#;
        let (fault, after) = given_up(opened(dir.path(), lost).await).await;
        assert_eq!(fault, TargetFault::NoResponse);
        assert!(after < SILENCE_TIMEOUT + Duration::from_secs(2), "{after:?}");
    }

    /// Such as a program that leads over another host.
    #[tokio::test]
    async fn what_ssh_has_started_ends_with_the_conversation() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = dir.path().join("left");
        let then =
            format!("(trap '' TERM HUP; exec 0<&- 1>&- 2>&-; exec sleep 600) & echo $! >{}; wait", left.display());
        let channel = opened(dir.path(), &then).await;
        let id = test_process::wait_for_pid_file(&left).await;
        drop(channel);
        test_process::wait_for_exit(id).await;
    }

    #[test]
    fn the_command_has_no_quotes_in_its_quotes() {
        let inner = COLLECT_COMMAND.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')));
    }
}
