//! What each input does.

use jiff::Timestamp;

use super::super::event::TaskEvent;
use super::super::exit::Exit;
use super::super::input::{Ending, Launch};
use super::super::look::{SessionLook, TaskLook};
use super::super::output::recent_output;
use super::super::run::RunId;
use super::memory::Heard;
use super::slot::{Phase, Run, Slot, Taken, Taking};
use super::telling::Teller;
use super::{BELL_WAITS, TaskMachine};
use crate::ids::{Generation, WindowId};

/// A slot that is restarted again and again before any end is heard of keeps only so many of its runs.
const MOST_PAST: usize = 32;

type Told = Vec<TaskEvent>;

impl TaskMachine {
    pub(super) fn started(&mut self, launch: Launch, now: Timestamp, told: &mut Told) {
        self.meet(Some(launch.server), now, told);
        // The first look may have come between the launch and the word of it: then it is no history after all.
        let is_same = |slot: &&Slot| slot.run.found && slot.run.id.as_ref() == Some(&launch.run);
        if self.slots.get(&launch.window).filter(is_same).is_some() {
            self.slots.remove(&launch.window);
        } else if self.knows(&launch.run) {
            return;
        }
        let run = self.run_of(launch.run, now);
        let slot = match self.slots.remove(&launch.window) {
            Some(old) => self.supersede(launch.window, old, run, now, told),
            None => Slot::new(launch.task.clone(), Some(launch.pane), run),
        };
        let slot = Slot { task: launch.task, pane: Some(launch.pane), ..slot };
        Teller { session: &self.session, window: launch.window, now, told }.started(&slot);
        self.slots.insert(launch.window, slot);
    }

    pub(super) fn exited(
        &mut self,
        run: &RunId,
        exit: Exit,
        bells: u64,
        output: &str,
        now: Timestamp,
        told: &mut Told,
    ) {
        let heard = Heard { exit: Some(exit), bells, output: recent_output(output) };
        self.hear(run, heard, now, told);
    }

    /// Its end need not wait for a look.
    pub(super) fn finished(&mut self, run: &RunId, now: Timestamp, told: &mut Told) {
        let slot = self.slots.iter_mut().find(|(_, slot)| slot.run.id.as_ref() == Some(run));
        if let Some((window, slot)) = slot {
            slot.tell_end(&mut Teller { session: &self.session, window: *window, now, told });
        }
    }

    /// What lost its terminal because we took it away is not told: whoever asked for that knows.
    pub(super) fn ended_by_us(&mut self, run: &RunId) {
        let slot = self.slots.values_mut().find(|slot| slot.run.id.as_ref() == Some(run));
        let Some(slot) = slot.filter(|slot| matches!(slot.run.phase, Phase::Ending { .. })) else { return };
        if matches!(slot.taken.map(|taken| taken.how), Some(Taking::Replaced | Taking::KilledAll)) {
            slot.run.phase = Phase::Over;
        }
    }

    pub(super) fn rang(&mut self, run: &RunId, bells: u64, output: &str, now: Timestamp, told: &mut Told) {
        let heard = Heard { exit: None, bells, output: recent_output(output) };
        self.hear(run, heard, now, told);
    }

    fn hear(&mut self, run: &RunId, heard: Heard, now: Timestamp, told: &mut Told) {
        if self.memory.is_over(run) {
            return;
        }
        let Some((window, slot)) = self.slots.iter_mut().find(|(_, slot)| slot.has(run)) else {
            self.memory.keep(run, heard);
            return;
        };
        let mut teller = Teller { session: &self.session, window: *window, now, told };
        if slot.run.id.as_ref() != Some(run) {
            slot.hear_of_past(run, heard, &mut teller);
            return;
        }
        slot.run.hear(heard, now);
        match (&slot.run.phase, slot.taken.map(|taken| taken.how)) {
            // Pruned were only those that had ended by themselves.
            (Phase::Ending { .. }, Some(Taking::Pruned)) => slot.tell_end(&mut teller),
            (Phase::Over, _) => {
                teller.bells(&slot.task, slot.pane, &mut slot.run);
            }
            _ => {}
        }
    }

    pub(super) fn ending(&mut self, ending: Ending, now: Timestamp, told: &mut Told) {
        let (windows, how) = match ending {
            Ending::PruneDead(windows) => (windows, Taking::Pruned),
            Ending::KillAll => (self.slots.keys().copied().collect(), Taking::KilledAll),
            Ending::Replaced(window) => (vec![window], Taking::Replaced),
            Ending::Stopped { window, by_user } => (vec![window], Taking::Stopped { by_user }),
        };
        for window in windows {
            let Some(slot) = self.slots.get_mut(&window) else { continue };
            // What has ended by itself was not ended by us.
            slot.tell_end(&mut Teller { session: &self.session, window, now, told });
            slot.take(how, now);
        }
    }

    pub(super) fn time_passed(&mut self, now: Timestamp, told: &mut Told) {
        for (window, slot) in &mut self.slots {
            let mut teller = Teller { session: &self.session, window: *window, now, told };
            let is_due = |since: Timestamp, wait| now.duration_since(since) >= wait;
            if slot.run.end_is_told_at().is_some_and(|at| now >= at) {
                slot.tell_end(&mut teller);
            }
            if slot.run.bells.since.is_some_and(|since| is_due(since, BELL_WAITS)) {
                teller.bells(&slot.task, slot.pane, &mut slot.run);
            }
        }
    }

    pub(super) fn looked(&mut self, look: SessionLook, now: Timestamp, told: &mut Told) {
        if look.session_name != self.session {
            return;
        }
        self.meet(look.server, now, told);
        let there = |window: &WindowId| look.tasks.iter().any(|task| task.window_id == *window);
        let gone: Vec<WindowId> = self.slots.keys().copied().filter(|window| !there(window)).collect();
        for window in gone {
            self.gone(window, now, told);
        }
        for task in &look.tasks {
            match self.slots.remove(&task.window_id) {
                Some(slot) if slot.ended_after(look.captured_at) => drop(self.slots.insert(task.window_id, slot)),
                Some(slot) => self.compare(slot, task, now, told),
                None if !self.looked => self.baseline(task, now),
                None => self.appeared(task, now, told),
            }
        }
        self.looked = true;
    }

    /// Another life of the server has nothing of what was in the one before.
    fn meet(&mut self, server: Option<Generation>, now: Timestamp, told: &mut Told) {
        if server.is_none() || self.server == server {
            return;
        }
        if self.server.is_some() {
            let all: Vec<WindowId> = self.slots.keys().copied().collect();
            for window in all {
                self.gone(window, now, told);
            }
        }
        self.server = server;
    }

    fn baseline(&mut self, look: &TaskLook, now: Timestamp) {
        let mut slot = Slot::found(look);
        // The end of a run that was heard of before is no history: it is told when its turn comes.
        if let (Some(run), Phase::Live) = (&look.run, &slot.run.phase) {
            let heard = self.memory.take(run);
            slot.run.hear(heard, now);
        }
        self.slots.insert(look.window_id, slot);
    }

    /// A window that was not there before.
    fn appeared(&mut self, look: &TaskLook, now: Timestamp, told: &mut Told) {
        let run = match &look.run {
            Some(run) => self.run_of(run.clone(), now),
            None => Run::new(None),
        };
        let slot = Slot::new(look.window_name.clone(), look.pane_id, run);
        let is_dead = look.pane_state_known && look.dead;
        // Every launch has its start. Of a window that is nobody's launch and dead already, only the end is told.
        if look.run.is_some() || !is_dead {
            Teller { session: &self.session, window: look.window_id, now, told }.started(&slot);
        }
        self.compare(slot, look, now, told);
    }

    fn compare(&mut self, slot: Slot, look: &TaskLook, now: Timestamp, told: &mut Told) {
        let Some(mut slot) = self.launched_anew(slot, look, now, told) else { return };
        let mut teller = Teller { session: &self.session, window: look.window_id, now, told };
        slot.task.clone_from(&look.window_name);
        slot.forget_taking(now);
        slot.compare(look, &mut teller);
        self.slots.insert(look.window_id, slot);
    }

    /// The slot with the run that the look shows. None if the look is older than what is known, and shows a run that is over.
    fn launched_anew(&mut self, slot: Slot, look: &TaskLook, now: Timestamp, told: &mut Told) -> Option<Slot> {
        let Some(run) = look.run.as_ref().filter(|run| slot.run.id.as_ref() != Some(*run)) else { return Some(slot) };
        if self.memory.is_over(run) || slot.has(run) {
            // Where somebody has respawned a dead pane, the window still names the run before.
            if slot.run.id.is_none() {
                return Some(slot);
            }
            self.slots.insert(look.window_id, slot);
            return None;
        }
        let run = self.run_of(run.clone(), now);
        let slot = Slot { pane: look.pane_id, ..self.supersede(look.window_id, slot, run, now, told) };
        Teller { session: &self.session, window: look.window_id, now, told }.started(&slot);
        Some(slot)
    }

    /// Another run takes the place of the one that was there. Its own end is told when it is heard of, unless we ended it.
    fn supersede(&mut self, window: WindowId, mut old: Slot, run: Run, now: Timestamp, told: &mut Told) -> Slot {
        // The window is there, or there would be no other run in it.
        old.tell_end(&mut Teller { session: &self.session, window, now, told });
        let replaced = matches!(old.taken, Some(Taken { how: Taking::Replaced, .. }));
        let mut slot = Slot::new(old.task, old.pane, run);
        slot.past = old.past;
        if old.run.phase == Phase::Live && old.run.id.is_some() && !replaced {
            slot.past.push(old.run);
        } else if let Some(id) = old.run.id {
            self.memory.close(id);
        }
        if slot.past.len() > MOST_PAST
            && let Some(id) = slot.past.remove(0).id
        {
            self.memory.close(id);
        }
        slot
    }

    /// A window that was there and no longer is.
    fn gone(&mut self, window: WindowId, now: Timestamp, told: &mut Told) {
        let Some(mut slot) = self.slots.remove(&window) else { return };
        let mut teller = Teller { session: &self.session, window, now, told };
        match (&slot.run.phase, slot.taken.map(|taken| taken.how)) {
            (Phase::Over, _) | (_, Some(Taking::Pruned | Taking::KilledAll | Taking::Replaced)) => {
                teller.bells(&slot.task, slot.pane, &mut slot.run);
            }
            (_, Some(Taking::Stopped { by_user })) => teller.disappeared(&mut slot, by_user),
            (_, None) => teller.disappeared(&mut slot, false),
        }
        for run in [slot.run].into_iter().chain(slot.past) {
            if let Some(id) = run.id {
                self.memory.close(id);
            }
        }
    }

    /// With what was heard of it already.
    fn run_of(&mut self, id: RunId, now: Timestamp) -> Run {
        let heard = self.memory.take(&id);
        let mut run = Run::new(Some(id));
        run.hear(heard, now);
        run
    }

    pub(super) fn knows(&self, run: &RunId) -> bool {
        self.memory.is_over(run) || self.slots.values().any(|slot| slot.has(run))
    }
}

impl Slot {
    fn has(&self, run: &RunId) -> bool {
        [&self.run].into_iter().chain(&self.past).any(|known| known.id.as_ref() == Some(run))
    }

    /// The end that was heard of, if there is one that was not told.
    fn tell_end(&mut self, teller: &mut Teller<'_>) {
        if let Phase::Ending { exit, .. } = self.run.phase {
            (self.run.phase, self.run.found) = (Phase::Over, false);
            teller.exited(&self.task, self.pane, &mut self.run, exit);
        }
    }

    /// A look that began before its end was heard of cannot tell what became of its window.
    fn ended_after(&self, look_began: Timestamp) -> bool {
        matches!(self.run.phase, Phase::Ending { since, .. } if look_began < since)
    }

    fn hear_of_past(&mut self, run: &RunId, heard: Heard, teller: &mut Teller<'_>) {
        let Some(at) = self.past.iter().position(|past| past.id.as_ref() == Some(run)) else { return };
        let past = &mut self.past[at];
        past.hear(heard, teller.now);
        match past.phase {
            Phase::Ending { exit, .. } => {
                past.phase = Phase::Over;
                teller.exited(&self.task, self.pane, past, exit);
            }
            _ => {
                teller.bells(&self.task, self.pane, past);
            }
        }
    }

    /// What a look shows of the run that is known.
    fn compare(&mut self, look: &TaskLook, teller: &mut Teller<'_>) {
        let lost = self.run.id.is_some() && look.pane_id.is_some() && self.pane.is_some() && look.pane_id != self.pane;
        if lost {
            self.lose_pane(teller);
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
            self.run.end_as_seen(look.exit(), teller.now);
        }
        if !self.run.ends_unknown() {
            self.tell_end(teller);
        }
        if is_dead {
            self.run.seen_dead = true;
        } else if self.run.seen_dead && look.pane_state_known {
            self.revive();
        }
        if self.run.phase == Phase::Live
            && look.pane_state_known
            && look.pane_id.is_some()
            && let Some(prompt) = self.question.look(look, teller.now)
        {
            teller.asks(self, &prompt);
        }
    }

    /// The pane that the task was launched in is gone, and the window lives on with others that a user has made.
    fn lose_pane(&mut self, teller: &mut Teller<'_>) {
        if self.run.phase == Phase::Over {
            return;
        }
        let by_user = matches!(self.taken, Some(Taken { how: Taking::Stopped { by_user: true }, .. }));
        if !matches!(self.taken.map(|taken| taken.how), Some(Taking::KilledAll | Taking::Pruned | Taking::Replaced)) {
            teller.disappeared(self, by_user);
        }
        self.run.phase = Phase::Over;
    }

    /// Somebody else started something in the dead pane: it is nobody's launch, but its end counts.
    fn revive(&mut self) {
        let bells = self.run.bells.clone();
        let over = std::mem::replace(&mut self.run, Run { bells, ..Run::new(None) });
        // The window still names the launch. What is nobody's launch is named by nobody, and would pile up.
        if over.id.is_some() {
            self.past.push(over);
        }
        self.taken = None;
    }
}
