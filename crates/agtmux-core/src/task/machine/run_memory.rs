//! Remembers ended runs, and facts that arrived before the launch of their run.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::exit::TaskExit;
use super::super::output::recent_output;
use super::super::run::RunId;

/// The maximum number of ended runs to remember, and the maximum number of runs whose facts wait for the launch of the
/// run. The launch of a run and the first facts about it arrive only moments apart, so few other runs start in between.
const MAX_KEPT: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    #[serde(alias = "over")]
    ended: VecDeque<RunId>,
    early: VecDeque<(RunId, RunFacts)>,
}

/// Facts reported about a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RunFacts {
    pub(super) exit: Option<TaskExit>,
    pub(super) bells: u64,
    pub(super) output: Vec<String>,
}

impl RunFacts {
    pub(super) fn new(exit: Option<TaskExit>, bells: u64, output: &str) -> Self {
        Self { exit, bells, output: recent_output(output) }
    }
}

impl RunMemory {
    pub(super) fn has_ended(&self, run: &RunId) -> bool {
        self.ended.contains(run)
    }

    /// Marks a run as ended. An ended run causes no more events.
    pub(super) fn mark_ended(&mut self, run: RunId) {
        if !self.has_ended(&run) {
            push(&mut self.ended, run);
        }
    }

    /// Keeps facts about a run until the machine learns of the launch of the run.
    pub(super) fn keep_early(&mut self, run: &RunId, facts: RunFacts) {
        let mut merged = self.take_early(run);
        merged.exit = facts.exit.or(merged.exit);
        merged.bells = facts.bells.max(merged.bells);
        merged.output = facts.output;
        push(&mut self.early, (run.clone(), merged));
    }

    /// Removes and returns the facts about this run that arrived before its launch.
    pub(super) fn take_early(&mut self, run: &RunId) -> RunFacts {
        let at = self.early.iter().position(|(id, _)| id == run);
        at.and_then(|at| self.early.remove(at)).map(|(_, facts)| facts).unwrap_or_default()
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    queue.push_back(item);
    if queue.len() > MAX_KEPT {
        queue.pop_front();
    }
}
