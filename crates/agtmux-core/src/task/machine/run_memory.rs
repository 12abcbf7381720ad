//! Runs that are over, and facts about runs that are not known yet.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::exit::TaskExit;
use super::super::run::RunId;

/// So many of each are kept. A fact comes late by moments, not by hundreds of runs.
const MAX_KEPT: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RunMemory {
    #[serde(alias = "over")]
    ended: VecDeque<RunId>,
    early: VecDeque<(RunId, RunFacts)>,
}

/// What was heard of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RunFacts {
    pub(super) exit: Option<TaskExit>,
    pub(super) bells: u64,
    pub(super) output: Vec<String>,
}

impl RunMemory {
    pub(super) fn has_ended(&self, run: &RunId) -> bool {
        self.ended.contains(run)
    }

    /// Nothing is told of this run any more.
    pub(super) fn mark_ended(&mut self, run: RunId) {
        if !self.has_ended(&run) {
            push(&mut self.ended, run);
        }
    }

    /// Kept until the launch is heard of.
    pub(super) fn keep_early(&mut self, run: &RunId, heard: RunFacts) {
        let mut merged = self.take_early(run);
        merged.exit = heard.exit.or(merged.exit);
        merged.bells = heard.bells.max(merged.bells);
        merged.output = heard.output;
        push(&mut self.early, (run.clone(), merged));
    }

    /// What was heard of it before its launch.
    pub(super) fn take_early(&mut self, run: &RunId) -> RunFacts {
        let at = self.early.iter().position(|(id, _)| id == run);
        at.and_then(|at| self.early.remove(at)).map(|(_, heard)| heard).unwrap_or_default()
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    queue.push_back(item);
    if queue.len() > MAX_KEPT {
        queue.pop_front();
    }
}
