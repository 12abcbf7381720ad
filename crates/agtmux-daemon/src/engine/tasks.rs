//! The states and events of tasks.

use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{FleetDelta, PaneKey, PaneTaskStatus, TopologyUpdate};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::TaskEvent;

use super::{Engine, EngineStep};
use crate::store::StoreChange;

/// Task events of one server, and the store changes that belong to them.
#[derive(Debug)]
pub(crate) struct TaskEventBatch {
    pub(crate) socket: String,
    pub(crate) events: Vec<TaskEvent>,
    pub(crate) changes: Vec<StoreChange>,
}

impl Engine {
    pub(super) fn track_task_pane(&mut self, update: &TopologyUpdate) {
        if let TopologyUpdate::Task { server, pane, task, .. } = update {
            let key = PaneKey { server: server.clone(), pane: *pane };
            match task {
                Some(_) => self.task_panes.insert(key),
                None => self.task_panes.remove(&key),
            };
        }
    }

    /// Updates the states of task runtimes, and reports task panes that were removed or died.
    pub(super) fn apply_task_changes(&mut self, delta: &FleetDelta, step: &mut EngineStep) {
        if self.task_panes.is_empty() {
            return;
        }
        for key in delta.removed.iter().filter(|key| self.task_panes.contains(key)) {
            let _ = self.task_pane_changed.send(key.clone());
        }
        self.notify_of_foreign_panes(delta);
        self.task_panes.retain(|key| !delta.removed.contains(key));
        let changed: Vec<&PaneKey> = delta.changed.iter().filter(|key| self.task_panes.contains(key)).collect();
        for key in changed {
            if self.fleet.pane(key).is_some_and(|pane| pane.dead.is_some()) {
                let _ = self.task_pane_changed.send(key.clone());
            }
            let Some((runtime, task)) = self.fleet.task(key) else { continue };
            let (runtime, status) = (runtime.clone(), task.status.clone());
            self.observe_task(&runtime, &status, step);
        }
    }

    /// A pane that is not a task may share a session with tasks. When one appears, changes or vanishes, report the task
    /// panes of its session.
    fn notify_of_foreign_panes(&self, delta: &FleetDelta) {
        let is_foreign = |key: &PaneKey| !self.task_panes.contains(key);
        if !delta.changed.iter().chain(&delta.removed).any(is_foreign) {
            return;
        }
        let shares_session = |key: &&PaneKey| {
            let pane = self.fleet.pane(key);
            let mut sessions = pane.into_iter().flat_map(|pane| &pane.placements).map(|placement| placement.session);
            sessions.any(|session| delta.sessions.contains(&(key.server.clone(), session)))
        };
        for key in self.task_panes.iter().filter(shares_session) {
            let _ = self.task_pane_changed.send(key.clone());
        }
    }

    fn observe_task(&mut self, runtime: &RuntimeId, status: &PaneTaskStatus, step: &mut EngineStep) {
        let assertions: &[(Assertion, &str)] = match status {
            PaneTaskStatus::Running => &[(Assertion::Running, "the task runs"), (Assertion::NoDialog, "")],
            PaneTaskStatus::WaitingInput(prompt) => {
                &[(Assertion::Running, "the task runs"), (Assertion::DialogOpen(DialogKind::Input), prompt)]
            }
            PaneTaskStatus::Ended { success: true } => {
                &[(Assertion::Completed, "the task has succeeded"), (Assertion::NoDialog, "")]
            }
            PaneTaskStatus::Ended { success: false } => {
                &[(Assertion::Failed, "the task has failed"), (Assertion::NoDialog, "")]
            }
        };
        for (assertion, excerpt) in assertions {
            let observation = Observation {
                excerpt: agtmux_core::redact::text(excerpt).into_owned(),
                ..Observation::new(Source::Wrapper, *assertion, step.now, RuleRef::new("task", 1))
            };
            self.observe_if_new(runtime, observation, step.now, step);
        }
    }
}
