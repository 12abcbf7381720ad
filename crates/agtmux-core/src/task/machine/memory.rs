//! Runs that are over, and facts about runs that are not known yet.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::exit::Exit;
use super::super::run::RunId;

/// So many of each are kept. A fact comes late by moments, not by hundreds of runs.
const MOST: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    over: VecDeque<RunId>,
    early: VecDeque<(RunId, Heard)>,
}

/// What was heard of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Heard {
    pub(super) exit: Option<Exit>,
    pub(super) bells: u64,
    pub(super) output: Vec<String>,
}

impl Memory {
    pub(super) fn is_over(&self, run: &RunId) -> bool {
        self.over.contains(run)
    }

    /// Nothing is told of this run any more.
    pub(super) fn close(&mut self, run: RunId) {
        if !self.is_over(&run) {
            push(&mut self.over, run);
        }
    }

    /// Kept until the launch is heard of.
    pub(super) fn keep(&mut self, run: &RunId, heard: Heard) {
        let mut merged = self.take(run);
        merged.exit = heard.exit.or(merged.exit);
        merged.bells = heard.bells.max(merged.bells);
        merged.output = heard.output;
        push(&mut self.early, (run.clone(), merged));
    }

    /// What was heard of it before its launch.
    pub(super) fn take(&mut self, run: &RunId) -> Heard {
        let at = self.early.iter().position(|(id, _)| id == run);
        at.and_then(|at| self.early.remove(at)).map(|(_, heard)| heard).unwrap_or_default()
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    queue.push_back(item);
    if queue.len() > MOST {
        queue.pop_front();
    }
}
