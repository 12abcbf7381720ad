//! Events of one window.

use jiff::Timestamp;

use super::super::delivery::Delivery;
use super::super::event::TaskEvent;
use super::super::exit::Exit;
use super::super::message::Happening;
use super::super::session::TaskSession;
use super::slot::{Run, Slot};
use crate::ids::{PaneId, WindowId};

/// Writes down what happened to one window, in order.
pub(super) struct Teller<'a> {
    pub(super) session: &'a TaskSession,
    pub(super) window: WindowId,
    pub(super) now: Timestamp,
    pub(super) told: &'a mut Vec<TaskEvent>,
}

/// What an event says of the task, whatever happened to it.
struct Subject<'a> {
    task: &'a str,
    pane: Option<PaneId>,
    run: &'a Run,
}

impl Teller<'_> {
    pub(super) fn started(&mut self, slot: &Slot) {
        self.tell(Happening::Started, &Subject { task: &slot.task, pane: slot.pane, run: &slot.run });
    }

    pub(super) fn asks(&mut self, slot: &Slot, prompt: &str) {
        self.tell(Happening::Input(prompt), &Subject { task: &slot.task, pane: slot.pane, run: &slot.run });
    }

    /// Bells that were not told yet.
    pub(super) fn bells(&mut self, task: &str, pane: Option<PaneId>, run: &mut Run) -> bool {
        run.bells.since = None;
        if !run.bells.are_new() {
            return false;
        }
        run.bells.told = run.bells.counted;
        self.tell(Happening::Notify, &Subject { task, pane, run });
        true
    }

    /// The end of a run. A bell that comes with it is told by the same sentence.
    pub(super) fn exited(&mut self, task: &str, pane: Option<PaneId>, run: &mut Run, exit: Exit) {
        let rang = self.bells(task, pane, run);
        if let Some(notify) = self.told.last_mut().filter(|_| rang) {
            notify.collapsed = true;
            notify.delivery = Delivery::COLLAPSED;
        }
        let what = if rang { Happening::RangThenExited(exit) } else { Happening::Exited(exit) };
        self.tell(what, &Subject { task, pane, run });
    }

    pub(super) fn disappeared(&mut self, slot: &mut Slot, by_user: bool) {
        self.bells(&slot.task, slot.pane, &mut slot.run);
        self.tell(Happening::Disappeared { by_user }, &Subject { task: &slot.task, pane: slot.pane, run: &slot.run });
    }

    fn tell(&mut self, what: Happening<'_>, of: &Subject<'_>) {
        let (exit, prompt, bell_count) = match what {
            Happening::Exited(exit) | Happening::RangThenExited(exit) => (exit, None, None),
            Happening::Input(prompt) => (Exit::UNKNOWN, Some(prompt.to_owned()), None),
            Happening::Notify => (Exit::UNKNOWN, None, Some(of.run.bells.counted)),
            Happening::Started | Happening::Disappeared { .. } => (Exit::UNKNOWN, None, None),
        };
        self.told.push(TaskEvent {
            kind: what.kind(),
            task: of.task.to_owned(),
            window_id: self.window,
            pane_id: of.pane,
            run_id: of.run.id.clone(),
            session: self.session.clone(),
            exit_code: exit.code,
            signal: exit.signal,
            prompt,
            bell_count,
            recent_output: of.run.output.clone(),
            level: what.level(),
            message: what.message(self.window, of.task),
            collapsed: false,
            delivery: Delivery::of(what.kind()),
            seq: 0,
            at: self.now,
        });
    }
}
