//! Which of several agents something comes from, where one has started the other.

use crate::command_line::{Invocation, is_shell};
use crate::manifest::{Manifest, MatchStrength};
use crate::process::ProcessFacts;
use crate::registry::AgentRegistry;

impl AgentRegistry {
    /// How many of these processes may be the agent that something comes from: those up to the nearest agent and the ones
    /// that launched it, which are one with it. What is above has started that agent, and is another. All of them, where
    /// none is an agent.
    ///
    /// `line` has the nearest first, each behind those that it is a parent of. `same_input` tells whether two processes
    /// read from the same place, where that is known: a launcher hands on what it reads from, and the tools of an agent do
    /// not read from its terminal.
    pub fn count_own_processes(
        &self,
        line: &[ProcessFacts<'_>],
        same_input: impl Fn(u32, u32) -> Option<bool>,
    ) -> usize {
        // A shell script may have the name of the agent that it is a hook of.
        let kind = |process: &ProcessFacts<'_>| self.direct_match(process);
        let Some(nearest) = line.iter().position(|process| kind(process).is_some()) else { return line.len() };
        let mut own = nearest;
        while let Some(gap) = line[own + 1..].iter().position(|process| kind(process).is_some()) {
            let (child, parent, above) = (&line[own], &line[own + 1 + gap], own + 1 + gap);
            let alike = kind(parent).zip(kind(child)).is_some_and(|(parent, child)| parent.name == child.name);
            let launched = match child.ppid == parent.pid {
                true => same_arguments(child, parent) || shares_input(child, parent, &same_input),
                // What launches may stand between the two, such as `timeout`; a shell is the tool of an agent.
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
