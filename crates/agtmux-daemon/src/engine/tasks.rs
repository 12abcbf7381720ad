//! Tasks: what lives in their panes, and what happened to them.

use agtmux_core::evidence::{DialogKind, Rule, Source, Stand, Statement};
use agtmux_core::fleet::{Delta, Observation, PaneKey, TaskStand};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::TaskEvent;

use super::adapters::made_here;
use super::{Engine, Step};
use crate::store::Change;

/// What happened to the tasks of one server, and what has to be stored with it.
#[derive(Debug)]
pub(crate) struct TasksTold {
    pub(crate) socket: String,
    pub(crate) events: Vec<TaskEvent>,
    pub(crate) changes: Vec<Change>,
}

impl Engine {
    pub(super) fn note_task_pane(&mut self, observation: &Observation) {
        if let Observation::Task { server, pane, task, .. } = observation {
            let key = PaneKey { server: server.clone(), pane: *pane };
            match task {
                Some(_) => self.task_panes.insert(key),
                None => self.task_panes.remove(&key),
            };
        }
    }

    /// What is known of tasks becomes the states of those who live in their panes, and whoever watches over tasks hears of panes
    /// that have gone or died.
    pub(super) fn tell_tasks(&mut self, delta: &Delta, step: &mut Step) {
        if self.task_panes.is_empty() {
            return;
        }
        for key in delta.removed.iter().filter(|key| self.task_panes.contains(key)) {
            let _ = self.stirred.send(key.clone());
        }
        self.stir_for_strangers(delta);
        self.task_panes.retain(|key| !delta.removed.contains(key));
        let changed: Vec<&PaneKey> = delta.changed.iter().filter(|key| self.task_panes.contains(key)).collect();
        for key in changed {
            if self.fleet.pane(key).is_some_and(|pane| pane.dead.is_some()) {
                let _ = self.stirred.send(key.clone());
            }
            let Some((runtime, task)) = self.fleet.task(key) else { continue };
            let (runtime, stand) = (runtime.clone(), task.stand.clone());
            self.hear_task(&runtime, &stand, step);
        }
    }

    /// Windows that somebody else makes among those of tasks count as well: where one comes, changes or goes, a task beside it is named.
    fn stir_for_strangers(&self, delta: &Delta) {
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
            let _ = self.stirred.send(key.clone());
        }
    }

    fn hear_task(&mut self, runtime: &RuntimeId, stand: &TaskStand, step: &mut Step) {
        let said: &[(Stand, &str)] = match stand {
            TaskStand::Running => &[(Stand::Running, "it runs"), (Stand::AsksNothing, "")],
            TaskStand::Asks(prompt) => &[(Stand::Running, "it runs"), (Stand::Asks(DialogKind::Input), prompt)],
            TaskStand::Ended { well: true } => &[(Stand::Completed, "it has ended well"), (Stand::AsksNothing, "")],
            TaskStand::Ended { well: false } => &[(Stand::Failed, "it has failed"), (Stand::AsksNothing, "")],
        };
        for (stand, excerpt) in said {
            let statement = Statement {
                source: Source::Wrapper,
                stand: *stand,
                conclusive: true,
                as_of: step.now,
                settled: true,
                ttl: None,
                order: made_here(step.now, step.now),
                rule: Rule { name: "task".into(), version: 1 },
                excerpt: agtmux_core::redact::text(excerpt).into_owned(),
                tentative: false,
                yields: false,
                anew: false,
                dialog: None,
            };
            self.hear_if_news(runtime, statement, step);
        }
    }
}
