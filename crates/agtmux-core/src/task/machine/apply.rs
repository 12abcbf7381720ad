//! What each input does.

use jiff::Timestamp;

use super::super::event::TaskEvent;
use super::super::exit::TaskExit;
use super::super::input::{LaunchedRun, PlannedRemoval};
use super::super::output::recent_output;
use super::super::run::RunId;
use super::super::snapshot::{TaskSessionSnapshot, TaskSnapshot};
use super::event_writer::TaskEventWriter;
use super::run_memory::RunFacts;
use super::slot::{Removal, RemovalKind, RunPhase, RunState, TaskSlot};
use super::{BELL_HOLD, TaskMachine};
use crate::ids::{Generation, WindowId};

/// A slot that is restarted again and again before any end is heard of keeps only so many of its runs.
const MAX_EARLIER_RUNS: usize = 32;

type EventBuffer = Vec<TaskEvent>;

impl TaskMachine {
    pub(super) fn started(&mut self, launch: LaunchedRun, now: Timestamp, told: &mut EventBuffer) {
        self.check_generation(Some(launch.server), now, told);
        // The first look may have come between the launch and the word of it: then it is no history after all.
        let is_same = |slot: &&TaskSlot| slot.run.in_baseline && slot.run.id.as_ref() == Some(&launch.run);
        if self.slots.get(&launch.window).filter(is_same).is_some() {
            self.slots.remove(&launch.window);
        } else if self.knows_run(&launch.run) {
            return;
        }
        let run = self.new_run(launch.run, now);
        let slot = match self.slots.remove(&launch.window) {
            Some(old) => self.supersede(launch.window, old, run, now, told),
            None => TaskSlot::new(launch.task.clone(), Some(launch.pane), run),
        };
        let slot = TaskSlot { task: launch.task, pane: Some(launch.pane), ..slot };
        TaskEventWriter { session: &self.session, window: launch.window, now, events: told }.started(&slot);
        self.slots.insert(launch.window, slot);
    }

    pub(super) fn exited(
        &mut self,
        run: &RunId,
        exit: TaskExit,
        bells: u64,
        output: &str,
        now: Timestamp,
        told: &mut EventBuffer,
    ) {
        let heard = RunFacts { exit: Some(exit), bells, output: recent_output(output) };
        self.apply_facts(run, heard, now, told);
    }

    /// Its end need not wait for a look.
    pub(super) fn confirm_exit(&mut self, run: &RunId, now: Timestamp, told: &mut EventBuffer) {
        let slot = self.slots.iter_mut().find(|(_, slot)| slot.run.id.as_ref() == Some(run));
        if let Some((window, slot)) = slot {
            slot.report_exit(&mut TaskEventWriter { session: &self.session, window: *window, now, events: told });
        }
    }

    /// What lost its terminal because we took it away is not told: whoever asked for that knows.
    pub(super) fn drop_own_exit(&mut self, run: &RunId) {
        let slot = self.slots.values_mut().find(|slot| slot.run.id.as_ref() == Some(run));
        let Some(slot) = slot.filter(|slot| matches!(slot.run.phase, RunPhase::ExitPending { .. })) else { return };
        if matches!(slot.removal.map(|taken| taken.kind), Some(RemovalKind::Replaced | RemovalKind::KilledAll)) {
            slot.run.phase = RunPhase::Closed;
        }
    }

    pub(super) fn bell_rang(&mut self, run: &RunId, bells: u64, output: &str, now: Timestamp, told: &mut EventBuffer) {
        let heard = RunFacts { exit: None, bells, output: recent_output(output) };
        self.apply_facts(run, heard, now, told);
    }

    fn apply_facts(&mut self, run: &RunId, heard: RunFacts, now: Timestamp, told: &mut EventBuffer) {
        if self.memory.has_ended(run) {
            return;
        }
        let Some((window, slot)) = self.slots.iter_mut().find(|(_, slot)| slot.has_run(run)) else {
            self.memory.keep_early(run, heard);
            return;
        };
        let mut teller = TaskEventWriter { session: &self.session, window: *window, now, events: told };
        if slot.run.id.as_ref() != Some(run) {
            slot.apply_facts_to_earlier_run(run, heard, &mut teller);
            return;
        }
        slot.run.apply_facts(heard, now);
        match (&slot.run.phase, slot.removal.map(|taken| taken.kind)) {
            // Pruned were only those that had ended by themselves.
            (RunPhase::ExitPending { .. }, Some(RemovalKind::Pruned)) => slot.report_exit(&mut teller),
            (RunPhase::Closed, _) => {
                teller.notify(&slot.task, slot.pane, &mut slot.run);
            }
            _ => {}
        }
    }

    pub(super) fn plan_removal(&mut self, ending: PlannedRemoval, now: Timestamp, told: &mut EventBuffer) {
        let (windows, how) = match ending {
            PlannedRemoval::PruneDead(windows) => (windows, RemovalKind::Pruned),
            PlannedRemoval::KillAll => (self.slots.keys().copied().collect(), RemovalKind::KilledAll),
            PlannedRemoval::Replaced(window) => (vec![window], RemovalKind::Replaced),
            PlannedRemoval::Stopped { window, by_user } => (vec![window], RemovalKind::Stopped { by_user }),
        };
        for window in windows {
            let Some(slot) = self.slots.get_mut(&window) else { continue };
            // What has ended by itself was not ended by us.
            slot.report_exit(&mut TaskEventWriter { session: &self.session, window, now, events: told });
            slot.set_removal(how, now);
        }
    }

    pub(super) fn tick(&mut self, now: Timestamp, told: &mut EventBuffer) {
        for (window, slot) in &mut self.slots {
            let mut teller = TaskEventWriter { session: &self.session, window: *window, now, events: told };
            let is_due = |since: Timestamp, wait| now.duration_since(since) >= wait;
            if slot.run.exit_due_at().is_some_and(|at| now >= at) {
                slot.report_exit(&mut teller);
            }
            if slot.run.bells.since.is_some_and(|since| is_due(since, BELL_HOLD)) {
                teller.notify(&slot.task, slot.pane, &mut slot.run);
            }
        }
    }

    pub(super) fn apply_snapshot(&mut self, look: TaskSessionSnapshot, now: Timestamp, told: &mut EventBuffer) {
        if look.session_name != self.session {
            return;
        }
        self.check_generation(look.server, now, told);
        let there = |window: &WindowId| look.tasks.iter().any(|task| task.window_id == *window);
        let gone: Vec<WindowId> = self.slots.keys().copied().filter(|window| !there(window)).collect();
        for window in gone {
            self.window_gone(window, now, told);
        }
        for task in &look.tasks {
            match self.slots.remove(&task.window_id) {
                Some(slot) if slot.exited_after(look.captured_at) => drop(self.slots.insert(task.window_id, slot)),
                Some(slot) => self.compare(slot, task, now, told),
                None if !self.has_baseline => self.baseline(task, now),
                None => self.window_appeared(task, now, told),
            }
        }
        self.has_baseline = true;
    }

    /// Another life of the server has nothing of what was in the one before.
    fn check_generation(&mut self, server: Option<Generation>, now: Timestamp, told: &mut EventBuffer) {
        if server.is_none() || self.server == server {
            return;
        }
        if self.server.is_some() {
            let all: Vec<WindowId> = self.slots.keys().copied().collect();
            for window in all {
                self.window_gone(window, now, told);
            }
        }
        self.server = server;
    }

    fn baseline(&mut self, look: &TaskSnapshot, now: Timestamp) {
        let mut slot = TaskSlot::from_baseline(look);
        // The end of a run that was heard of before is no history: it is told when its turn comes.
        if let (Some(run), RunPhase::Live) = (&look.run, &slot.run.phase) {
            let heard = self.memory.take_early(run);
            slot.run.apply_facts(heard, now);
        }
        self.slots.insert(look.window_id, slot);
    }

    /// A window that was not there before.
    fn window_appeared(&mut self, look: &TaskSnapshot, now: Timestamp, told: &mut EventBuffer) {
        let run = match &look.run {
            Some(run) => self.new_run(run.clone(), now),
            None => RunState::new(None),
        };
        let slot = TaskSlot::new(look.window_name.clone(), look.pane_id, run);
        let is_dead = look.pane_state_known && look.dead;
        // Every launch has its start. Of a window that is nobody's launch and dead already, only the end is told.
        if look.run.is_some() || !is_dead {
            TaskEventWriter { session: &self.session, window: look.window_id, now, events: told }.started(&slot);
        }
        self.compare(slot, look, now, told);
    }

    fn compare(&mut self, slot: TaskSlot, look: &TaskSnapshot, now: Timestamp, told: &mut EventBuffer) {
        let Some(mut slot) = self.detect_new_run(slot, look, now, told) else { return };
        let mut teller = TaskEventWriter { session: &self.session, window: look.window_id, now, events: told };
        slot.task.clone_from(&look.window_name);
        slot.expire_removal(now);
        slot.compare(look, &mut teller);
        self.slots.insert(look.window_id, slot);
    }

    /// The slot with the run that the look shows. None if the look is older than what is known, and shows a run that is over.
    fn detect_new_run(
        &mut self,
        slot: TaskSlot,
        look: &TaskSnapshot,
        now: Timestamp,
        told: &mut EventBuffer,
    ) -> Option<TaskSlot> {
        let Some(run) = look.run.as_ref().filter(|run| slot.run.id.as_ref() != Some(*run)) else { return Some(slot) };
        if self.memory.has_ended(run) || slot.has_run(run) {
            // Where somebody has respawned a dead pane, the window still names the run before.
            if slot.run.id.is_none() {
                return Some(slot);
            }
            self.slots.insert(look.window_id, slot);
            return None;
        }
        let run = self.new_run(run.clone(), now);
        let slot = TaskSlot { pane: look.pane_id, ..self.supersede(look.window_id, slot, run, now, told) };
        TaskEventWriter { session: &self.session, window: look.window_id, now, events: told }.started(&slot);
        Some(slot)
    }

    /// Another run takes the place of the one that was there. Its own end is told when it is heard of, unless we ended it.
    fn supersede(
        &mut self,
        window: WindowId,
        mut old: TaskSlot,
        run: RunState,
        now: Timestamp,
        told: &mut EventBuffer,
    ) -> TaskSlot {
        // The window is there, or there would be no other run in it.
        old.report_exit(&mut TaskEventWriter { session: &self.session, window, now, events: told });
        let replaced = matches!(old.removal, Some(Removal { kind: RemovalKind::Replaced, .. }));
        let mut slot = TaskSlot::new(old.task, old.pane, run);
        slot.earlier_runs = old.earlier_runs;
        if old.run.phase == RunPhase::Live && old.run.id.is_some() && !replaced {
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

    /// A window that was there and no longer is.
    fn window_gone(&mut self, window: WindowId, now: Timestamp, told: &mut EventBuffer) {
        let Some(mut slot) = self.slots.remove(&window) else { return };
        let mut teller = TaskEventWriter { session: &self.session, window, now, events: told };
        match (&slot.run.phase, slot.removal.map(|taken| taken.kind)) {
            (RunPhase::Closed, _) | (_, Some(RemovalKind::Pruned | RemovalKind::KilledAll | RemovalKind::Replaced)) => {
                teller.notify(&slot.task, slot.pane, &mut slot.run);
            }
            (_, Some(RemovalKind::Stopped { by_user })) => teller.disappeared(&mut slot, by_user),
            (_, None) => teller.disappeared(&mut slot, false),
        }
        for run in [slot.run].into_iter().chain(slot.earlier_runs) {
            if let Some(id) = run.id {
                self.memory.mark_ended(id);
            }
        }
    }

    /// With what was heard of it already.
    fn new_run(&mut self, id: RunId, now: Timestamp) -> RunState {
        let heard = self.memory.take_early(&id);
        let mut run = RunState::new(Some(id));
        run.apply_facts(heard, now);
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

    /// The end that was heard of, if there is one that was not told.
    fn report_exit(&mut self, teller: &mut TaskEventWriter<'_>) {
        if let RunPhase::ExitPending { exit, .. } = self.run.phase {
            (self.run.phase, self.run.in_baseline) = (RunPhase::Closed, false);
            teller.exited(&self.task, self.pane, &mut self.run, exit);
        }
    }

    /// A look that began before its end was heard of cannot tell what became of its window.
    fn exited_after(&self, look_began: Timestamp) -> bool {
        matches!(self.run.phase, RunPhase::ExitPending { since, .. } if look_began < since)
    }

    fn apply_facts_to_earlier_run(&mut self, run: &RunId, heard: RunFacts, teller: &mut TaskEventWriter<'_>) {
        let Some(at) = self.earlier_runs.iter().position(|past| past.id.as_ref() == Some(run)) else { return };
        let past = &mut self.earlier_runs[at];
        past.apply_facts(heard, teller.now);
        match past.phase {
            RunPhase::ExitPending { exit, .. } => {
                past.phase = RunPhase::Closed;
                teller.exited(&self.task, self.pane, past, exit);
            }
            _ => {
                teller.notify(&self.task, self.pane, past);
            }
        }
    }

    /// What a look shows of the run that is known.
    fn compare(&mut self, look: &TaskSnapshot, teller: &mut TaskEventWriter<'_>) {
        let lost = self.run.id.is_some() && look.pane_id.is_some() && self.pane.is_some() && look.pane_id != self.pane;
        if lost {
            self.launch_pane_gone(teller);
            return;
        }
        self.pane = look.pane_id.or(self.pane);
        self.count_bells(look, teller.now);
        let output = recent_output(&look.output_preview);
        if !output.is_empty() {
            self.run.output = output;
        }
        let is_dead = look.pane_state_known && look.dead;
        if is_dead {
            self.run.record_exit(look.exit(), teller.now);
        }
        if !self.run.exit_is_unknown() {
            self.report_exit(teller);
        }
        if is_dead {
            self.run.seen_dead = true;
        } else if self.run.seen_dead && look.pane_state_known {
            self.pane_respawned();
        }
        if self.run.phase == RunPhase::Live
            && look.pane_state_known
            && look.pane_id.is_some()
            && let Some(prompt) = self.prompt.observe(look, teller.now)
        {
            teller.input(self, &prompt);
        }
    }

    /// The pane that the task was launched in is gone, and the window lives on with others that a user has made.
    fn launch_pane_gone(&mut self, teller: &mut TaskEventWriter<'_>) {
        if self.run.phase == RunPhase::Closed {
            return;
        }
        let by_user = matches!(self.removal, Some(Removal { kind: RemovalKind::Stopped { by_user: true }, .. }));
        if !matches!(
            self.removal.map(|taken| taken.kind),
            Some(RemovalKind::KilledAll | RemovalKind::Pruned | RemovalKind::Replaced)
        ) {
            teller.disappeared(self, by_user);
        }
        self.run.phase = RunPhase::Closed;
    }

    /// Somebody else started something in the dead pane: it is nobody's launch, but its end counts.
    fn pane_respawned(&mut self) {
        let bells = self.run.bells.clone();
        let over = std::mem::replace(&mut self.run, RunState { bells, ..RunState::new(None) });
        // The window still names the launch. What is nobody's launch is named by nobody, and would pile up.
        if over.id.is_some() {
            self.earlier_runs.push(over);
        }
        self.removal = None;
    }
}
