//! Limits how much work a remote host causes. A host that sends more than the limit is read more slowly. An honest host
//! then combines its changes, because each batch contains only the current values. A host that does not combine its
//! changes is slowed down by the full pipe.

use std::collections::BTreeSet;
use std::time::Duration;

use agtmux_api::host_protocol::{EvidenceBatch, HostEvidence};
use agtmux_core::ids::PaneId;
use tokio::time::Instant;

/// The work per second that a host may cause. A changed pane counts 1, a KiB of data counts 1, and an agent counts
/// `UNITS_PER_AGENT`.
pub(super) const UNITS_PER_SECOND: f64 = 1_000.0;
const UNITS_PER_AGENT: f64 = 10.0;
/// The work that a host may cause at once. It is enough for the first batch of a host with the maximum number of panes
/// and agents.
const BURST: f64 = 20_000.0;
/// The maximum overdraft. Work beyond this is not counted. A larger debt would mean a longer pause, and a host
/// disconnects a hub that does not read for a long time.
const MAX_DEBT: f64 = 10_000.0;
/// A limited host is no longer limited when it has regained this part of `BURST`.
const CALM_SHARE: f64 = 0.5;

#[derive(Debug)]
pub(super) struct HostPacer {
    balance: f64,
    updated_at: Instant,
    is_limited: bool,
}

impl HostPacer {
    pub(super) fn new(now: Instant) -> Self {
        Self { balance: BURST, updated_at: now, is_limited: false }
    }

    /// Counts the work of a batch.
    pub(super) fn charge(&mut self, batch: &EvidenceBatch, now: Instant) {
        self.spend(cost(batch), now);
    }

    /// Counts the size of a line, whatever it contains.
    pub(super) fn charge_bytes(&mut self, bytes: usize, now: Instant) {
        self.spend((bytes / 1024) as f64, now);
    }

    fn spend(&mut self, units: f64, now: Instant) {
        self.refill(now);
        self.balance = (self.balance - units).max(-MAX_DEBT);
        self.is_limited |= self.balance < 0.0;
    }

    /// When the host may be read again. `None` if it may be read now.
    pub(super) fn resume_at(&self) -> Option<Instant> {
        (self.balance < 0.0).then(|| self.reaches(0.0))
    }

    /// Notes that the pause is over.
    pub(super) fn resume(&mut self, now: Instant) {
        self.refill(now);
        // Rounding must not cause another pause.
        self.balance = self.balance.max(0.0);
    }

    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// When a limited host counts as calm if it sends nothing more.
    pub(super) fn calm_at(&self) -> Instant {
        self.reaches(BURST * CALM_SHARE)
    }

    /// Ends the limit if the host is calm now.
    pub(super) fn check_calm(&mut self, now: Instant) {
        self.is_limited &= self.calm_at() > now;
    }

    fn reaches(&self, balance: f64) -> Instant {
        self.updated_at + Duration::from_secs_f64((balance - self.balance).max(0.0) / UNITS_PER_SECOND)
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.updated_at).as_secs_f64();
        self.balance = (self.balance + elapsed * UNITS_PER_SECOND).min(BURST);
        self.updated_at = now;
    }
}

fn cost(batch: &EvidenceBatch) -> f64 {
    let of = |evidence: &HostEvidence| match evidence {
        HostEvidence::Panes { panes, .. } => {
            panes.len() as f64 + panes.iter().filter(|pane| pane.agent.is_some()).count() as f64 * UNITS_PER_AGENT
        }
        HostEvidence::Agent(_) => UNITS_PER_AGENT,
        _ => 1.0,
    };
    batch.evidence.iter().map(of).sum()
}

/// Keeps only the last report about each server, pane and agent. An honest host reports each of them once per batch. A
/// hostile host could otherwise change a state thousands of times with one batch.
pub(super) fn drop_repetitions(batch: &mut EvidenceBatch) {
    let (mut servers, mut agents) = (BTreeSet::<String>::new(), BTreeSet::<(String, PaneId)>::new());
    let mut keep = |evidence: &mut HostEvidence| match evidence {
        HostEvidence::Panes { server, panes, .. } => {
            let mut known = BTreeSet::new();
            panes.reverse();
            panes.retain(|pane| known.insert(pane.pane));
            panes.reverse();
            servers.insert(server.name.clone())
        }
        HostEvidence::Agent(agent) => agents.insert((agent.server.name.clone(), agent.pane)),
        _ => true,
    };
    batch.evidence.reverse();
    batch.evidence.retain_mut(|evidence| keep(evidence));
    batch.evidence.reverse();
}

#[cfg(test)]
mod tests {
    use agtmux_api::host_protocol::{HostPane, HostServer};
    use agtmux_core::ids::WindowId;

    use super::*;

    fn server(name: &str) -> HostServer {
        HostServer { name: name.into(), pid: 1, start_time: 1 }
    }

    fn pane(id: u32, title: &str) -> HostPane {
        HostPane {
            pane: PaneId(id),
            pane_index: 0,
            window: WindowId(0),
            window_name: String::new(),
            placements: Vec::new(),
            pid: 7,
            tty: String::new(),
            title: title.into(),
            dead: false,
            exit_status: None,
            exit_signal: None,
            command: None,
            cwd: None,
            agent: None,
        }
    }

    fn changed(server_name: &str, panes: Vec<HostPane>) -> HostEvidence {
        HostEvidence::Panes { server: server(server_name), complete: false, panes }
    }

    fn batch_of(panes: u32) -> EvidenceBatch {
        let panes = (0..panes).map(|id| pane(id, "t")).collect();
        EvidenceBatch { full: false, evidence: vec![changed("default", panes)] }
    }

    /// Sends batches for the duration `time`, as fast as the pacer allows. Returns how many panes the pacer accepted.
    fn accepted(pacer: &mut HostPacer, mut now: Instant, batch: &EvidenceBatch, time: Duration) -> f64 {
        let end = now + time;
        let mut panes = 0.0;
        while now < end {
            match pacer.resume_at() {
                Some(at) => {
                    now = at;
                    pacer.resume(now);
                }
                None => {
                    pacer.charge(batch, now);
                    panes += cost(batch);
                }
            }
        }
        panes
    }

    #[test]
    fn a_noisy_host_is_read_at_a_limited_rate() {
        let now = Instant::now();
        let mut pacer = HostPacer::new(now);
        let panes = accepted(&mut pacer, now, &batch_of(5_000), Duration::from_secs(600));
        assert!((600_000.0..650_000.0).contains(&panes), "{panes} panes in 600 s");
        assert!(pacer.is_limited());
    }

    #[test]
    fn the_first_batch_and_usual_changes_are_never_delayed() {
        let now = Instant::now();
        let mut pacer = HostPacer::new(now);
        pacer.charge(&batch_of(5_000), now);
        for second in 0..3600 {
            pacer.charge(&batch_of(900), now + Duration::from_secs(second));
            assert_eq!(pacer.resume_at(), None, "after {second} s");
        }
        assert!(!pacer.is_limited());
    }

    #[test]
    fn a_pause_has_a_limit_and_a_quiet_host_becomes_calm() {
        let now = Instant::now();
        let mut pacer = HostPacer::new(now);
        pacer.charge(&batch_of(1_000_000), now);
        let resume_at = pacer.resume_at().expect("a pause");
        assert!(resume_at <= now + Duration::from_secs(10));
        pacer.resume(resume_at);
        assert_eq!(pacer.resume_at(), None);
        pacer.check_calm(resume_at);
        assert!(pacer.is_limited());
        pacer.check_calm(pacer.calm_at());
        assert!(!pacer.is_limited());
    }

    #[test]
    fn large_lines_are_counted_whatever_they_contain() {
        let now = Instant::now();
        let mut pacer = HostPacer::new(now);
        pacer.charge_bytes(16 << 20, now);
        assert_eq!(pacer.resume_at(), None, "one large line is not delayed");
        pacer.charge_bytes(16 << 20, now);
        assert!(pacer.is_limited() && pacer.resume_at().is_some());
    }

    #[test]
    fn only_the_last_of_repeated_values_is_kept() {
        let gone = HostEvidence::ServerGone { server: "other".into() };
        let evidence = vec![
            changed("default", vec![pane(1, "old")]),
            gone.clone(),
            changed("default", vec![pane(1, "a"), pane(2, "b"), pane(1, "c")]),
        ];
        let mut batch = EvidenceBatch { full: false, evidence };
        drop_repetitions(&mut batch);
        assert_eq!(batch.evidence, [gone, changed("default", vec![pane(2, "b"), pane(1, "c")])]);
    }
}
