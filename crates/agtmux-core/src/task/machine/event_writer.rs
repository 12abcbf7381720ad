//! Builds the events of one window.

use jiff::Timestamp;

use super::super::delivery::Delivery;
use super::super::event::TaskEvent;
use super::super::exit::TaskExit;
use super::super::message::EventCause;
use super::super::session::TaskSessionName;
use super::slot::{RunState, TaskSlot};
use crate::ids::{PaneId, WindowId};

/// The events that one input causes, in order.
pub(super) struct EventBuffer {
    pub(super) session: TaskSessionName,
    pub(super) now: Timestamp,
    pub(super) events: Vec<TaskEvent>,
}

impl EventBuffer {
    pub(super) fn of(&mut self, window: WindowId) -> TaskEventWriter<'_> {
        TaskEventWriter { session: &self.session, window, now: self.now, events: &mut self.events }
    }
}

/// Appends the events of one window in order.
pub(super) struct TaskEventWriter<'a> {
    session: &'a TaskSessionName,
    window: WindowId,
    pub(super) now: Timestamp,
    events: &'a mut Vec<TaskEvent>,
}

impl TaskEventWriter<'_> {
    pub(super) fn started(&mut self, slot: &TaskSlot) {
        self.push(EventCause::Started, &slot.task, slot.pane, &slot.run);
    }

    pub(super) fn input(&mut self, slot: &TaskSlot, prompt: &str) {
        self.push(EventCause::Input(prompt), &slot.task, slot.pane, &slot.run);
    }

    /// Reports unreported bells. Returns whether there were any.
    pub(super) fn notify(&mut self, task: &str, pane: Option<PaneId>, run: &mut RunState) -> bool {
        run.bells.since = None;
        if !run.bells.has_unreported() {
            return false;
        }
        run.bells.reported = run.bells.counted;
        self.push(EventCause::Notify, task, pane, run);
        true
    }

    /// Reports the exit of a run. If a bell is not reported yet, one message reports the bell and the exit together.
    pub(super) fn exited(&mut self, task: &str, pane: Option<PaneId>, run: &mut RunState, exit: TaskExit) {
        let had_bell = self.notify(task, pane, run);
        if let Some(notify) = self.events.last_mut().filter(|_| had_bell) {
            notify.collapsed = true;
            notify.delivery = Delivery::COLLAPSED;
        }
        let cause = if had_bell { EventCause::BellThenExited(exit) } else { EventCause::Exited(exit) };
        self.push(cause, task, pane, run);
    }

    pub(super) fn disappeared(&mut self, slot: &mut TaskSlot, by_user: bool) {
        self.notify(&slot.task, slot.pane, &mut slot.run);
        self.push(EventCause::Disappeared { by_user }, &slot.task, slot.pane, &slot.run);
    }

    fn push(&mut self, cause: EventCause<'_>, task: &str, pane: Option<PaneId>, run: &RunState) {
        let (exit, prompt, bell_count) = match cause {
            EventCause::Exited(exit) | EventCause::BellThenExited(exit) => (exit, None, None),
            EventCause::Input(prompt) => (TaskExit::UNKNOWN, Some(prompt.to_owned()), None),
            EventCause::Notify => (TaskExit::UNKNOWN, None, Some(run.bells.counted)),
            EventCause::Started | EventCause::Disappeared { .. } => (TaskExit::UNKNOWN, None, None),
        };
        self.events.push(TaskEvent {
            kind: cause.kind(),
            task: task.to_owned(),
            window_id: self.window,
            pane_id: pane,
            run_id: run.id.clone(),
            session: self.session.clone(),
            exit_code: exit.code,
            signal: exit.signal,
            prompt,
            bell_count,
            recent_output: run.output.clone(),
            level: cause.level(),
            message: cause.message(self.window, task),
            collapsed: false,
            delivery: Delivery::of(cause.kind()),
            seq: 0,
            at: self.now,
        });
    }
}
