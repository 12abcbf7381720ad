//! Finds the processes of a pane that belong to the foreground job.

use std::collections::HashMap;

use crate::command_line::is_shell;
use crate::process::ProcessFacts;

/// The position of a process in the process tree of its pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobPosition {
    pub(crate) depth: usize,
    pub(crate) in_foreground: bool,
}

/// The position of each process, in the same order. The caller must list parents before their children.
pub(crate) fn job_positions(processes: &[ProcessFacts<'_>], foreground: Option<u32>) -> Vec<JobPosition> {
    let mut seen: HashMap<u32, usize> = HashMap::with_capacity(processes.len());
    let mut below_foreground = Vec::with_capacity(processes.len());
    let mut positions: Vec<JobPosition> = Vec::with_capacity(processes.len());
    for (index, process) in processes.iter().enumerate() {
        let parent = seen.get(&process.ppid).copied();
        let parent_is_below = parent.is_some_and(|parent: usize| below_foreground[parent]);
        let is_below = match foreground {
            // If the foreground group is unknown, every process belongs to the foreground job.
            None => true,
            Some(foreground) if process.pgrp == foreground => true,
            // The process is on the pane's own terminal, in another job.
            Some(foreground) if process.tpgid == Some(foreground) => false,
            // The process has no terminal, or another terminal than the pane's. It belongs to the foreground job if its
            // parent does, unless a shell has put it into the background.
            Some(foreground) => {
                parent_is_below && !parent.is_some_and(|p| is_background_job(process, &processes[p], foreground))
            }
        };
        let holds_its_terminal = process.tpgid.is_none_or(|group| group == process.pgrp) || foreground.is_none();
        let depth = parent.map_or(0, |parent| positions[parent].depth + 1);
        positions.push(JobPosition { depth, in_foreground: is_below && holds_its_terminal });
        below_foreground.push(is_below);
        seen.insert(process.pid, index);
    }
    positions
}

/// Whether a shell of the foreground job has put this process into the background. A shell puts each job into its own
/// process group. sudo and similar programs also put their children into another group, but they are not shells. Always
/// false for a process with a `tpgid`, because that value tells whether the process is in the foreground of its own
/// terminal.
fn is_background_job(process: &ProcessFacts<'_>, parent: &ProcessFacts<'_>, foreground: u32) -> bool {
    process.tpgid.is_none() && process.pgrp != foreground && parent.pgrp == foreground && is_shell(parent)
}
