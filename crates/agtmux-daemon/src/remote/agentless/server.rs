//! Drives the observer of one tmux server of an agentless host: finds out from listings which panes wrote.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_core::fleet::{PaneProcess, PaneRow};
use agtmux_core::ids::{PaneId, ServerKey};
use agtmux_core::text;
use agtmux_tmux::platform::ProcessSnapshot;
use agtmux_tmux::{ActivityListing, Capture, PaneActivity};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::observe::{DueCapture, ObserverContext, ObserverHint, ServerObserver, process_watch};

/// The delay before a screen is captured a second time. If the screen has not changed by then, it has settled.
const RECHECK_DELAY: Duration = Duration::from_millis(300);

pub(super) struct AgentlessServer {
    pub(super) observer: ServerObserver,
    /// When to probe this server again. Set only while the server hangs. A hung server is probed alone, because it
    /// would delay the listings of the other servers.
    pub(super) retry_at: Option<Instant>,
    panes: HashMap<u32, AgentlessPane>,
    /// The host's clock at the last listing.
    host_clock: Option<i64>,
    hints: mpsc::UnboundedReceiver<ObserverHint>,
}

#[derive(Default)]
struct AgentlessPane {
    pid: u32,
    dead: bool,
    activity: Option<PaneActivity>,
    sighting: Option<PaneProcess>,
    headless: bool,
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
    /// At least one pane may run another program than before.
    pub(super) processes: bool,
}

impl AgentlessServer {
    pub(super) fn new(context: Arc<ObserverContext>, key: ServerKey, socket: PathBuf) -> Self {
        let (to, hints) = mpsc::unbounded_channel();
        let observer = ServerObserver::new(context, key, socket, None, to);
        Self { observer, retry_at: None, panes: HashMap::new(), host_clock: None, hints }
    }

    pub(super) fn count(&self) -> usize {
        self.panes.len()
    }

    /// Applies a listing. Returns what changed, or `None` if the server is not supported.
    pub(super) async fn apply_listing(&mut self, listing: ActivityListing, now: Instant) -> Option<ListingChanges> {
        let listed = self.observer.accept_listing(listing.listing, now).await?;
        self.retry_at = None;
        if listed.is_new_generation {
            self.panes.clear();
        }
        let rows = listed.rows;
        let mut changes = ListingChanges { processes: listed.was_unreachable, ..ListingChanges::default() };
        let listed_at = std::mem::replace(&mut self.host_clock, listing.clock);
        self.panes.retain(|pane, known| rows.iter().any(|row| row.pane.0 == *pane && row.pid == known.pid));
        for row in &rows {
            self.apply_row(row, listing.activity.get(&row.pane.0), listed_at, now, &mut changes);
        }
        self.follow_agents(now);
        changes.rows = listed.has_changed.then_some(rows);
        Some(changes)
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
            changes.processes = true;
            AgentlessPane { pid: row.pid, ..AgentlessPane::default() }
        });
        changes.processes |= known.dead != dead;
        known.dead = dead;
        let Some(activity) = activity else { return };
        let before = known.activity.replace(activity.clone());
        let Some(before) = before else { return };
        changes.processes |= (&before.command, &before.cwd) != (&activity.command, &activity.cwd);
        if has_written(&before, activity, listed_at) {
            changes.wrote = true;
            known.rechecked = false;
            self.observer.screens.pane_wrote(pane, now);
            self.observer.screens.request_at(pane, now);
        }
    }

    /// Identifies the agents from the process table and reports the panes that changed. Returns whether a pane changed.
    pub(super) async fn apply_processes(
        &mut self,
        snapshot: &ProcessSnapshot,
        registry: &AgentRegistry,
        now: Instant,
    ) -> bool {
        if self.observer.reachable_generation().is_none() {
            return false;
        }
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
        let has_changed = !changed.is_empty();
        if has_changed {
            self.observer.report_processes(changed).await;
        }
        let headless = self.panes.iter().filter(|(_, known)| known.headless);
        let agent = |known: &AgentlessPane| Some(known.sighting.as_ref()?.agent.as_ref()?.process);
        let headless = headless.filter_map(|(pane, known)| Some((*pane, agent(known)?))).collect();
        self.observer.report_headless(headless).await;
        has_changed
    }

    /// Forgets everything judged with the old manifests.
    pub(super) fn apply_new_manifests(&mut self, now: Instant) {
        for known in self.panes.values_mut() {
            (known.sighting, known.last_screen) = (None, None);
        }
        self.observer.apply_new_manifests(now);
    }

    fn follow_agents(&mut self, now: Instant) {
        let found = self.panes.iter().filter_map(|(pane, known)| {
            let agent = known.sighting.as_ref().filter(|_| !known.dead)?.agent.as_ref()?;
            Some((*pane, &agent.agent_type, agent.process))
        });
        self.observer.follow_agents(found, now);
    }

    /// The captures that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        while let Ok(hint) = self.hints.try_recv() {
            if let ObserverHint::AgentSentEvent(pane) = hint {
                self.observer.screens.request_at(pane, now);
            }
        }
        self.observer.take_due(now)
    }

    /// Judges the captures and reports the results.
    pub(super) async fn apply_captures(
        &mut self,
        registry: &AgentRegistry,
        due: Vec<DueCapture>,
        captures: &[Capture],
        began: Timestamp,
    ) {
        let now = Instant::now();
        for request in due {
            let Some(capture) = self.observer.find_capture(&request, captures) else { continue };
            let known = self.panes.get_mut(&request.pane).filter(|known| known.pid == capture.pane_pid);
            let Some(known) = known else { continue };
            // There are no output hints, so a screen has settled when two captures are equal.
            let request = DueCapture { settled: known.is_stable(capture, now), ..request };
            let is_certain = self.observer.report_screen(registry, &request, capture, began).await;
            if !is_certain && !std::mem::replace(&mut known.rechecked, true) {
                self.observer.screens.request_at(request.pane, now + RECHECK_DELAY);
            }
        }
    }
}

impl AgentlessPane {
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

/// Whether the pane may have written since the previous listing. tmux reports the time of the last activity in whole
/// seconds, so output in the same second as the previous listing may have come after that listing.
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
