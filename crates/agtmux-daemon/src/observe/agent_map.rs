//! A map with one value per agent of a server. A value lives as long as the same agent runs in the same pane.

use std::collections::HashMap;

use agtmux_core::ids::{AgentType, ProcessRef};

/// A pane, and the type and process of the agent that was found in it.
pub(crate) type FoundAgent<'a> = (u32, &'a AgentType, ProcessRef);

#[derive(Debug)]
pub(super) struct AgentMap<T> {
    by_pane: HashMap<u32, (AgentType, ProcessRef, T)>,
}

impl<T> Default for AgentMap<T> {
    fn default() -> Self {
        Self { by_pane: HashMap::new() }
    }
}

impl<T> AgentMap<T> {
    /// Keeps the values of agents that are still there, drops the values of agents that are gone, and makes values for
    /// new agents. Returns the panes of the new agents.
    pub(super) fn follow<'a>(
        &mut self,
        found: impl Iterator<Item = FoundAgent<'a>>,
        make: impl Fn(&AgentType, ProcessRef) -> Option<T>,
    ) -> Vec<u32> {
        let mut before = std::mem::take(&mut self.by_pane);
        let mut new = Vec::new();
        for (pane, agent_type, process) in found {
            let is_same = |known: &(AgentType, ProcessRef, T)| (&known.0, known.1) == (agent_type, process);
            let value = before.remove(&pane).filter(is_same).or_else(|| {
                let made = make(agent_type, process)?;
                new.push(pane);
                Some((agent_type.clone(), process, made))
            });
            self.by_pane.extend(value.map(|value| (pane, value)));
        }
        new
    }

    pub(super) fn get_mut(&mut self, pane: u32) -> Option<&mut T> {
        self.by_pane.get_mut(&pane).map(|(_, _, value)| value)
    }

    pub(super) fn contains(&self, pane: u32) -> bool {
        self.by_pane.contains_key(&pane)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.by_pane.values().map(|(_, _, value)| value)
    }

    /// The panes with their agents and values.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &AgentType, ProcessRef, &mut T)> {
        self.by_pane.iter_mut().map(|(pane, (agent_type, process, value))| (*pane, &*agent_type, *process, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_agent_in_the_same_pane_gets_a_new_value() {
        let (claude, codex) = (AgentType::new("claude"), AgentType::new("codex"));
        let process = |pid| ProcessRef { pid, start: 1 };
        let mut residents = AgentMap::default();
        let mut follow = |agent_type: &AgentType, pid| {
            residents.follow([(7, agent_type, process(pid))].into_iter(), |_, process| Some(process.pid))
        };
        assert_eq!(follow(&claude, 1), [7]);
        assert_eq!(follow(&claude, 1), Vec::<u32>::new());
        assert_eq!(follow(&codex, 1), [7], "another agent type");
        assert_eq!(follow(&codex, 2), [7], "another process");
        assert_eq!(residents.get_mut(7), Some(&mut 2));
        residents.follow(std::iter::empty(), |_, _| None);
        assert_eq!(residents.get_mut(7), None);
    }
}
