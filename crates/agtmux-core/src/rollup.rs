//! Counts of agents by state, for a window, a session or the whole fleet.

use std::collections::BTreeMap;

use crate::state::State;

/// The number of agents per state. States without agents are not listed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StateCounts(BTreeMap<State, u32>);

impl StateCounts {
    pub fn add(&mut self, state: State) {
        *self.0.entry(state).or_default() += 1;
    }

    pub fn of(&self, state: State) -> u32 {
        self.0.get(&state).copied().unwrap_or(0)
    }

    /// The state with the highest precedence.
    pub fn top(&self) -> Option<State> {
        self.0.keys().next().copied()
    }

    pub fn waiting(&self) -> u32 {
        self.0.iter().filter(|(state, _)| state.is_waiting()).map(|(_, n)| n).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (State, u32)> {
        self.0.iter().map(|(state, n)| (*state, *n))
    }
}

impl FromIterator<State> for StateCounts {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        let mut counts = Self::default();
        states.into_iter().for_each(|state| counts.add(state));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_is_the_strongest_state() {
        let counts: StateCounts =
            [State::Idle, State::WaitingInput, State::Running, State::WaitingApproval].into_iter().collect();
        assert_eq!(counts.top(), Some(State::WaitingApproval));
        assert_eq!(counts.waiting(), 2);
        assert_eq!(counts.of(State::Running), 1);
        assert_eq!(StateCounts::default().top(), None);
    }
}
