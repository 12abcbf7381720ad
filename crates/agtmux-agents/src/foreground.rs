//! Which processes of a pane its user is talking to.

use std::collections::HashMap;

use crate::command_line::is_shell;
use crate::process::ProcessFacts;

/// Where a process stands in its pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobPosition {
    pub(crate) depth: usize,
    pub(crate) in_foreground: bool,
}

/// Where each process stands; parents come before their children in `processes`.
pub(crate) fn job_positions(processes: &[ProcessFacts<'_>], foreground: Option<u32>) -> Vec<JobPosition> {
    let mut seen: HashMap<u32, usize> = HashMap::with_capacity(processes.len());
    let mut below_foreground = Vec::with_capacity(processes.len());
    let mut standings: Vec<JobPosition> = Vec::with_capacity(processes.len());
    for (index, process) in processes.iter().enumerate() {
        let parent = seen.get(&process.ppid).copied();
        let parent_is_below = parent.is_some_and(|parent: usize| below_foreground[parent]);
        let is_below = match foreground {
            // Without knowledge of jobs, what runs counts.
            None => true,
            Some(foreground) if process.pgrp == foreground => true,
            // On the pane's own terminal, in another job.
            Some(foreground) if process.tpgid == Some(foreground) => false,
            // On another terminal, which some process of the job holds, or on none.
            Some(foreground) => {
                parent_is_below && !parent.is_some_and(|p| is_background_job(process, &processes[p], foreground))
            }
        };
        let holds_its_terminal = process.tpgid.is_none_or(|group| group == process.pgrp) || foreground.is_none();
        let depth = parent.map_or(0, |parent| standings[parent].depth + 1);
        standings.push(JobPosition { depth, in_foreground: is_below && holds_its_terminal });
        below_foreground.push(is_below);
        seen.insert(process.pid, index);
    }
    standings
}

/// Whether a process whose terminal is not known is a background job of a shell that has the pane's terminal. Shells
/// put each job into a group of its own; what sudo and its like start is in another group too, but they are no shells.
fn is_background_job(process: &ProcessFacts<'_>, parent: &ProcessFacts<'_>, foreground: u32) -> bool {
    process.tpgid.is_none() && process.pgrp != foreground && parent.pgrp == foreground && is_shell(parent)
}
