//! Finds the agent that a process belongs to, even if another agent has started that agent.

use crate::command_line::{Invocation, is_shell};
use crate::manifest::{Manifest, MatchStrength};
use crate::process::ProcessFacts;
use crate::registry::AgentRegistry;

impl AgentRegistry {
    /// Counts the processes in `line` that belong to the nearest agent: all processes up to that agent, plus its
    /// launchers. A process above the launchers belongs to another agent, or to no agent. If `line` contains no agent,
    /// counts all processes.
    ///
    /// `line` starts with the nearest process; each process is followed by its parent. `same_input` returns whether two
    /// processes have the same standard input, or None if that is unknown. The input distinguishes a launcher from
    /// another agent: a launcher passes its standard input to the agent, but an agent does not pass its terminal to its
    /// tools.
    pub fn count_own_processes(
        &self,
        line: &[ProcessFacts<'_>],
        same_input: impl Fn(u32, u32) -> Option<bool>,
    ) -> usize {
        // Weak matches are ignored, because a hook may be a shell script that has the name of its agent.
        let kind = |process: &ProcessFacts<'_>| self.direct_match(process);
        let Some(nearest) = line.iter().position(|process| kind(process).is_some()) else { return line.len() };
        let mut own = nearest;
        while let Some(gap) = line[own + 1..].iter().position(|process| kind(process).is_some()) {
            let (child, parent, above) = (&line[own], &line[own + 1 + gap], own + 1 + gap);
            let alike = kind(parent).zip(kind(child)).is_some_and(|(parent, child)| parent.name == child.name);
            let launched = match child.ppid == parent.pid {
                true => same_arguments(child, parent) || shares_input(child, parent, &same_input),
                // A program such as `timeout` may be between a launcher and its agent. A shell between them means that
                // the parent is another agent, which started the child by a tool call.
                false => same_input(child.pid, parent.pid) == Some(true) && !line[own + 1..above].iter().any(is_shell),
            };
            if !(alike && launched) {
                break;
            }
            own = above;
        }
        own + 1
    }

    fn direct_match(&self, process: &ProcessFacts<'_>) -> Option<&Manifest> {
        let judged = self.judge_process(process, &Invocation::from_process(process)).filter(|_| !process.zombie)?;
        (judged.1 == MatchStrength::Direct).then_some(judged.0)
    }
}

fn same_arguments(child: &ProcessFacts<'_>, parent: &ProcessFacts<'_>) -> bool {
    Invocation::from_process(child).args == Invocation::from_process(parent).args
}

fn shares_input(
    child: &ProcessFacts<'_>,
    parent: &ProcessFacts<'_>,
    same_input: impl Fn(u32, u32) -> Option<bool>,
) -> bool {
    same_input(child.pid, parent.pid).unwrap_or(child.pgrp == parent.pgrp)
}
