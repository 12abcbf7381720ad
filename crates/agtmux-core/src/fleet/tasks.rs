//! Tasks as the runtimes of their panes.

use super::apply::{DetectedAgent, FleetChanges};
use super::model::{Fleet, PaneKey, PaneTask};
use crate::ids::{AgentType, Generation, ProcessRef};
use crate::runtime::Runtime;

impl Fleet {
    /// Whether the task that the fleet has for this pane belongs to a later server generation than the task with this
    /// `generation` and `process`. A new server uses the same pane ids as the old one, and the daemon may report a task
    /// of the new server before tmux lists the pane of the task.
    pub fn has_later_task(&self, key: &PaneKey, generation: Generation, process: ProcessRef) -> bool {
        self.tasks.get(key).is_some_and(|(known, task)| {
            // tmux reports the start of a server only in seconds, so the start of the process breaks ties.
            *known != generation && (known.start_time, task.process.start) > (generation.start_time, process.start)
        })
    }

    pub(super) fn update_task(
        &mut self,
        key: PaneKey,
        generation: Generation,
        task: Option<PaneTask>,
        changes: &mut FleetChanges,
    ) {
        let before = match task.clone() {
            Some(task) => self.tasks.insert(key.clone(), (generation, task)),
            None => self.tasks.remove(&key),
        };
        if before.map(|(generation, task)| (generation, Some(task))) == Some((generation, task.clone())) {
            return;
        }
        let server = self.servers.get_mut(&key.server).filter(|server| server.generation == generation);
        let Some(pane) = server.and_then(|server| server.panes.get_mut(&key.pane)) else { return };
        let stays = |runtime: &Runtime| task.as_ref().is_some_and(|task| task.process == runtime.process);
        if pane.runtime.as_ref().is_some_and(|runtime| runtime.agent_type.is_task() && !stays(runtime)) {
            changes.end_runtime(&key, pane);
        }
        changes.mark_changed(&key, pane);
    }

    /// Makes a task the runtime of its pane if the pane has no agent. Called after every update, because the daemon may
    /// report a task before or after tmux lists its pane.
    pub(super) fn assign_tasks_to_panes(&mut self, changes: &mut FleetChanges) {
        for key in &changes.delta.removed {
            self.tasks.remove(key);
        }
        if self.tasks.is_empty() {
            return;
        }
        for key in changes.delta.changed.clone() {
            let Some((generation, task)) = self.tasks.get(&key).cloned() else { continue };
            let server = self.servers.get_mut(&key.server).filter(|server| server.generation == generation);
            let Some(pane) = server.and_then(|server| server.panes.get_mut(&key.pane)) else { continue };
            if pane.pid != task.process.pid || pane.runtime.is_some() {
                continue;
            }
            let agent = DetectedAgent::new(AgentType::task(), task.process);
            changes.start_runtime(&key, generation, pane, agent, Some(task.name));
            changes.mark_changed(&key, pane);
        }
    }
}
