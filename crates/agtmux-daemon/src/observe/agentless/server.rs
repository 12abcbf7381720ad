//! One tmux server of such a host: what was last seen of it, and what that says.

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

/// What is drawn is looked at again after this: what shows the same then has settled.
const RECHECK_DELAY: Duration = Duration::from_millis(300);

pub(super) struct AgentlessServer {
    pub(super) key: ServerKey,
    pub(super) socket: PathBuf,
    pub(super) generation: Option<Generation>,
    pub(super) version: String,
    pub(super) failures: u32,
    /// It did not answer the last time.
    pub(super) silent: bool,
    /// One that hangs is asked apart from the others, and not before this.
    pub(super) retry_at: Option<Instant>,
    panes: HashMap<u32, AgentlessPane>,
    screens: ScreenSchedule,
    judge: ScreenJudge,
    /// What was last listed, and what the clock there showed.
    listed_digest: Option<u64>,
    host_clock: Option<i64>,
    notices: mpsc::UnboundedReceiver<ObserverHint>,
    _subscription: RecheckSubscription,
}

struct AgentlessPane {
    pid: u32,
    dead: bool,
    pulse: Option<PaneActivity>,
    sighting: Option<PaneProcess>,
    headless: bool,
    headless_reported: Option<ProcessRef>,
    /// A digest of what it showed, and when that was.
    last_screen: Option<(u64, Instant)>,
    rechecked: bool,
}

/// What a listing says that is new.
#[derive(Debug, Default)]
pub(super) struct ListingChanges {
    /// The rows, if they are not those of the last one.
    pub(super) rows: Option<Vec<PaneRow>>,
    pub(super) wrote: bool,
    /// Something else may live in a pane.
    pub(super) processes_changed: bool,
}

impl AgentlessServer {
    pub(super) fn new(
        key: ServerKey,
        socket: PathBuf,
        notices: mpsc::UnboundedReceiver<ObserverHint>,
        post: RecheckSubscription,
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
            notices,
            _subscription: post,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.panes.len()
    }

    /// Takes in a listing, and says what is new in it.
    pub(super) fn apply_listing(&mut self, seen: ActivityListing, now: Instant) -> ListingChanges {
        let generation = convert::generation(&seen.listing.server);
        if self.generation.replace(generation) != Some(generation) {
            // Another life of the server: what has the same number is not the same.
            self.panes.clear();
            self.screens = ScreenSchedule::default();
            self.judge = ScreenJudge::default();
            self.listed_digest = None;
        }
        self.version.clone_from(&seen.listing.server.version);
        let (mut hasher, was_silent) = (DefaultHasher::new(), std::mem::take(&mut self.silent));
        (self.failures, self.retry_at) = (0, None);
        seen.listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        let same = self.listed_digest.replace(digest) == Some(digest) && !was_silent;
        let mut news = ListingChanges { processes_changed: was_silent, ..ListingChanges::default() };
        let listed_at = std::mem::replace(&mut self.host_clock, seen.clock);
        let rows: Vec<PaneRow> = seen.listing.rows.into_iter().map(convert::pane_row).collect();
        self.panes.retain(|pane, known| rows.iter().any(|row| row.pane.0 == *pane && row.pid == known.pid));
        for row in &rows {
            self.apply_row(row, seen.activity.get(&row.pane.0), listed_at, now, &mut news);
        }
        self.follow_agents(now);
        if was_silent {
            // Nobody looked in the meantime.
            self.screens.request_all(now);
        }
        news.rows = (!same).then_some(rows);
        news
    }

    fn apply_row(
        &mut self,
        row: &PaneRow,
        pulse: Option<&PaneActivity>,
        listed_at: Option<i64>,
        now: Instant,
        news: &mut ListingChanges,
    ) {
        let (pane, dead) = (row.pane.0, row.dead.is_some());
        let known = self.panes.entry(pane).or_insert_with(|| {
            news.processes_changed = true;
            AgentlessPane::new(row.pid)
        });
        news.processes_changed |= known.dead != dead;
        known.dead = dead;
        let Some(pulse) = pulse else { return };
        let before = known.pulse.replace(pulse.clone());
        let Some(before) = before else { return };
        news.processes_changed |= (&before.command, &before.cwd) != (&pulse.command, &pulse.cwd);
        if has_written(&before, pulse, listed_at) {
            news.wrote = true;
            known.rechecked = false;
            self.screens.pane_wrote(pane, now);
            self.screens.request_at(pane, now);
        }
    }

    /// Who lives where, as the process table shows it. Gives back what is different.
    pub(super) fn apply_processes(
        &mut self,
        snapshot: &ProcessSnapshot,
        registry: &AgentRegistry,
        now: Instant,
    ) -> Vec<PaneProcess> {
        let mut changed = Vec::new();
        for (pane, known) in self.panes.iter_mut().filter(|(_, known)| !known.dead && known.pid != 0) {
            let cwd = known.pulse.as_ref().map(|pulse| text::from_bytes(&pulse.cwd)).filter(|cwd| !cwd.is_empty());
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

    /// Those who were started for one turn and have not been told of.
    pub(super) fn take_new_headless(&mut self, began: Timestamp) -> Vec<ScreenEvidence> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut told = Vec::new();
        for (pane, known) in &mut self.panes {
            let process = known.sighting.as_ref().and_then(|s| s.agent.as_ref()).map(|agent| agent.process);
            let Some(process) = process.filter(|_| known.headless) else { continue };
            if known.headless_reported.replace(process) != Some(process) {
                told.push(ScreenEvidence::headless((self.key.clone(), generation), PaneId(*pane), process, began));
            }
        }
        told
    }

    /// Other agents are known, or by other signs.
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

    /// The panes that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        while let Ok(notice) = self.notices.try_recv() {
            if let ObserverHint::AgentSpoke(pane) = notice {
                self.screens.request_at(pane, now);
            }
        }
        if self.silent || self.generation.is_none() { Vec::new() } else { self.screens.take_due(now) }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().filter(|_| !self.silent && self.generation.is_some())
    }

    /// What the looks brought.
    pub(super) fn judge(
        &mut self,
        registry: &AgentRegistry,
        looks: Vec<DueCapture>,
        captures: &[Capture],
        began: Timestamp,
        now: Instant,
    ) -> Vec<ScreenEvidence> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut all = Vec::new();
        for look in looks {
            let is_it = |c: &&Capture| c.pane == look.pane && c.server_pid == generation.pid;
            let known = self.panes.get_mut(&look.pane).filter(|known| !known.dead);
            let capture = captures.iter().find(is_it);
            let (Some(known), Some(capture)) = (known, capture) else {
                self.screens.capture_failed(look.pane, now);
                continue;
            };
            if capture.pane_pid != known.pid {
                continue;
            }
            // Nobody tells when it writes: only a screen that shows the same twice has settled.
            let look = DueCapture { settled: known.is_stable(capture, now), ..look };
            let seen = self.judge.judge(registry, (self.key.clone(), generation), &look, capture, began);
            let is_sure =
                look.settled || (!seen.observations.is_empty() && seen.observations.iter().all(|sight| sight.settled));
            if !is_sure && !std::mem::replace(&mut known.rechecked, true) {
                self.screens.request_at(look.pane, now + RECHECK_DELAY);
            }
            all.push(seen);
        }
        all
    }
}

impl AgentlessPane {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            dead: false,
            pulse: None,
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

/// Whether the pane may have written since the listing before. Activity has whole seconds: in the second of that listing it
/// may have been written to after it.
fn has_written(before: &PaneActivity, pulse: &PaneActivity, listed_at: Option<i64>) -> bool {
    (before.window_activity, before.cursor, before.history_bytes)
        != (pulse.window_activity, pulse.cursor, pulse.history_bytes)
        || listed_at.is_some_and(|at| pulse.window_activity >= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(activity: i64, cursor: (u32, u32)) -> PaneActivity {
        PaneActivity { window_activity: activity, cursor, history_bytes: 0, command: Vec::new(), cwd: Vec::new() }
    }

    #[test]
    fn a_pane_that_may_have_written_is_looked_at() {
        let before = pulse(100, (1, 1));
        assert!(has_written(&before, &pulse(101, (1, 1)), Some(100)));
        assert!(has_written(&before, &pulse(100, (2, 1)), Some(105)));
        assert!(has_written(&before, &pulse(100, (1, 1)), Some(100)), "perhaps after the listing, in the same second");
        assert!(!has_written(&before, &pulse(100, (1, 1)), Some(101)));
    }
}
