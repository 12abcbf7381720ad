//! Keeps one remote target connected: connects, reads, detects silence and reconnects.

use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::host_protocol::{EvidenceBatch, HostHello};
use agtmux_api::wire::EvidenceKind;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::TargetName;
use agtmux_core::sanitize;
use agtmux_core::target::{TargetFault, TargetHealth, TargetHealthLog};
use agtmux_tmux::ssh::SshClient;
use jiff::SignedDuration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::connection::{CollectConnection, MAX_QUICK_LINE_BYTES};
use super::connection_end::ConnectionEnd;
use super::decode::{EvidenceDecoder, RemoteBatch};
use super::link::{LinkStatus, TargetLink, TargetRequest};
use super::pacing::{HostPacer, drop_repetitions};
use super::timeouts::hello_timeout;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::observe::Discovery;
use crate::view::TargetChange;

/// The delay between two attempts to connect grows from the first value to the second.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// After a connection that lasted at least this long, the delay starts again at `MIN_BACKOFF`.
const STABLE_CONNECTION_TIME: Duration = Duration::from_secs(30);
/// How many requests may wait to be written.
const MAX_QUEUED_REQUESTS: usize = 32;
const RATE_LIMITED: &str = "the host sends too much data, so agtmux reads the data more slowly";
/// A batch with more pieces of evidence than this is decoded on another thread.
const MAX_QUICK_EVIDENCE: usize = 16;
/// Smaller differences between our clock and the host's clock are ignored, because they are mostly latency.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct Supervisor {
    pub(super) target: TargetName,
    pub(super) ssh: SshClient,
    pub(super) discovery: Discovery,
    pub(super) engine: EngineHandle,
    pub(super) clock: Clock,
    pub(super) link: TargetLink,
    pub(super) health: TargetHealthLog,
    /// How far our clock was ahead of the host's clock when this field was last set. `clock_steps` is the sum of all
    /// steps of our clock up to that time.
    pub(super) local_clock_ahead: SignedDuration,
    pub(super) clock_steps: SignedDuration,
}

impl Supervisor {
    /// Runs until its task is aborted, which also ends ssh.
    pub(super) async fn run(&mut self) {
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

    /// Reports that the host is not watched, because `run` panicked.
    pub(super) async fn on_panic(&mut self) {
        self.link.set_request_sender(None);
        self.ssh.remove_control_socket();
        let message = "agtmux failed to watch this host and tries again";
        self.on_failed(ConnectionEnd::new(TargetFault::Disconnected, message)).await;
        let (target, message) = (self.target.clone(), message.to_owned());
        self.engine.apply_topology(TopologyUpdate::TargetUnreachable { target, message }).await;
    }

    /// Connects to agtmux on the host, or to a shell if there is no usable agtmux. Returns `None` if another attempt
    /// should start at once.
    async fn connect_native_or_shell(&mut self) -> Option<ConnectionEnd> {
        let end = self.run_native().await;
        if !matches!(end.fault, TargetFault::NothingInstalled | TargetFault::VersionMismatch) {
            return Some(end);
        }
        // The native connection has ended.
        self.link.set_request_sender(None);
        self.update_status(|link| link.connected &= link.target.evidence != EvidenceKind::Native).await;
        // tmux is reachable through a shell even without a usable agtmux.
        match self.run_shell(&end).await? {
            // Report the version mismatch, which the user can fix.
            shell_end
                if shell_end.fault == TargetFault::NothingInstalled && end.fault == TargetFault::VersionMismatch =>
            {
                Some(end)
            }
            shell_end => Some(shell_end),
        }
    }

    /// Runs one native connection until it ends.
    async fn run_native(&mut self) -> ConnectionEnd {
        let (mut connection, hello) =
            match CollectConnection::open(&self.ssh, self.clock.clone(), hello_timeout(self.health.health())).await {
                Ok(opened) => opened,
                Err(end) => return end,
            };
        self.on_hello(&hello);
        let (request_sender, mut requests) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let mut request_sender = Some(request_sender);
        let mut pacer = HostPacer::new(Instant::now());
        loop {
            if let Some(resume_at) = pacer.resume_at() {
                tokio::select! {
                    () = sleep_until(resume_at) => pacer.resume(Instant::now()),
                    end = connection.only_write() => return end,
                    Some(request) = requests.recv(), if connection.has_room() => connection.send_request(request),
                }
                continue;
            }
            let calm_at = pacer.calm_at();
            let mut bytes = 0;
            let mut batch = tokio::select! {
                message = connection.next_message() => {
                    bytes = connection.take_uncounted_bytes();
                    pacer.charge_bytes(bytes, Instant::now());
                    match message {
                        Ok(Some(batch)) => batch,
                        Ok(None) => continue,
                        Err(end) => return end,
                    }
                }
                Some(request) = requests.recv(), if connection.has_room() => {
                    connection.send_request(request);
                    continue;
                }
                () = sleep_until(calm_at), if pacer.is_limited() => EvidenceBatch::default(),
            };
            drop_repetitions(&mut batch);
            let was_limited = pacer.is_limited();
            pacer.check_calm(Instant::now());
            pacer.charge(&batch, Instant::now());
            let decoder = EvidenceDecoder::new(self.target.clone(), self.clock_ahead(), self.clock.now());
            let Some(batch) = decode(decoder, batch, bytes).await else {
                return ConnectionEnd::new(TargetFault::Disconnected, "evidence of the host could not be read");
            };
            for chunk in (RemoteBatch { rate_limited: pacer.is_limited(), ..batch }).split() {
                self.engine.receive_remote(chunk).await;
            }
            // Requests are accepted after the first batch, when the state of the host is known.
            if let Some(request_sender) = request_sender.take() {
                self.on_connected(&hello, request_sender).await;
            }
            if pacer.is_limited() != was_limited {
                self.on_rate_limited(pacer.is_limited()).await;
            }
        }
    }

    /// Reports that agtmux now reads from the host more slowly than the host sends, or no longer does.
    async fn on_rate_limited(&self, is_limited: bool) {
        let (health, target, host) = (self.health.health(), &self.target, self.ssh.destination());
        match is_limited {
            true => tracing::warn!(%target, "{RATE_LIMITED}"),
            false => tracing::info!(%target, "the host is read at full speed again"),
        }
        self.update_status(|link| {
            let status = &mut link.target;
            status.health = if is_limited { TargetHealth::Degraded } else { health };
            status.message = is_limited.then(|| RATE_LIMITED.into());
            status.hint = is_limited.then(|| format!("ssh {host} agtmux watch   (shows what changes so often)"));
        })
        .await;
    }

    /// How far our clock is ahead of the host's clock. Includes the steps of our clock since the host sent its time.
    fn clock_ahead(&self) -> SignedDuration {
        self.local_clock_ahead + (self.clock.total_step() - self.clock_steps)
    }

    fn on_hello(&mut self, hello: &HostHello) {
        (self.local_clock_ahead, self.clock_steps) = (self.clock_ahead(), self.clock.total_step());
        let ahead = self.clock.now().duration_since(hello.now);
        let ahead = if ahead.abs() < CLOCK_TOLERANCE { SignedDuration::ZERO } else { ahead };
        // Small variations are ignored, because a new offset would shift all times of this host.
        if (ahead - self.local_clock_ahead).abs() >= CLOCK_TOLERANCE {
            self.local_clock_ahead = ahead;
        }
        self.health.record_success();
    }

    async fn on_connected(&mut self, hello: &HostHello, requests: mpsc::Sender<TargetRequest>) {
        let health = self.health.record_success();
        let version: String = hello.version.chars().take(32).collect();
        tracing::info!(target = %self.target, version, "connected");
        let (now, clock_ahead) = (self.clock.now(), self.clock_ahead());
        let publication = self.publish_status(|link| {
            (link.connected, link.attempts) = (true, link.attempts + 1);
            let target = &mut link.target;
            target.health = health;
            target.evidence = EvidenceKind::Native;
            target.agtmux_version = Some(sanitize::for_terminal(&version));
            target.since = now;
            target.clock_ahead_ms = i64::try_from(-clock_ahead.as_millis()).ok();
            (target.fault, target.message, target.hint) = (None, None, None);
        });
        let status = publication.await;
        // Set both without an await in between, so that an action sees both or neither.
        self.link.set_request_sender(Some(requests));
        self.link.set_status(status);
    }

    async fn on_failed(&mut self, end: ConnectionEnd) {
        let now = self.clock.now();
        let before = self.link.status();
        let health = self.health.record_failure(now);
        if before.connected || before.target.fault != Some(end.fault) {
            tracing::warn!(target = %self.target, fault = %end.fault, message = end.message, "unreachable");
        }
        let (target, message) = (self.target.clone(), end.message.clone());
        let update = match health {
            TargetHealth::Down => TopologyUpdate::TargetUnreachable { target, message },
            _ => {
                let outage = Some((OutageCode::TargetUnreachable, message));
                TopologyUpdate::TargetOutage { target, outage }
            }
        };
        self.engine.apply_topology(update).await;
        let hint = self.hint(&end);
        self.update_status(|link| {
            let target = &mut link.target;
            target.health = health;
            target.since = if link.connected || link.attempts == 0 { now } else { target.since };
            (target.fault, target.message, target.hint) = (Some(end.fault), Some(end.message), Some(hint));
            (link.connected, link.attempts) = (false, link.attempts + 1);
        })
        .await;
    }

    /// Publishes the new status, and then wakes the requests that wait for it.
    pub(super) async fn update_status(&self, change: impl FnOnce(&mut LinkStatus)) {
        let status = self.publish_status(change).await;
        self.link.set_status(status);
    }

    async fn publish_status(&self, change: impl FnOnce(&mut LinkStatus)) -> LinkStatus {
        let mut status = self.link.status();
        change(&mut status);
        self.engine.change_target(TargetChange::Put(Box::new(status.target.clone()))).await;
        status
    }

    fn hint(&self, end: &ConnectionEnd) -> String {
        let (target, host) = (&self.target, self.ssh.destination());
        match end.fault {
            TargetFault::Unreachable | TargetFault::NoResponse | TargetFault::Disconnected => {
                format!("agtmux target doctor {target}")
            }
            TargetFault::LoginRefused => format!("ssh {host} true   (must work without a prompt)"),
            TargetFault::VersionMismatch => self.update_hint(end, &format!("ssh {host} agtmux daemon restart")),
            TargetFault::NothingInstalled => {
                format!("agtmux target doctor {target}   (shows how to install agtmux on the host)")
            }
        }
    }

    /// Says which version to install, and where. `then` is the command to run after an installation on the host.
    pub(super) fn update_hint(&self, end: &ConnectionEnd, then: &str) -> String {
        match &end.newer_host {
            Some(newer) => format!("install {newer} on this machine, then: agtmux daemon restart"),
            None => format!("install agtmux {VERSION} on {}, then: {then}", self.ssh.destination()),
        }
    }
}

/// Decodes a batch. A large batch is decoded on another thread, because the redaction of its texts takes time. `None`
/// if the decoder panicked.
async fn decode(decoder: EvidenceDecoder, batch: EvidenceBatch, bytes: usize) -> Option<RemoteBatch> {
    if batch.evidence.len() <= MAX_QUICK_EVIDENCE && bytes <= MAX_QUICK_LINE_BYTES {
        return Some(decoder.batch(batch));
    }
    tokio::task::spawn_blocking(move || decoder.batch(batch)).await.ok()
}

/// The delay grows with each failure and has random jitter.
fn backoff(failures: u32) -> Duration {
    let grown = MIN_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(MAX_BACKOFF);
    let (random, _) = Uuid::new_v4().as_u64_pair();
    // Between 75 % and 125 %.
    grown.mul_f64(0.75 + (random % 1000) as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_and_is_limited() {
        for failures in 0..100 {
            let pause = backoff(failures);
            assert!(pause >= MIN_BACKOFF.mul_f64(0.75) && pause <= MAX_BACKOFF.mul_f64(1.25), "{failures}: {pause:?}");
        }
        assert!(backoff(10) > Duration::from_secs(20));
        // Three attempts finish within half a minute, so that the target is reported as down by then.
        let tries: Duration = (1..=2).map(backoff).sum();
        assert!(tries < Duration::from_secs(3));
    }
}
