//! Keeps in touch with one host: connects, listens, notices when it is gone, and comes back.

use std::time::Duration;

use agtmux_api::VERSION;
use agtmux_api::collect::HostHello;
use agtmux_api::wire::EvidenceKind;
use agtmux_core::fleet::{Observation, OutageCode};
use agtmux_core::ids::TargetName;
use agtmux_core::sanitize;
use agtmux_core::target::{Fault, HealthLog, TargetHealth};
use agtmux_tmux::ssh::Ssh;
use jiff::SignedDuration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::channel::{Channel, Said};
use super::end::End;
use super::link::Link;
use crate::clock::Clock;
use crate::engine::{EngineHandle, Received};
use crate::observe::Discovery;
use crate::patience::hello_within;

/// Between attempts, and how far it grows.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that lasted so long was a good one: the next attempt comes soon.
const WAS_GOOD: Duration = Duration::from_secs(30);
/// Requests that may wait to be written.
const MOST_WAITING: usize = 32;
/// Clocks that differ by less are taken for the same: most of it is the way.
const SAME_CLOCK: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct Supervisor {
    pub(super) target: TargetName,
    pub(super) ssh: Ssh,
    pub(super) discovery: Discovery,
    pub(super) engine: EngineHandle,
    pub(super) clock: Clock,
    pub(super) link: Link,
    pub(super) health: HealthLog,
    /// How much our clock is ahead of the one there.
    ahead: SignedDuration,
}

impl Supervisor {
    pub(super) fn new(
        target: TargetName,
        ssh: Ssh,
        discovery: Discovery,
        engine: EngineHandle,
        clock: Clock,
        link: Link,
    ) -> Self {
        Self { target, ssh, discovery, engine, clock, link, health: HealthLog::default(), ahead: SignedDuration::ZERO }
    }

    /// Runs until it is aborted. Its ssh ends with it.
    pub(super) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let Some(end) = self.one_way_or_the_other().await else { continue };
            self.link.open(None);
            self.ssh.forget_connection();
            failures = if began.elapsed() >= WAS_GOOD { 1 } else { failures.saturating_add(1) };
            self.failed(end).await;
            tokio::select! {
                () = sleep(pause(failures)) => {}
                () = self.link.nudged() => {}
            }
        }
    }

    /// Returns when the connection has ended, or with nothing when another way is to be tried at once.
    async fn one_way_or_the_other(&mut self) -> Option<End> {
        let end = self.converse().await;
        if !matches!(end.fault, Fault::NothingThere | Fault::Mismatch) {
            return Some(end);
        }
        // Nobody listens there any more.
        self.link.open(None);
        self.link.change(|status| status.connected &= status.evidence != EvidenceKind::Native);
        // Without an agtmux that understands us its tmux can still be asked.
        match self.watch_by_shell(&end).await? {
            // What can be mended is told.
            nothing if nothing.fault == Fault::NothingThere && end.fault == Fault::Mismatch => Some(end),
            otherwise => Some(otherwise),
        }
    }

    /// One connection, from its beginning to its end.
    async fn converse(&mut self) -> End {
        let (mut channel, hello) = match Channel::open(&self.ssh, self.clock, hello_within(self.health.health())).await
        {
            Ok(opened) => opened,
            Err(end) => return end,
        };
        self.greeted(&hello);
        let (asks, mut asked) = mpsc::channel(MOST_WAITING);
        let mut asks = Some(asks);
        loop {
            let heard = tokio::select! {
                heard = channel.hear() => heard,
                Some(asked) = asked.recv(), if channel.has_room() => {
                    channel.ask(asked);
                    continue;
                }
            };
            match heard {
                Ok(Said::Batch(batch)) => {
                    let received = Received { target: self.target.clone(), batch, ahead: self.ahead };
                    self.engine.receive(received).await;
                    // Only now it can be asked: what it has is known.
                    if let Some(asks) = asks.take() {
                        self.link.open(Some(asks));
                        self.connected(&hello);
                    }
                }
                Ok(Said::Nothing) => {}
                Err(end) => return end,
            }
        }
    }

    fn greeted(&mut self, hello: &HostHello) {
        let ahead = self.clock.now().duration_since(hello.now);
        let ahead = if ahead.abs() < SAME_CLOCK { SignedDuration::ZERO } else { ahead };
        // Measured anew each time, it would make everything that is known a little newer or older.
        if (ahead - self.ahead).abs() >= SAME_CLOCK {
            self.ahead = ahead;
        }
        self.health.succeeded();
    }

    fn connected(&mut self, hello: &HostHello) {
        let health = self.health.succeeded();
        let version: String = hello.version.chars().take(32).collect();
        tracing::info!(target = %self.target, version, "connected");
        let (now, behind) = (self.clock.now(), self.ahead);
        self.link.change(|status| {
            status.health = health;
            status.connected = true;
            status.evidence = EvidenceKind::Native;
            status.version = Some(sanitize::for_terminal(&version));
            status.since = now;
            status.clock_ahead_ms = i64::try_from(-behind.as_millis()).ok();
            (status.fault, status.message, status.hint) = (None, None, None);
            status.tries += 1;
        });
    }

    async fn failed(&mut self, end: End) {
        let now = self.clock.now();
        let before = self.link.status();
        let health = self.health.failed(now);
        if before.connected || before.fault != Some(end.fault) {
            tracing::warn!(target = %self.target, fault = %end.fault, message = end.message, "out of reach");
        }
        let (target, message) = (self.target.clone(), end.message.clone());
        let observation = match health {
            TargetHealth::Down => Observation::TargetLost { target, message },
            _ => {
                let outage = Some((OutageCode::TargetUnreachable, message));
                Observation::TargetOutage { target, outage }
            }
        };
        self.engine.observe(observation).await;
        let hint = self.hint(end.fault);
        self.link.change(|status| {
            status.health = health;
            status.since = if status.connected || status.tries == 0 { now } else { status.since };
            status.connected = false;
            status.fault = Some(end.fault);
            status.message = Some(end.message);
            status.hint = Some(hint);
            status.tries += 1;
        });
    }

    fn hint(&self, fault: Fault) -> String {
        let (target, host) = (&self.target, self.ssh.destination());
        match fault {
            Fault::Unreachable | Fault::Silent | Fault::Cut => format!("agtmux target doctor {target}"),
            Fault::Refused => format!("ssh {host} true   (it has to work without a question)"),
            Fault::Mismatch => format!("install agtmux {VERSION} on {host}, then: ssh {host} agtmux daemon restart"),
            Fault::NothingThere => format!("agtmux target doctor {target}   (it tells how to install agtmux there)"),
        }
    }
}

/// Longer with each failure, and never the same for two hosts.
fn pause(failures: u32) -> Duration {
    let grown = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE);
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
            let pause = pause(failures);
            assert!(
                pause >= FIRST_PAUSE.mul_f64(0.75) && pause <= LONGEST_PAUSE.mul_f64(1.25),
                "{failures}: {pause:?}"
            );
        }
        assert!(pause(10) > Duration::from_secs(20));
        // Three attempts, each within its time, are over within half a minute: it is known to be down by then.
        let tries: Duration = (1..=2).map(pause).sum();
        assert!(tries < Duration::from_secs(3));
    }
}
