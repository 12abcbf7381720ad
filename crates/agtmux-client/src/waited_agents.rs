//! Agents that a client waits for, and their progress.

use std::sync::Arc;

use agtmux_api::wire::{ActionSnapshot, PaneItem, WatchEvent, WatchEventKind, WatchItem};
use agtmux_core::state::State;
use serde::Serialize;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitOutcome {
    Reached,
    Gone,
    /// An agent opened a dialog, and the caller waits for another state.
    Asks,
    /// The timeout passed before a goal was reached.
    #[serde(rename = "timeout")]
    TimedOut,
}

/// An agent that a client waits for.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct WaitedAgent {
    #[serde(rename = "ref")]
    pub reference: String,
    pub runtime_id: String,
    pub agent_type: String,
    pub pane_id: String,
    /// The last known state.
    pub state: Option<State>,
    /// Whether this state may be from before the last text that agtmux submitted to the agent.
    pub turn_pending: bool,
    /// The wanted state that the agent has reached.
    pub reached: Option<State>,
    pub gone: bool,
    /// Whether agtmux has submitted a text to the agent.
    #[serde(skip)]
    prompted: bool,
    /// Whether the agent was running during the wait, or its state is from after the last text that agtmux submitted.
    /// agtmux may have submitted that text before the wait began.
    #[serde(skip)]
    has_run: bool,
    /// Whether the wait for this agent succeeds when the agent ends.
    #[serde(skip)]
    end_counts: bool,
}

/// The parts of the daemon's report about an agent that matter for the wait.
#[derive(Debug, Default, Clone, Copy)]
struct WaitUpdate {
    state: Option<State>,
    turn_pending: bool,
    prompted: bool,
}

impl From<&PaneItem> for WaitUpdate {
    fn from(pane: &PaneItem) -> Self {
        Self { state: pane.state, turn_pending: pane.turn_pending, prompted: pane.submitted_at.is_some() }
    }
}

/// The states that the caller waits for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct WaitGoals {
    pub states: Vec<State>,
    /// Whether the end of the turn counts, however it ends: completed, an error, idle after it ran, or the agent ended.
    pub finished: bool,
}

impl WaitGoals {
    fn are_met(&self, state: State, has_run: bool) -> bool {
        let is_finished = match state {
            State::Completed | State::Error => true,
            State::Idle => has_run,
            _ => false,
        };
        self.states.contains(&state) || (self.finished && is_finished)
    }
}

impl WaitedAgent {
    /// The agent in the snapshot. `None` if no agent is in the pane.
    pub fn from_snapshot(reference: &str, seen: &ActionSnapshot) -> Option<Self> {
        Some(Self {
            reference: reference.to_owned(),
            runtime_id: seen.runtime_id.clone()?,
            agent_type: seen.agent_type.clone().unwrap_or_default(),
            pane_id: seen.pane_id.clone(),
            state: seen.state,
            turn_pending: seen.turn_pending,
            prompted: seen.submitted_at.is_some(),
            ..Self::default()
        })
    }

    /// Notes that the agent was running since an earlier wait, so that a turn that ended between two waits counts.
    pub fn note_earlier_run(&mut self) {
        self.has_run = true;
    }

    /// An agent that has already ended.
    pub fn ended(reference: &str) -> Self {
        let runtime_id = reference.trim_start_matches("runtime:").to_owned();
        Self { reference: reference.to_owned(), runtime_id, gone: true, ..Self::default() }
    }

    pub fn has_reached(&self) -> bool {
        self.reached.is_some() || (self.gone && self.end_counts)
    }

    /// Whether the agent has an open dialog and the caller waits for another state.
    pub fn asks(&self) -> bool {
        !self.has_reached() && self.state.is_some_and(State::is_waiting)
    }
}

/// The agents that a client waits for, and the states that it waits for.
#[derive(Debug, Default)]
pub struct WaitedAgents {
    pub agents: Vec<WaitedAgent>,
    goals: WaitGoals,
}

impl WaitedAgents {
    pub fn new(agents: Vec<WaitedAgent>, goals: WaitGoals) -> Self {
        let mut waited = Self { agents: Vec::new(), goals };
        for mut agent in agents {
            let WaitedAgent { state, turn_pending, prompted, .. } = agent;
            agent.end_counts = waited.goals.finished;
            apply_update(&mut agent, WaitUpdate { state, turn_pending, prompted }, &waited.goals);
            // The same agent may be given twice.
            if !waited.agents.iter().any(|other| other.runtime_id == agent.runtime_id) {
                waited.agents.push(agent);
            }
        }
        waited
    }

    /// Updates the states from a full list. An agent that is not in the list is gone.
    pub fn update_from_list<'a>(&mut self, panes: impl Iterator<Item = &'a Arc<PaneItem>> + Clone) {
        for agent in &mut self.agents {
            match panes.clone().find(|pane| pane.runtime_id.as_deref() == Some(&agent.runtime_id)) {
                Some(pane) => apply_update(agent, (&**pane).into(), &self.goals),
                None => (agent.gone, agent.state) = (true, None),
            }
        }
    }

    /// Updates the states from one event, so that a state that lasts only a moment is not missed.
    pub fn apply_event(&mut self, event: &WatchEvent) {
        let Some(WatchItem::Pane(pane)) = event.item.as_ref().filter(|_| event.kind != WatchEventKind::Remove) else {
            return;
        };
        for agent in &mut self.agents {
            if pane.runtime_id.as_deref() == Some(&agent.runtime_id) {
                apply_update(agent, (&**pane).into(), &self.goals);
            }
        }
    }

    /// How the wait ended. `None` while the wait continues.
    pub fn outcome(&self, any: bool) -> Option<WaitOutcome> {
        let mut there = self.agents.iter().map(WaitedAgent::has_reached);
        let reached = if any { there.any(|is| is) } else { there.all(|is| is) };
        let mut lost = self.agents.iter().map(|agent| agent.gone && !agent.has_reached());
        let gone = if any { lost.all(|is| is) } else { lost.any(|is| is) };
        // With `any`, another agent may still reach the state while one of them asks.
        let mut stuck = self.agents.iter().map(|agent| agent.asks() || (agent.gone && !agent.has_reached()));
        let asks = if any { stuck.all(|is| is) } else { self.agents.iter().any(WaitedAgent::asks) };
        match (reached, gone, asks) {
            (true, _, _) => Some(WaitOutcome::Reached),
            (false, true, _) => Some(WaitOutcome::Gone),
            (false, false, true) => Some(WaitOutcome::Asks),
            (false, false, false) => None,
        }
    }
}

fn apply_update(agent: &mut WaitedAgent, update: WaitUpdate, goals: &WaitGoals) {
    let WaitUpdate { state, turn_pending, prompted } = update;
    (agent.state, agent.turn_pending, agent.prompted) = (state, turn_pending, prompted);
    agent.has_run |= state == Some(State::Running) || (prompted && !turn_pending);
    let has_run = agent.has_run;
    // While a turn is pending, a state that ends a turn belongs to an earlier turn.
    let is_outdated = |state: State| turn_pending && matches!(state, State::Completed | State::Error | State::Idle);
    let is_goal = |state: &State| goals.are_met(*state, has_run) && !is_outdated(*state);
    agent.reached = agent.reached.or(state.filter(is_goal));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, state: State) -> WaitedAgent {
        WaitedAgent { runtime_id: id.into(), state: Some(state), ..WaitedAgent::default() }
    }

    fn waited(states: &[State]) -> WaitedAgents {
        let agents = states.iter().enumerate().map(|(n, state)| agent(&n.to_string(), *state)).collect();
        WaitedAgents::new(agents, WaitGoals { states: vec![State::Idle, State::Completed], finished: false })
    }

    fn waiting_for_the_end(state: State) -> WaitedAgents {
        WaitedAgents::new(vec![agent("0", state)], WaitGoals { states: Vec::new(), finished: true })
    }

    fn update(state: State, turn_pending: bool) -> WaitUpdate {
        WaitUpdate { state: Some(state), turn_pending, prompted: turn_pending }
    }

    #[test]
    fn an_end_from_before_the_last_text_does_not_count() {
        for state in [State::Completed, State::Error, State::Idle] {
            let goals = WaitGoals { states: vec![state], finished: true };
            let prompted = WaitedAgent { turn_pending: true, prompted: true, ..agent("0", state) };
            let mut waited = WaitedAgents::new(vec![prompted], goals);
            assert_eq!(waited.outcome(false), None, "{state}");
            // The turn was too short to be seen: the state is the same as before the text.
            let answered = WaitUpdate { turn_pending: false, ..update(state, true) };
            apply_update(&mut waited.agents[0], answered, &waited.goals);
            assert_eq!(waited.outcome(false), Some(WaitOutcome::Reached), "{state}");
        }
        let wanted = WaitGoals { states: vec![State::Running], finished: false };
        let mut waited = WaitedAgents::new(vec![agent("0", State::Idle)], wanted);
        apply_update(&mut waited.agents[0], update(State::Running, true), &waited.goals);
        assert_eq!(waited.outcome(false), Some(WaitOutcome::Reached), "a running agent runs");
    }

    #[test]
    fn a_turn_is_finished_however_it_ends() {
        for state in [State::Completed, State::Error] {
            assert_eq!(waiting_for_the_end(state).outcome(false), Some(WaitOutcome::Reached), "{state}");
        }
        let mut idle = waiting_for_the_end(State::Idle);
        assert_eq!(idle.outcome(false), None, "the agent has not run yet");
        for state in [State::Running, State::Idle] {
            apply_update(&mut idle.agents[0], update(state, false), &idle.goals);
        }
        assert_eq!(idle.outcome(false), Some(WaitOutcome::Reached));
        let mut ended = waiting_for_the_end(State::Running);
        ended.update_from_list([].iter());
        assert_eq!(ended.outcome(false), Some(WaitOutcome::Reached));
    }

    #[test]
    fn a_question_that_is_not_waited_for_ends_the_wait() {
        let both = waited(&[State::WaitingApproval, State::Running]);
        assert_eq!((both.outcome(true), both.outcome(false)), (None, Some(WaitOutcome::Asks)));
        assert_eq!(waited(&[State::WaitingApproval, State::WaitingInput]).outcome(true), Some(WaitOutcome::Asks));
        let wanted = WaitGoals { states: vec![State::WaitingApproval], finished: true };
        let asked = WaitedAgents::new(vec![agent("0", State::WaitingApproval)], wanted);
        assert_eq!(asked.outcome(false), Some(WaitOutcome::Reached));
    }

    #[test]
    fn any_needs_one_agent_and_all_needs_each() {
        let both = waited(&[State::Idle, State::Running]);
        assert_eq!((both.outcome(true), both.outcome(false)), (Some(WaitOutcome::Reached), None));
        assert_eq!(waited(&[State::Idle, State::Completed]).outcome(false), Some(WaitOutcome::Reached));
    }

    #[test]
    fn a_gone_agent_ends_a_wait_for_all_but_not_for_any() {
        let mut both = waited(&[State::Running, State::Running]);
        both.agents[0].gone = true;
        assert_eq!((both.outcome(true), both.outcome(false)), (None, Some(WaitOutcome::Gone)));
        both.agents[1].gone = true;
        assert_eq!(both.outcome(true), Some(WaitOutcome::Gone));
    }

    #[test]
    fn an_agent_that_reached_the_state_and_ended_counts_as_reached() {
        let mut one = waited(&[State::Idle]);
        one.update_from_list([].iter());
        assert!(one.agents[0].gone);
        assert_eq!(one.outcome(false), Some(WaitOutcome::Reached));
    }
}
