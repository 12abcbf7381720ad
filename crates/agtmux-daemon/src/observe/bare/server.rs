//! One tmux server of such a host: what was last seen of it, and what that says.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::Registry;
use agtmux_core::fleet::{PaneRow, ProcessSighting};
use agtmux_core::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::text;
use agtmux_tmux::platform::Snapshot;
use agtmux_tmux::{Capture, Pulse, PulseListing};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::observe::lookout::Post;
use crate::observe::screens::{Look, Screens};
use crate::observe::seen::{Eyes, Seen};
use crate::observe::switchboard::Notice;
use crate::observe::{convert, processes};

/// What is drawn is looked at again after this: what shows the same then has settled.
const LOOK_TWICE: Duration = Duration::from_millis(300);

pub(super) struct Server {
    pub(super) key: ServerKey,
    pub(super) socket: PathBuf,
    pub(super) generation: Option<Generation>,
    pub(super) version: String,
    pub(super) stumbles: u32,
    /// It did not answer the last time.
    pub(super) silent: bool,
    /// One that hangs is asked apart from the others, and not before this.
    pub(super) resting_until: Option<Instant>,
    panes: HashMap<u32, Pane>,
    screens: Screens,
    eyes: Eyes,
    /// What was last listed, and what the clock there showed.
    listed: Option<u64>,
    clock: Option<i64>,
    notices: mpsc::UnboundedReceiver<Notice>,
    _post: Post,
}

struct Pane {
    pid: u32,
    dead: bool,
    pulse: Option<Pulse>,
    sighting: Option<ProcessSighting>,
    headless: bool,
    headless_told: Option<ProcessRef>,
    /// A digest of what it showed, and when that was.
    shown: Option<(u64, Instant)>,
    looked_twice: bool,
}

/// What a listing says that is new.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The rows, if they are not those of the last one.
    pub(super) rows: Option<Vec<PaneRow>>,
    pub(super) wrote: bool,
    /// Something else may live in a pane.
    pub(super) disturbed: bool,
}

impl Server {
    pub(super) fn new(key: ServerKey, socket: PathBuf, notices: mpsc::UnboundedReceiver<Notice>, post: Post) -> Self {
        Self {
            key,
            socket,
            generation: None,
            version: String::new(),
            stumbles: 0,
            silent: false,
            resting_until: None,
            panes: HashMap::new(),
            screens: Screens::default(),
            eyes: Eyes::default(),
            listed: None,
            clock: None,
            notices,
            _post: post,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.panes.len()
    }

    /// Takes in a listing, and says what is new in it.
    pub(super) fn follow(&mut self, seen: PulseListing, now: Instant) -> News {
        let generation = convert::generation(&seen.listing.server);
        if self.generation.replace(generation) != Some(generation) {
            // Another life of the server: what has the same number is not the same.
            self.panes.clear();
            self.screens = Screens::default();
            self.eyes = Eyes::default();
            self.listed = None;
        }
        self.version.clone_from(&seen.listing.server.version);
        let (mut hasher, was_silent) = (DefaultHasher::new(), std::mem::take(&mut self.silent));
        (self.stumbles, self.resting_until) = (0, None);
        seen.listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        let same = self.listed.replace(digest) == Some(digest) && !was_silent;
        let mut news = News { disturbed: was_silent, ..News::default() };
        let listed_at = std::mem::replace(&mut self.clock, seen.clock);
        let rows: Vec<PaneRow> = seen.listing.rows.into_iter().map(convert::row).collect();
        self.panes.retain(|pane, known| rows.iter().any(|row| row.pane.0 == *pane && row.pid == known.pid));
        for row in &rows {
            self.take_in(row, seen.pulses.get(&row.pane.0), listed_at, now, &mut news);
        }
        self.follow_agents(now);
        if was_silent {
            // Nobody looked in the meantime.
            self.screens.look_at_all(now);
        }
        news.rows = (!same).then_some(rows);
        news
    }

    fn take_in(&mut self, row: &PaneRow, pulse: Option<&Pulse>, listed_at: Option<i64>, now: Instant, news: &mut News) {
        let (pane, dead) = (row.pane.0, row.dead.is_some());
        let known = self.panes.entry(pane).or_insert_with(|| {
            news.disturbed = true;
            Pane::new(row.pid)
        });
        news.disturbed |= known.dead != dead;
        known.dead = dead;
        let Some(pulse) = pulse else { return };
        let before = known.pulse.replace(pulse.clone());
        let Some(before) = before else { return };
        news.disturbed |= (&before.command, &before.cwd) != (&pulse.command, &pulse.cwd);
        if has_written(&before, pulse, listed_at) {
            news.wrote = true;
            known.looked_twice = false;
            self.screens.wrote(pane, now);
            self.screens.want(pane, now);
        }
    }

    /// Who lives where, as the process table shows it. Gives back what is different.
    pub(super) fn census(&mut self, snapshot: &Snapshot, registry: &Registry, now: Instant) -> Vec<ProcessSighting> {
        let mut changed = Vec::new();
        for (pane, known) in self.panes.iter_mut().filter(|(_, known)| !known.dead && known.pid != 0) {
            let cwd = known.pulse.as_ref().map(|pulse| text::from_bytes(&pulse.cwd)).filter(|cwd| !cwd.is_empty());
            let tree = snapshot.tree(known.pid);
            let (sighting, headless) =
                processes::sighting(registry, (PaneId(*pane), known.pid), tree.as_ref(), |_| cwd.clone());
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
    pub(super) fn headless(&mut self, began: Timestamp) -> Vec<Seen> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut told = Vec::new();
        for (pane, known) in &mut self.panes {
            let process = known.sighting.as_ref().and_then(|s| s.agent.as_ref()).map(|agent| agent.process);
            let Some(process) = process.filter(|_| known.headless) else { continue };
            if known.headless_told.replace(process) != Some(process) {
                told.push(Seen::headless((self.key.clone(), generation), PaneId(*pane), process, began));
            }
        }
        told
    }

    /// Other agents are known, or by other signs.
    pub(super) fn relearn(&mut self, now: Instant) {
        self.eyes = Eyes::default();
        for known in self.panes.values_mut() {
            (known.sighting, known.headless_told, known.shown) = (None, None, None);
        }
        self.screens.look_at_all(now);
    }

    fn follow_agents(&mut self, now: Instant) {
        let found = self.panes.iter().filter_map(|(pane, known)| {
            let agent = known.sighting.as_ref().filter(|_| !known.dead)?.agent.as_ref()?;
            Some((*pane, &agent.agent_type, agent.process))
        });
        let found: Vec<(u32, &AgentType, ProcessRef)> = found.collect();
        self.screens.follow(found.into_iter(), now);
        self.eyes.forget_all_but(|pane| self.screens.holds(pane));
    }

    /// The panes that are due.
    pub(super) fn looks(&mut self, now: Instant) -> Vec<Look> {
        while let Ok(notice) = self.notices.try_recv() {
            if let Notice::AgentSpoke(pane) = notice {
                self.screens.want(pane, now);
            }
        }
        if self.silent || self.generation.is_none() { Vec::new() } else { self.screens.take(now) }
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().filter(|_| !self.silent && self.generation.is_some())
    }

    /// What the looks brought.
    pub(super) fn judge(
        &mut self,
        registry: &Registry,
        looks: Vec<Look>,
        captures: &[Capture],
        began: Timestamp,
        now: Instant,
    ) -> Vec<Seen> {
        let Some(generation) = self.generation else { return Vec::new() };
        let mut all = Vec::new();
        for look in looks {
            let is_it = |c: &&Capture| c.pane == look.pane && c.server_pid == generation.pid;
            let known = self.panes.get_mut(&look.pane).filter(|known| !known.dead);
            let capture = captures.iter().find(is_it);
            let (Some(known), Some(capture)) = (known, capture) else {
                self.screens.missed(look.pane, now);
                continue;
            };
            if capture.pane_pid != known.pid {
                continue;
            }
            // Nobody tells when it writes: only a screen that shows the same twice has settled.
            let look = Look { settled: known.holds_still(capture, now), ..look };
            let seen = self.eyes.judge(registry, (self.key.clone(), generation), &look, capture, began);
            let is_sure = look.settled || (!seen.sights.is_empty() && seen.sights.iter().all(|sight| sight.settled));
            if !is_sure && !std::mem::replace(&mut known.looked_twice, true) {
                self.screens.want(look.pane, now + LOOK_TWICE);
            }
            all.push(seen);
        }
        all
    }
}

impl Pane {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            dead: false,
            pulse: None,
            sighting: None,
            headless: false,
            headless_told: None,
            shown: None,
            looked_twice: false,
        }
    }

    fn holds_still(&mut self, capture: &Capture, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        (&capture.screen, &capture.title).hash(&mut hasher);
        let digest = hasher.finish();
        match self.shown {
            Some((before, since)) if before == digest => now >= since + LOOK_TWICE / 2,
            _ => {
                self.shown = Some((digest, now));
                false
            }
        }
    }
}

/// Whether the pane may have written since the listing before. Activity has whole seconds: in the second of that listing it
/// may have been written to after it.
fn has_written(before: &Pulse, pulse: &Pulse, listed_at: Option<i64>) -> bool {
    (before.activity, before.cursor, before.history_bytes) != (pulse.activity, pulse.cursor, pulse.history_bytes)
        || listed_at.is_some_and(|at| pulse.activity >= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(activity: i64, cursor: (u32, u32)) -> Pulse {
        Pulse { activity, cursor, history_bytes: 0, command: Vec::new(), cwd: Vec::new() }
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
