//! One conversation with the agtmux of another host, over the standard streams of `ssh host agtmux collect --stdio`.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::collect::{Answer, Batch, COLLECT_VERSION, FromHost, FromHub, HostHello};
use agtmux_core::sanitize;
use agtmux_core::target::Fault;
use agtmux_tmux::ssh::{Group, Sharing, Ssh};
use bytes::{Buf, BytesMut};
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use super::end::{End, judge};
use super::lines::Lines;
use super::link::Asked;
use crate::clock::Clock;
use crate::patience::{LAST_WORDS, SILENT_AFTER, STUCK_AFTER};

/// Runs agtmux where login shells, and those that read no settings, would find it. One word to every shell: it has no
/// quotes but those around it.
const COLLECT: &str = "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin\" \
                       exec agtmux collect --stdio'";

/// With so much still to be written no more is taken on.
const MOST_UNWRITTEN: usize = 1 << 20;
/// What a slow link carries in a second.
const BYTES_A_SECOND: usize = 32 << 10;
/// Shells greet people. More than this is no greeting.
const MOST_GREETING: usize = 64 << 10;
const MOST_COMPLAINT: u64 = 8 << 10;

/// What the host said next.
#[derive(Debug)]
pub(super) enum Said {
    Batch(Batch),
    /// A beat, or an answer that somebody waited for.
    Nothing,
}

pub(super) struct Channel {
    /// ssh, and whatever it has started to get there.
    group: Group,
    input: ChildStdin,
    /// What is still to be written, and since when nothing of it was taken.
    unwritten: BytesMut,
    taken_at: Instant,
    lines: Lines<ChildStdout>,
    /// When the host was last known to be there.
    alive_at: Instant,
    complaint: tokio::task::JoinHandle<String>,
    pending: HashMap<u64, oneshot::Sender<Answer>>,
    last_id: u64,
    clock: Clock,
    /// How much the clock there is ahead of ours, by what came last. What was long on its way makes it less, never more.
    ahead: SignedDuration,
}

impl Channel {
    /// Returns when the host has said who it is.
    pub(super) async fn open(ssh: &Ssh, clock: Clock, within: Duration) -> Result<(Self, HostHello), End> {
        // Whoever may listen on it is not ours, or is stuck.
        ssh.forget_connection();
        let mut channel = Self::start(ssh, clock)?;
        match timeout(within, channel.greet()).await {
            Ok(Ok(hello)) => Ok((channel, hello)),
            Ok(Err(end)) => Err(end),
            Err(_) => Err(End::new(Fault::Silent, format!("it did not answer within {} s", within.as_secs()))),
        }
    }

    fn start(ssh: &Ssh, clock: Clock) -> Result<Self, End> {
        let mut command = ssh.command(Sharing::Shared, COLLECT);
        command.stdin(std::process::Stdio::piped());
        let unstarted = |error: std::io::Error| End::new(Fault::Unreachable, format!("ssh cannot be started: {error}"));
        let mut group = Group::new(command.spawn().map_err(unstarted)?);
        let child = group.child();
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(End::new(Fault::Unreachable, "ssh has no streams"));
        };
        let complaint = tokio::spawn(async move {
            let mut said = Vec::new();
            let _ = errors.take(MOST_COMPLAINT).read_to_end(&mut said).await;
            String::from_utf8_lossy(&said).into_owned()
        });
        let now = Instant::now();
        Ok(Self {
            group,
            input,
            unwritten: BytesMut::new(),
            taken_at: now,
            lines: Lines::new(output),
            alive_at: now,
            complaint,
            pending: HashMap::new(),
            last_id: 0,
            clock,
            ahead: SignedDuration::ZERO,
        })
    }

    async fn greet(&mut self) -> Result<HostHello, End> {
        self.put(&FromHub::Hello { collect: COLLECT_VERSION, version: VERSION.into() });
        // One that has ended by now says more than a pipe that is broken.
        let _ = self.input.write_all_buf(&mut self.unwritten).await;
        self.unwritten.clear();
        let mut greeted = 0;
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(self.ended().await),
                Err(error) => return Err(End::new(Fault::Cut, error)),
            };
            match serde_json::from_slice(&line) {
                Ok(FromHost::Hello(hello)) => {
                    self.alive_at = Instant::now();
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

    /// What the host says next, or why it does not. Meanwhile it is given what was asked of it, so that nobody who takes
    /// nothing keeps us from noticing that nothing comes. May be dropped and called again: nothing is lost.
    pub(super) async fn hear(&mut self) -> Result<Said, End> {
        let line = loop {
            let (silent_at, stuck_at) = (self.silent_at(), self.stuck_at());
            tokio::select! {
                // What has come while we were busy is no silence, however late it is read.
                biased;
                line = self.lines.next() => match line {
                    Ok(Some(line)) => break line,
                    Ok(None) => return Err(self.ended().await),
                    Err(error) => return Err(End::new(Fault::Cut, error)),
                },
                written = self.input.write(&self.unwritten), if !self.unwritten.is_empty() => match written {
                    Ok(taken) => {
                        self.unwritten.advance(taken);
                        self.taken_at = Instant::now();
                    }
                    Err(_) => return Err(self.ended().await),
                },
                () = sleep_until(silent_at.min(stuck_at)) => {
                    let now = Instant::now();
                    if self.silent_at() <= now {
                        let message = format!("it has said nothing for {} s", SILENT_AFTER.as_secs());
                        return Err(End::new(Fault::Silent, message));
                    }
                    if self.stuck_at() <= now {
                        return Err(End::new(Fault::Silent, "it takes nothing any more"));
                    }
                }
            }
        };
        let heard_at = self.lines.heard_at();
        let said = match serde_json::from_slice(&line) {
            Ok(FromHost::Batch(batch)) => Said::Batch(batch),
            Ok(FromHost::Reply(reply)) => {
                let lost = matches!(reply.answer, Answer::Lost(_));
                if let Some(waiting) = self.pending.remove(&reply.id) {
                    let _ = waiting.send(reply.answer);
                }
                if lost {
                    // It is the daemon there that counts, and this one tells that it does not answer.
                    return Ok(Said::Nothing);
                }
                Said::Nothing
            }
            Ok(FromHost::Beat { now }) => {
                self.ahead = now.duration_since(self.clock.now());
                Said::Nothing
            }
            Ok(FromHost::Hello(_)) | Err(_) => {
                return Err(End::new(Fault::Mismatch, "it said something that this agtmux does not understand"));
            }
        };
        self.alive_at = heard_at;
        Ok(said)
    }

    /// Half a line is a sign of life too: on a slow link a whole one takes its time.
    fn silent_at(&self) -> Instant {
        self.lines.half_heard_at().unwrap_or(self.alive_at).max(self.alive_at) + SILENT_AFTER
    }

    /// Nobody is stuck who has nothing to take.
    fn stuck_at(&self) -> Instant {
        let since = if self.unwritten.is_empty() { Instant::now() } else { self.taken_at };
        since + STUCK_AFTER
    }

    /// Whether more may be asked of it.
    pub(super) fn has_room(&self) -> bool {
        self.unwritten.len() < MOST_UNWRITTEN
    }

    /// Has it asked with what is written next.
    pub(super) fn ask(&mut self, asked: Asked) {
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
        let not_after = self.given_up_at(self.unwritten.len() + size);
        if let Some(guards) = ask.conditions_of_change() {
            guards.not_after = not_after;
        }
        self.put(&FromHub::Request { id: self.last_id, ask: Box::new(ask) });
    }

    /// When this connection is given up if nothing comes any more, by the clock there. What comes there later is not to be
    /// done: whoever asked has been told that it may not have been.
    fn given_up_at(&self, size: usize) -> Option<Timestamp> {
        let left = (self.silent_at() + on_its_way(size)).saturating_duration_since(Instant::now());
        self.clock.now().checked_add(self.ahead).ok()?.checked_add(left).ok()
    }

    fn put(&mut self, line: &FromHub) {
        // Whatever is asked can be written: it was read from the same form.
        let Ok(bytes) = serde_json::to_vec(line) else { return };
        if self.unwritten.is_empty() {
            self.taken_at = Instant::now();
        }
        self.unwritten.extend_from_slice(&bytes);
        self.unwritten.extend_from_slice(b"\n");
    }

    /// What ssh, or whatever it ran there, said at its end.
    async fn ended(&mut self) -> End {
        let (child, complaint) = (self.group.child(), &mut self.complaint);
        let (status, said) = tokio::join!(timeout(LAST_WORDS, child.wait()), timeout(LAST_WORDS, complaint));
        let said = said.ok().and_then(Result::ok).unwrap_or_default();
        judge(status.ok().and_then(Result::ok), &said)
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

#[cfg(test)]
mod tests {
    use super::super::trial::{self, SOON};
    use super::*;
    use agtmux_api::collect::Ask;
    use agtmux_api::wire::SendAction;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const HELLO: &str =
        r#"echo '{"type":"hello","collect":1,"version":"9","now":"2026-01-01T00:00:00Z","tmux_versions":[]}'"#;

    /// A program that is taken for ssh, and says hello first.
    fn ssh(dir: &Path, then: &str) -> Ssh {
        use std::os::unix::fs::PermissionsExt;
        let program = dir.join("ssh");
        std::fs::write(&program, format!("#!/bin/sh\n{HELLO}\n{then}\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("set");
        Ssh::new(program, "vm1", dir.join("control"))
    }

    async fn opened(dir: &Path, then: &str) -> Channel {
        Channel::open(&ssh(dir, then), Clock::start(), SOON).await.expect("it says hello").0
    }

    /// How long it was listened to until it was given up.
    async fn given_up(mut channel: Channel) -> (Fault, Duration) {
        let began = Instant::now();
        let end = async {
            loop {
                if let Err(end) = channel.hear().await {
                    return end.fault;
                }
            }
        };
        let fault = timeout(SOON, end).await.expect("it is given up");
        (fault, began.elapsed())
    }

    fn long_text() -> (Asked, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        let ask = Ask::Send(SendAction { text: Some("x".repeat(900 << 10)), ..SendAction::default() });
        (Asked { ask, sent: Arc::new(AtomicBool::new(false)), reply }, answer)
    }

    /// Nothing is taken and nothing is said: that a text is on its way is no reason to wait for longer.
    #[tokio::test]
    async fn a_host_that_takes_nothing_is_given_up_in_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut channel = opened(dir.path(), "exec sleep 600").await;
        let (asked, _answer) = long_text();
        channel.ask(asked);
        assert!(channel.has_room() && !channel.unwritten.is_empty());
        let (fault, after) = given_up(channel).await;
        assert_eq!(fault, Fault::Silent);
        assert!(after < SILENT_AFTER + Duration::from_secs(2), "{after:?}");
    }

    /// What passes the words of a daemon on may well live while the daemon does not.
    #[tokio::test]
    async fn a_daemon_that_answers_nobody_is_not_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let lost = r#"while echo '{"type":"reply","id":1,"answer":{"lost":"no answer"}}'; do sleep 0.5; done"#;
        let (fault, after) = given_up(opened(dir.path(), lost).await).await;
        assert_eq!(fault, Fault::Silent);
        assert!(after < SILENT_AFTER + Duration::from_secs(2), "{after:?}");
    }

    /// Such as a program that leads over another host.
    #[tokio::test]
    async fn what_ssh_has_started_ends_with_the_conversation() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = dir.path().join("left");
        let then =
            format!("(trap '' TERM HUP; exec 0<&- 1>&- 2>&-; exec sleep 600) & echo $! >{}; wait", left.display());
        let channel = opened(dir.path(), &then).await;
        let id = trial::noted(&left).await;
        drop(channel);
        trial::ends(id).await;
    }

    #[test]
    fn the_command_has_no_quotes_in_its_quotes() {
        let inner = COLLECT.strip_prefix("exec sh -c '").and_then(|rest| rest.strip_suffix('\''));
        assert!(inner.is_some_and(|inner| !inner.contains('\'') && !inner.contains('\\')));
    }
}
