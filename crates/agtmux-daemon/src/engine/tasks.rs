//! Tasks: what lives in their panes, and what happened to them.

use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{FleetDelta, PaneKey, PaneTaskStatus, TopologyUpdate};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::TaskEvent;

use super::adapters::local_order_key;
use super::{Engine, EngineStep};
use crate::store::StoreChange;

/// What happened to the tasks of one server, and what has to be stored with it.
#[derive(Debug)]
pub(crate) struct TaskEventBatch {
    pub(crate) socket: String,
    pub(crate) events: Vec<TaskEvent>,
    pub(crate) changes: Vec<StoreChange>,
}

impl Engine {
    pub(super) fn track_task_pane(&mut self, observation: &TopologyUpdate) {
        if let TopologyUpdate::Task { server, pane, task, .. } = observation {
            let key = PaneKey { server: server.clone(), pane: *pane };
            match task {
                Some(_) => self.task_panes.insert(key),
                None => self.task_panes.remove(&key),
            };
        }
    }

    /// What is known of tasks becomes the states of those who live in their panes, and whoever watches over tasks hears of panes
    /// that have gone or died.
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
            let (runtime, stand) = (runtime.clone(), task.status.clone());
            self.observe_task(&runtime, &stand, step);
        }
    }

    /// Windows that somebody else makes among those of tasks count as well: where one comes, changes or goes, a task beside it is named.
    fn notify_of_foreign_panes(&self, delta: &FleetDelta) {
        let is_strange = |key: &PaneKey| !self.task_panes.contains(key);
        if !delta.changed.iter().chain(&delta.removed).any(is_strange) {
            return;
        }
        let beside = |key: &&PaneKey| {
            let pane = self.fleet.pane(key);
            let mut sessions = pane.into_iter().flat_map(|pane| &pane.placements).map(|placement| placement.session);
            sessions.any(|session| delta.sessions.contains(&(key.server.clone(), session)))
        };
        for key in self.task_panes.iter().filter(beside) {
            let _ = self.task_pane_changed.send(key.clone());
        }
    }

    fn observe_task(&mut self, runtime: &RuntimeId, stand: &PaneTaskStatus, step: &mut EngineStep) {
        let said: &[(Assertion, &str)] = match stand {
            PaneTaskStatus::Running => &[(Assertion::Running, "it runs"), (Assertion::NoDialog, "")],
            PaneTaskStatus::WaitingInput(prompt) => {
                &[(Assertion::Running, "it runs"), (Assertion::DialogOpen(DialogKind::Input), prompt)]
            }
            PaneTaskStatus::Ended { success: true } => {
                &[(Assertion::Completed, "it has ended well"), (Assertion::NoDialog, "")]
            }
            PaneTaskStatus::Ended { success: false } => {
                &[(Assertion::Failed, "it has failed"), (Assertion::NoDialog, "")]
            }
        };
        for (stand, excerpt) in said {
            let statement = Observation {
                source: Source::Wrapper,
                assertion: *stand,
                conclusive: true,
                as_of: step.now,
                settled: true,
                ttl: None,
                order: local_order_key(step.now, step.now),
                rule: RuleRef { name: "task".into(), version: 1 },
                excerpt: agtmux_core::redact::text(excerpt).into_owned(),
                tentative: false,
                inferred_from_absence: false,
                no_turn_visible: false,
                dialog: None,
            };
            self.observe_if_new(runtime, statement, step);
        }
    }
}
