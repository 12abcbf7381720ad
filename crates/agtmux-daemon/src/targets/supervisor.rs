//! Keeps in touch with one host: connects, listens, notices when it is gone, and comes back.

use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::collect::HostHello;
use agtmux_api::wire::EvidenceKind;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::TargetName;
use agtmux_core::sanitize;
use agtmux_core::target::{TargetFault, TargetHealth, TargetHealthLog};
use agtmux_tmux::ssh::SshClient;
use jiff::SignedDuration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::collect_connection::{CollectConnection, HostMessage};
use super::connection_end::ConnectionEnd;
use super::link::TargetLink;
use crate::clock::Clock;
use crate::engine::{EngineHandle, RemoteBatch};
use crate::observe::Discovery;
use crate::remote_timeouts::hello_timeout;

/// Between attempts, and how far it grows.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A connection that lasted so long was a good one: the next attempt comes soon.
const STABLE_CONNECTION_TIME: Duration = Duration::from_secs(30);
/// Requests that may wait to be written.
const MAX_QUEUED_REQUESTS: usize = 32;
/// Clocks that differ by less are taken for the same: most of it is the way.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct Supervisor {
    pub(super) target: TargetName,
    pub(super) ssh: SshClient,
    pub(super) discovery: Discovery,
    pub(super) engine: EngineHandle,
    pub(super) clock: Clock,
    pub(super) link: TargetLink,
    pub(super) health: TargetHealthLog,
    /// How much our clock is ahead of the one there.
    local_clock_ahead: SignedDuration,
}

impl Supervisor {
    pub(super) fn new(
        target: TargetName,
        ssh: SshClient,
        discovery: Discovery,
        engine: EngineHandle,
        clock: Clock,
        link: TargetLink,
    ) -> Self {
        Self {
            target,
            ssh,
            discovery,
            engine,
            clock,
            link,
            health: TargetHealthLog::default(),
            local_clock_ahead: SignedDuration::ZERO,
        }
    }

    /// Runs until it is aborted. Its ssh ends with it.
    pub(super) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let Some(end) = self.connect_native_or_shell().await else { continue };
            self.link.set_request_sender(None);
            self.ssh.remove_control_socket();
            failures = if began.elapsed() >= STABLE_CONNECTION_TIME { 1 } else { failures.saturating_add(1) };
            self.on_failed(end).await;
            tokio::select! {
                () = sleep(backoff(failures)) => {}
                () = self.link.retry_requested() => {}
            }
        }
    }

    /// Returns when the connection has ended, or with nothing when another way is to be tried at once.
    async fn connect_native_or_shell(&mut self) -> Option<ConnectionEnd> {
        let end = self.run_native().await;
        if !matches!(end.fault, TargetFault::NothingInstalled | TargetFault::VersionMismatch) {
            return Some(end);
        }
        // Nobody listens there any more.
        self.link.set_request_sender(None);
        self.link.update_status(|status| status.connected &= status.evidence != EvidenceKind::Native);
        // Without an agtmux that understands us its tmux can still be asked.
        match self.run_shell(&end).await? {
            // What can be mended is told.
            nothing if nothing.fault == TargetFault::NothingInstalled && end.fault == TargetFault::VersionMismatch => {
                Some(end)
            }
            otherwise => Some(otherwise),
        }
    }

    /// One connection, from its beginning to its end.
    async fn run_native(&mut self) -> ConnectionEnd {
        let (mut channel, hello) =
            match CollectConnection::open(&self.ssh, self.clock, hello_timeout(self.health.health())).await {
                Ok(opened) => opened,
                Err(end) => return end,
            };
        self.on_hello(&hello);
        let (asks, mut asked) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let mut asks = Some(asks);
        loop {
            let heard = tokio::select! {
                heard = channel.next_message() => heard,
                Some(asked) = asked.recv(), if channel.has_room() => {
                    channel.send_request(asked);
                    continue;
                }
            };
            match heard {
                Ok(HostMessage::Batch(batch)) => {
                    let received =
                        RemoteBatch { target: self.target.clone(), batch, clock_offset: self.local_clock_ahead };
                    self.engine.receive_remote(received).await;
                    // Only now it can be asked: what it has is known.
                    if let Some(asks) = asks.take() {
                        self.link.set_request_sender(Some(asks));
                        self.on_connected(&hello);
                    }
                }
                Ok(HostMessage::KeepAlive) => {}
                Err(end) => return end,
            }
        }
    }

    fn on_hello(&mut self, hello: &HostHello) {
        let ahead = self.clock.now().duration_since(hello.now);
        let ahead = if ahead.abs() < CLOCK_TOLERANCE { SignedDuration::ZERO } else { ahead };
        // Measured anew each time, it would make everything that is known a little newer or older.
        if (ahead - self.local_clock_ahead).abs() >= CLOCK_TOLERANCE {
            self.local_clock_ahead = ahead;
        }
        self.health.record_success();
    }

    fn on_connected(&mut self, hello: &HostHello) {
        let health = self.health.record_success();
        let version: String = hello.version.chars().take(32).collect();
        tracing::info!(target = %self.target, version, "connected");
        let (now, behind) = (self.clock.now(), self.local_clock_ahead);
        self.link.update_status(|status| {
            status.health = health;
            status.connected = true;
            status.evidence = EvidenceKind::Native;
            status.version = Some(sanitize::for_terminal(&version));
            status.since = now;
            status.clock_ahead_ms = i64::try_from(-behind.as_millis()).ok();
            (status.fault, status.message, status.hint) = (None, None, None);
            status.attempts += 1;
        });
    }

    async fn on_failed(&mut self, end: ConnectionEnd) {
        let now = self.clock.now();
        let before = self.link.status();
        let health = self.health.record_failure(now);
        if before.connected || before.fault != Some(end.fault) {
            tracing::warn!(target = %self.target, fault = %end.fault, message = end.message, "out of reach");
        }
        let (target, message) = (self.target.clone(), end.message.clone());
        let observation = match health {
            TargetHealth::Down => TopologyUpdate::TargetUnreachable { target, message },
            _ => {
                let outage = Some((OutageCode::TargetUnreachable, message));
                TopologyUpdate::TargetOutage { target, outage }
            }
        };
        self.engine.apply_topology(observation).await;
        let hint = self.hint(end.fault);
        self.link.update_status(|status| {
            status.health = health;
            status.since = if status.connected || status.attempts == 0 { now } else { status.since };
            status.connected = false;
            status.fault = Some(end.fault);
            status.message = Some(end.message);
            status.hint = Some(hint);
            status.attempts += 1;
        });
    }

    fn hint(&self, fault: TargetFault) -> String {
        let (target, host) = (&self.target, self.ssh.destination());
        match fault {
            TargetFault::Unreachable | TargetFault::NoResponse | TargetFault::Disconnected => {
                format!("agtmux target doctor {target}")
            }
            TargetFault::LoginRefused => format!("ssh {host} true   (it has to work without a question)"),
            TargetFault::VersionMismatch => {
                format!("install agtmux {VERSION} on {host}, then: ssh {host} agtmux daemon restart")
            }
            TargetFault::NothingInstalled => {
                format!("agtmux target doctor {target}   (it tells how to install agtmux there)")
            }
        }
    }
}

/// Longer with each failure, and never the same for two hosts.
fn backoff(failures: u32) -> Duration {
    let grown = MIN_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(MAX_BACKOFF);
    let (random, _) = Uuid::new_v4().as_u64_pair();
    // From three quarters to five quarters.
    grown.mul_f64(0.75 + (random % 1000) as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for failures in 0..100 {
            let pause = backoff(failures);
            assert!(pause >= MIN_BACKOFF.mul_f64(0.75) && pause <= MAX_BACKOFF.mul_f64(1.25), "{failures}: {pause:?}");
        }
        assert!(backoff(10) > Duration::from_secs(20));
        // Three attempts, each within its time, are over within half a minute: it is known to be down by then.
        let tries: Duration = (1..=2).map(backoff).sum();
        assert!(tries < Duration::from_secs(3));
    }
}
