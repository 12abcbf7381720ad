//! The effect of each input on the task machine.

use jiff::Timestamp;

use super::super::exit::TaskExit;
use super::super::input::{LaunchedRun, PlannedRemoval};
use super::super::output::recent_output;
use super::super::run::RunId;
use super::super::snapshot::{TaskSessionSnapshot, TaskSnapshot};
use super::event_writer::{EventBuffer, TaskEventWriter};
use super::run_memory::RunFacts;
use super::slot::{Removal, RemovalKind, RunPhase, RunState, TaskSlot};
use super::{BELL_HOLD, TaskMachine};
use crate::ids::{Generation, WindowId};

/// The maximum number of earlier runs in the slot of a window. If a launch adds one more, the slot drops the oldest.
const MAX_EARLIER_RUNS: usize = 32;

impl TaskMachine {
    pub(super) fn started(&mut self, launch: LaunchedRun, events: &mut EventBuffer) {
        self.check_generation(Some(launch.server), events);
        // The first snapshot may show this run before the machine applies the launch. The run is new nevertheless, so
        // remove it from the baseline.
        let is_same = |slot: &&TaskSlot| slot.run.in_baseline && slot.run.id.as_ref() == Some(&launch.run);
        if self.slots.get(&launch.window).filter(is_same).is_some() {
            self.slots.remove(&launch.window);
        } else if self.knows_run(&launch.run) {
            return;
        }
        let run = RunState { launched_at: Some(events.now), ..self.new_run(launch.run, events.now) };
        let slot = match self.slots.remove(&launch.window) {
            Some(old) => self.supersede(launch.window, old, run, events),
            None => TaskSlot::new(launch.task.clone(), Some(launch.pane), run),
        };
        let slot = TaskSlot { task: launch.task, pane: Some(launch.pane), ..slot };
        events.of(launch.window).started(&slot);
        self.slots.insert(launch.window, slot);
    }

    /// Reports an exit without waiting for a snapshot.
    pub(super) fn confirm_exit(&mut self, run: &RunId, events: &mut EventBuffer) {
        let slot = self.slots.iter_mut().find(|(_, slot)| slot.run.id.as_ref() == Some(run));
        if let Some((window, slot)) = slot {
            slot.report_exit(&mut events.of(*window));
        }
    }

    /// Suppresses the exit of a run that the daemon killed with the whole session. The client that requested the kill
    /// already knows that the run has ended.
    pub(super) fn drop_own_exit(&mut self, run: &RunId) {
        let slot = self.slots.values_mut().find(|slot| slot.run.id.as_ref() == Some(run));
        let Some(slot) = slot.filter(|slot| matches!(slot.run.phase, RunPhase::ExitPending { .. })) else { return };
        if matches!(slot.removal.map(|removal| removal.kind), Some(RemovalKind::KilledAll)) {
            slot.run.phase = RunPhase::Closed;
        }
    }

    pub(super) fn apply_facts(&mut self, run: &RunId, facts: RunFacts, events: &mut EventBuffer) {
        if self.memory.has_ended(run) {
            return;
        }
        let Some((window, slot)) = self.slots.iter_mut().find(|(_, slot)| slot.has_run(run)) else {
            self.memory.keep_early(run, facts);
            return;
        };
        let mut writer = events.of(*window);
        if slot.run.id.as_ref() != Some(run) {
            slot.apply_facts_to_earlier_run(run, facts, &mut writer);
            return;
        }
        slot.run.apply_facts(facts, writer.now);
        match (&slot.run.phase, slot.removal.map(|removal| removal.kind)) {
            // The daemon prunes only windows whose task ended by itself, so this exit is reported.
            (RunPhase::ExitPending { .. }, Some(RemovalKind::Pruned)) => slot.report_exit(&mut writer),
            (RunPhase::Closed, _) => {
                writer.notify(&slot.task, slot.pane, &mut slot.run);
            }
            _ => {}
        }
    }

    pub(super) fn plan_removal(&mut self, ending: PlannedRemoval, events: &mut EventBuffer) {
        let (windows, how) = match ending {
            PlannedRemoval::PruneDead(windows) => (windows, RemovalKind::Pruned),
            PlannedRemoval::KillAll => (self.slots.keys().copied().collect(), RemovalKind::KilledAll),
            PlannedRemoval::Replaced(window) => (vec![window], RemovalKind::Replaced),
            PlannedRemoval::Stopped { window, by_user } => (vec![window], RemovalKind::Stopped { by_user }),
        };
        for window in windows {
            let Some(slot) = self.slots.get_mut(&window) else { continue };
            // An exit before the removal is still reported.
            slot.report_exit(&mut events.of(window));
            slot.removal = Some(Removal { kind: how, at: events.now });
        }
    }

    pub(super) fn tick(&mut self, events: &mut EventBuffer) {
        let now = events.now;
        for (window, slot) in &mut self.slots {
            let mut writer = events.of(*window);
            let is_due = |since: Timestamp, wait| now.duration_since(since) >= wait;
            if slot.run.exit_due_at().is_some_and(|at| now >= at) {
                slot.report_exit(&mut writer);
            }
            if slot.run.bells.since.is_some_and(|since| is_due(since, BELL_HOLD)) {
                writer.notify(&slot.task, slot.pane, &mut slot.run);
            }
        }
    }

    pub(super) fn apply_snapshot(&mut self, snapshot: TaskSessionSnapshot, events: &mut EventBuffer) {
        if snapshot.session_name != self.session {
            return;
        }
        let is_other_server = snapshot.server.is_some() && snapshot.server != self.server;
        if is_other_server && self.slots.values().any(|slot| slot.launched_after(snapshot.captured_at)) {
            // The snapshot shows the previous server.
            return;
        }
        self.check_generation(snapshot.server, events);
        let exists = |window: &WindowId| snapshot.tasks.iter().any(|task| task.window_id == *window);
        let is_gone =
            |(window, slot): &(&WindowId, &TaskSlot)| !exists(window) && !slot.launched_after(snapshot.captured_at);
        let gone: Vec<WindowId> = self.slots.iter().filter(is_gone).map(|(window, _)| *window).collect();
        for window in gone {
            self.window_gone(window, events);
        }
        for task in &snapshot.tasks {
            match self.slots.remove(&task.window_id) {
                Some(slot) if slot.exited_after(snapshot.captured_at) || slot.launched_after(snapshot.captured_at) => {
                    self.slots.insert(task.window_id, slot);
                }
                Some(slot) => self.compare(slot, task, events),
                // The machine reports the start of this run when it applies the launch later. The start of a run in the
                // baseline is not reported, so the window must not become part of the baseline now.
                None if task.awaits_launch => {}
                None if !self.has_baseline => self.baseline(task, events.now),
                // The snapshot is outdated: the run in it has ended.
                None if task.run.as_ref().is_some_and(|run| self.memory.has_ended(run)) => {}
                None => self.window_appeared(task, events),
            }
        }
        self.has_baseline = true;
    }

    /// Handles all windows as gone if the server generation has changed.
    fn check_generation(&mut self, server: Option<Generation>, events: &mut EventBuffer) {
        if server.is_none() || self.server == server {
            return;
        }
        if self.server.is_some() {
            let all: Vec<WindowId> = self.slots.keys().copied().collect();
            for window in all {
                self.window_gone(window, events);
            }
        }
        self.server = server;
    }

    fn baseline(&mut self, snapshot: &TaskSnapshot, now: Timestamp) {
        let mut slot = TaskSlot::from_baseline(snapshot);
        // An exit that arrived before the baseline is still reported.
        if let (Some(run), RunPhase::Live) = (&snapshot.run, &slot.run.phase) {
            let facts = self.memory.take_early(run);
            slot.run.apply_facts(facts, now);
        }
        self.slots.insert(snapshot.window_id, slot);
    }

    /// Handles a new window.
    fn window_appeared(&mut self, snapshot: &TaskSnapshot, events: &mut EventBuffer) {
        let run = match &snapshot.run {
            Some(run) => self.new_run(run.clone(), events.now),
            None => RunState::new(None),
        };
        let slot = TaskSlot::new(snapshot.window_name.clone(), snapshot.pane_id, run);
        let is_dead = snapshot.pane_state_known && snapshot.dead;
        // Every launch reports its start. A dead window without a launch reports only its exit.
        if snapshot.run.is_some() || !is_dead {
            events.of(snapshot.window_id).started(&slot);
        }
        self.compare(slot, snapshot, events);
    }

    fn compare(&mut self, slot: TaskSlot, snapshot: &TaskSnapshot, events: &mut EventBuffer) {
        let Some(mut slot) = self.detect_new_run(slot, snapshot, events) else { return };
        let mut writer = events.of(snapshot.window_id);
        slot.task.clone_from(&snapshot.window_name);
        slot.expire_removal(writer.now);
        slot.compare(snapshot, &mut writer);
        self.slots.insert(snapshot.window_id, slot);
    }

    /// Returns the slot with the run that the snapshot shows, or `None` if the snapshot is outdated and shows an ended
    /// run.
    fn detect_new_run(
        &mut self,
        slot: TaskSlot,
        snapshot: &TaskSnapshot,
        events: &mut EventBuffer,
    ) -> Option<TaskSlot> {
        let Some(run) = snapshot.run.as_ref().filter(|run| slot.run.id.as_ref() != Some(*run)) else {
            return Some(slot);
        };
        if self.memory.has_ended(run) || slot.has_run(run) {
            // After a user respawned the dead pane, the window still names the previous run.
            if slot.run.id.is_none() {
                return Some(slot);
            }
            self.slots.insert(snapshot.window_id, slot);
            return None;
        }
        let run = self.new_run(run.clone(), events.now);
        let slot = TaskSlot { pane: snapshot.pane_id, ..self.supersede(snapshot.window_id, slot, run, events) };
        events.of(snapshot.window_id).started(&slot);
        Some(slot)
    }

    /// Replaces the run of a slot. The exit of the old run is still reported when it arrives. If the daemon itself
    /// replaced the old run before its exit was known, an exit with an unknown status is reported at once.
    fn supersede(&mut self, window: WindowId, mut old: TaskSlot, run: RunState, events: &mut EventBuffer) -> TaskSlot {
        if matches!(old.removal, Some(Removal { kind: RemovalKind::Replaced, .. })) && old.run.id.is_some() {
            old.run.record_exit(TaskExit::UNKNOWN, events.now);
        }
        // A new run is in the window, so the window exists. A pending exit can be reported without a further snapshot.
        old.report_exit(&mut events.of(window));
        let mut slot = TaskSlot::new(old.task, old.pane, run);
        slot.earlier_runs = old.earlier_runs;
        if old.run.phase == RunPhase::Live && old.run.id.is_some() {
            slot.earlier_runs.push(old.run);
        } else if let Some(id) = old.run.id {
            self.memory.mark_ended(id);
        }
        if slot.earlier_runs.len() > MAX_EARLIER_RUNS
            && let Some(id) = slot.earlier_runs.remove(0).id
        {
            self.memory.mark_ended(id);
        }
        slot
    }

    /// Handles a window that disappeared.
    fn window_gone(&mut self, window: WindowId, events: &mut EventBuffer) {
        let Some(mut slot) = self.slots.remove(&window) else { return };
        let mut writer = events.of(window);
        match (&slot.run.phase, slot.removal.map(|removal| removal.kind)) {
            (RunPhase::Closed, _) | (_, Some(RemovalKind::Pruned | RemovalKind::KilledAll | RemovalKind::Replaced)) => {
                writer.notify(&slot.task, slot.pane, &mut slot.run);
            }
            (_, Some(RemovalKind::Stopped { by_user })) => writer.disappeared(&mut slot, by_user),
            (_, None) => writer.disappeared(&mut slot, false),
        }
        for run in [slot.run].into_iter().chain(slot.earlier_runs) {
            if let Some(id) = run.id {
                self.memory.mark_ended(id);
            }
        }
    }

    /// Creates a run and applies the facts about it that arrived before its launch.
    fn new_run(&mut self, id: RunId, now: Timestamp) -> RunState {
        let facts = self.memory.take_early(&id);
        let mut run = RunState::new(Some(id));
        run.apply_facts(facts, now);
        run
    }

    pub(super) fn knows_run(&self, run: &RunId) -> bool {
        self.memory.has_ended(run) || self.slots.values().any(|slot| slot.has_run(run))
    }
}

impl TaskSlot {
    fn has_run(&self, run: &RunId) -> bool {
        [&self.run].into_iter().chain(&self.earlier_runs).any(|known| known.id.as_ref() == Some(run))
    }

    /// Reports a pending exit.
    fn report_exit(&mut self, writer: &mut TaskEventWriter<'_>) {
        if let RunPhase::ExitPending { exit, .. } = self.run.phase {
            (self.run.phase, self.run.in_baseline) = (RunPhase::Closed, false);
            writer.exited(&self.task, self.pane, &mut self.run, exit);
        }
    }

    /// Whether the exit arrived after the snapshot began. If so, the snapshot may show the window as it was before the
    /// exit.
    fn exited_after(&self, snapshot_began: Timestamp) -> bool {
        matches!(self.run.phase, RunPhase::ExitPending { since, .. } if snapshot_began < since)
    }

    /// Whether the launch was applied after the snapshot began. If so, the snapshot may not show the run yet.
    fn launched_after(&self, snapshot_began: Timestamp) -> bool {
        self.run.launched_at.is_some_and(|at| snapshot_began < at)
    }

    fn apply_facts_to_earlier_run(&mut self, run: &RunId, facts: RunFacts, writer: &mut TaskEventWriter<'_>) {
        let Some(at) = self.earlier_runs.iter().position(|past| past.id.as_ref() == Some(run)) else { return };
        let past = &mut self.earlier_runs[at];
        past.apply_facts(facts, writer.now);
        match past.phase {
            RunPhase::ExitPending { exit, .. } => {
                past.phase = RunPhase::Closed;
                writer.exited(&self.task, self.pane, past, exit);
            }
            _ => {
                writer.notify(&self.task, self.pane, past);
            }
        }
    }

    /// Compares a snapshot with the known run and reports what has changed.
    fn compare(&mut self, snapshot: &TaskSnapshot, writer: &mut TaskEventWriter<'_>) {
        let launch_pane_lost =
            self.run.id.is_some() && snapshot.pane_id.is_some() && self.pane.is_some() && snapshot.pane_id != self.pane;
        if launch_pane_lost {
            self.launch_pane_gone(writer);
            return;
        }
        self.pane = snapshot.pane_id.or(self.pane);
        self.count_bells(snapshot, writer.now);
        let output = recent_output(&snapshot.output_preview);
        if !output.is_empty() {
            self.run.output = output;
        }
        let is_dead = snapshot.pane_state_known && snapshot.dead;
        if is_dead {
            self.run.record_exit(snapshot.exit(), writer.now);
        }
        if !self.run.exit_is_unknown() {
            self.report_exit(writer);
        }
        if is_dead {
            self.run.seen_dead = true;
        } else if self.run.seen_dead && snapshot.pane_state_known {
            self.pane_respawned();
        }
        if self.run.phase == RunPhase::Live
            && snapshot.pane_state_known
            && snapshot.pane_id.is_some()
            && let Some(prompt) = self.prompt.observe(snapshot, writer.now)
        {
            writer.input(self, &prompt);
        }
    }

    /// Handles a window whose run has lost its pane. The window still exists, because the user has made other panes in
    /// it.
    fn launch_pane_gone(&mut self, writer: &mut TaskEventWriter<'_>) {
        if self.run.phase == RunPhase::Closed {
            return;
        }
        let by_user = matches!(self.removal, Some(Removal { kind: RemovalKind::Stopped { by_user: true }, .. }));
        if !matches!(
            self.removal.map(|removal| removal.kind),
            Some(RemovalKind::KilledAll | RemovalKind::Pruned | RemovalKind::Replaced)
        ) {
            writer.disappeared(self, by_user);
        }
        self.run.phase = RunPhase::Closed;
    }

    /// Handles a dead pane that a user respawned. The start of the new process is not reported, but its exit is.
    fn pane_respawned(&mut self) {
        let bells = self.run.bells.clone();
        let ended = std::mem::replace(&mut self.run, RunState { bells, ..RunState::new(None) });
        // The window still names the launched run, so that run is kept. Runs without an id are dropped, because
        // otherwise the list would grow with each respawn.
        if ended.id.is_some() {
            self.earlier_runs.push(ended);
        }
        self.removal = None;
    }
}
