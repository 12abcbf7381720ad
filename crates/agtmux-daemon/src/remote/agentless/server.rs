//! One tmux server of an agentless host: its last known panes and agents.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_core::fleet::{PaneProcess, PaneRow};
use agtmux_core::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::text;
use agtmux_tmux::platform::ProcessSnapshot;
use agtmux_tmux::{ActivityListing, Capture, PaneActivity};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::observe::recheck_hints::RecheckSubscription;
use crate::observe::screen_judge::{ScreenEvidence, ScreenJudge};
use crate::observe::screen_schedule::{DueCapture, ScreenSchedule};
use crate::observe::signal_router::ObserverHint;
use crate::observe::{convert, process_watch};

/// The delay before a screen is captured a second time. A screen that is unchanged then has settled.
const RECHECK_DELAY: Duration = Duration::from_millis(300);

pub(super) struct AgentlessServer {
    pub(super) key: ServerKey,
    pub(super) socket: PathBuf,
    pub(super) generation: Option<Generation>,
    pub(super) version: String,
    pub(super) failures: u32,
    /// The server did not answer the last request.
    pub(super) silent: bool,
    /// When to probe a hung server. It is probed separately, because it would delay the others.
    pub(super) retry_at: Option<Instant>,
    panes: HashMap<u32, AgentlessPane>,
    screens: ScreenSchedule,
    judge: ScreenJudge,
    /// A digest of the last listing, and the host's clock at that time.
    listed_digest: Option<u64>,
    host_clock: Option<i64>,
    hints: mpsc::UnboundedReceiver<ObserverHint>,
    _subscription: RecheckSubscription,
}

struct AgentlessPane {
    pid: u32,
    dead: bool,
    activity: Option<PaneActivity>,
    sighting: Option<PaneProcess>,
    headless: bool,
    headless_reported: Option<ProcessRef>,
    /// A digest of the last captured screen, and when it first appeared.
    last_screen: Option<(u64, Instant)>,
    rechecked: bool,
}

/// What a listing changed.
#[derive(Debug, Default)]
pub(super) struct ListingChanges {
    /// The rows, if they differ from the last listing.
    pub(super) rows: Option<Vec<PaneRow>>,
    pub(super) wrote: bool,
    /// Another program may run in a pane.
    pub(super) processes_changed: bool,
}

impl AgentlessServer {
    pub(super) fn new(
        key: ServerKey,
        socket: PathBuf,
        hints: mpsc::UnboundedReceiver<ObserverHint>,
        subscription: RecheckSubscription,
    ) -> Self {
        Self {
            key,
            socket,
            generation: None,
            version: String::new(),
            failures: 0,
            silent: false,
            retry_at: None,
            panes: HashMap::new(),
            screens: ScreenSchedule::default(),
            judge: ScreenJudge::default(),
            listed_digest: None,
            host_clock: None,
            hints,
            _subscription: subscription,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.panes.len()
    }

    /// Applies a listing and returns what changed.
    pub(super) fn apply_listing(&mut self, listing: ActivityListing, now: Instant) -> ListingChanges {
        let generation = convert::generation(&listing.listing.server);
        if self.generation.replace(generation) != Some(generation) {
            // A new server generation: its pane ids start again and mean other panes.
            self.panes.clear();
            self.screens = ScreenSchedule::default();
            self.judge = ScreenJudge::default();
            self.listed_digest = None;
        }
        self.version.clone_from(&listing.listing.server.version);
        let (mut hasher, was_silent) = (DefaultHasher::new(), std::mem::take(&mut self.silent));
        (self.failures, self.retry_at) = (0, None);
        listing.listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        let same = self.listed_digest.replace(digest) == Some(digest) && !was_silent;
        let mut changes = ListingChanges { processes_changed: was_silent, ..ListingChanges::default() };
        let listed_at = std::mem::replace(&mut self.host_clock, listing.clock);
        let rows: Vec<PaneRow> = listing.listing.rows.into_iter().map(convert::pane_row).collect();
        self.panes.retain(|pane, known| rows.iter().any(|row| row.pane.0 == *pane && row.pid == known.pid));
        for row in &rows {
            self.apply_row(row, listing.activity.get(&row.pane.0), listed_at, now, &mut changes);
        }
        self.follow_agents(now);
        if was_silent {
            // No screen was captured while the server did not answer.
            self.screens.request_all(now);
        }
        changes.rows = (!same).then_some(rows);
        changes
    }

    fn apply_row(
        &mut self,
        row: &PaneRow,
        activity: Option<&PaneActivity>,
        listed_at: Option<i64>,
        now: Instant,
        changes: &mut ListingChanges,
    ) {
        let (pane, dead) = (row.pane.0, row.dead.is_some());
        let known = self.panes.entry(pane).or_insert_with(|| {
            changes.processes_changed = true;
            AgentlessPane::new(row.pid)
        });
        changes.processes_changed |= known.dead != dead;
        known.dead = dead;
        let Some(activity) = activity else { return };
        let before = known.activity.replace(activity.clone());
        let Some(before) = before else { return };
        changes.processes_changed |= (&before.command, &before.cwd) != (&activity.command, &activity.cwd);
        if has_written(&before, activity, listed_at) {
            changes.wrote = true;
            known.rechecked = false;
            self.screens.pane_wrote(pane, now);
            self.screens.request_at(pane, now);
        }
    }

    /// Identifies the agents from the process table. Returns the panes that changed.
    pub(super) fn apply_processes(
        &mut self,
        snapshot: &ProcessSnapshot,
        registry: &AgentRegistry,
        now: Instant,
    ) -> Vec<PaneProcess> {
        let mut changed = Vec::new();
        for (pane, known) in self.panes.iter_mut().filter(|(_, known)| !known.dead && known.pid != 0) {
            let cwd =
                known.activity.as_ref().map(|activity| text::from_bytes(&activity.cwd)).filter(|cwd| !cwd.is_empty());
            let tree = snapshot.tree(known.pid);
            let (sighting, headless) =
                process_watch::sighting(registry, (PaneId(*pane), known.pid), tree.as_ref(), |_| cwd.clone());
            known.headless = headless;
            if known.sighting.as_ref() != Some(&sighting) {
                known.sighting = Some(sighting.clone());
                changed.push(sighting);
            }
        }
        self.follow_agents(now);
        changed
    }

    /// Evidence for headless agents that were not reported yet.
    pub(super) fn take_new_headless(&mut self, began: Timestamp) -> Vec<ScreenEvidence> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut evidence = Vec::new();
        for (pane, known) in &mut self.panes {
            let process = known.sighting.as_ref().and_then(|s| s.agent.as_ref()).map(|agent| agent.process);
            let Some(process) = process.filter(|_| known.headless) else { continue };
            if known.headless_reported.replace(process) != Some(process) {
                evidence.push(ScreenEvidence::headless((self.key.clone(), generation), PaneId(*pane), process, began));
            }
        }
        evidence
    }

    /// Forgets everything judged with the old manifests.
    pub(super) fn apply_new_manifests(&mut self, now: Instant) {
        self.judge = ScreenJudge::default();
        for known in self.panes.values_mut() {
            (known.sighting, known.headless_reported, known.last_screen) = (None, None, None);
        }
        self.screens.request_all(now);
    }

    fn follow_agents(&mut self, now: Instant) {
        let found = self.panes.iter().filter_map(|(pane, known)| {
            let agent = known.sighting.as_ref().filter(|_| !known.dead)?.agent.as_ref()?;
            Some((*pane, &agent.agent_type, agent.process))
        });
        let found: Vec<(u32, &AgentType, ProcessRef)> = found.collect();
        self.screens.follow(found.into_iter(), now);
        self.judge.retain(|pane| self.screens.contains(pane));
    }

    /// The captures that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        while let Ok(hint) = self.hints.try_recv() {
            if let ObserverHint::AgentSentEvent(pane) = hint {
                self.screens.request_at(pane, now);
            }
        }
        if self.silent || self.generation.is_none() { Vec::new() } else { self.screens.take_due(now) }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().filter(|_| !self.silent && self.generation.is_some())
    }

    /// Judges the captures.
    pub(super) fn judge(
        &mut self,
        registry: &AgentRegistry,
        due: Vec<DueCapture>,
        captures: &[Capture],
        began: Timestamp,
        now: Instant,
    ) -> Vec<ScreenEvidence> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut all = Vec::new();
        for request in due {
            let is_of_pane = |c: &&Capture| c.pane == request.pane && c.server_pid == generation.pid;
            let known = self.panes.get_mut(&request.pane).filter(|known| !known.dead);
            let capture = captures.iter().find(is_of_pane);
            let (Some(known), Some(capture)) = (known, capture) else {
                self.screens.capture_failed(request.pane, now);
                continue;
            };
            if capture.pane_pid != known.pid {
                continue;
            }
            // There are no output hints, so a screen has settled when two captures are equal.
            let request = DueCapture { settled: known.is_stable(capture, now), ..request };
            let evidence = self.judge.judge(registry, (self.key.clone(), generation), &request, capture, began);
            let is_sure = request.settled
                || (!evidence.observations.is_empty()
                    && evidence.observations.iter().all(|observation| observation.settled));
            if !is_sure && !std::mem::replace(&mut known.rechecked, true) {
                self.screens.request_at(request.pane, now + RECHECK_DELAY);
            }
            all.push(evidence);
        }
        all
    }
}

impl AgentlessPane {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            dead: false,
            activity: None,
            sighting: None,
            headless: false,
            headless_reported: None,
            last_screen: None,
            rechecked: false,
        }
    }

    fn is_stable(&mut self, capture: &Capture, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        (&capture.screen, &capture.title).hash(&mut hasher);
        let digest = hasher.finish();
        match self.last_screen {
            Some((before, since)) if before == digest => now >= since + RECHECK_DELAY / 2,
            _ => {
                self.last_screen = Some((digest, now));
                false
            }
        }
    }
}

/// Whether the pane may have written since the previous listing. tmux reports activity in whole seconds, so output in
/// the second of that listing may have come after it.
fn has_written(before: &PaneActivity, activity: &PaneActivity, listed_at: Option<i64>) -> bool {
    (before.window_activity, before.cursor, before.history_bytes)
        != (activity.window_activity, activity.cursor, activity.history_bytes)
        || listed_at.is_some_and(|at| activity.window_activity >= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(window_activity: i64, cursor: (u32, u32)) -> PaneActivity {
        PaneActivity { window_activity, cursor, history_bytes: 0, command: Vec::new(), cwd: Vec::new() }
    }

    #[test]
    fn a_pane_that_may_have_written_counts_as_changed() {
        let before = activity(100, (1, 1));
        assert!(has_written(&before, &activity(101, (1, 1)), Some(100)));
        assert!(has_written(&before, &activity(100, (2, 1)), Some(105)));
        assert!(
            has_written(&before, &activity(100, (1, 1)), Some(100)),
            "the output may have come after the listing, in the same second"
        );
        assert!(!has_written(&before, &activity(100, (1, 1)), Some(101)));
    }
}
