//! When the screens of agents are looked at: when their output settles, and now and then while it does not.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agtmux_core::ids::{AgentType, ProcessRef};

/// Output has settled when nothing came for this long.
const SETTLE_TIME: Duration = Duration::from_millis(150);
/// The first look after a rest, while output goes on.
const FIRST_CAPTURE_DELAY: Duration = Duration::from_millis(300);
/// How often a screen is looked at while output goes on.
const WRITING_INTERVAL: Duration = Duration::from_secs(1);
/// Looks at one pane come a few at once, then once in [`WHILE_WRITING`].
const MAX_BURST: f64 = 4.0;
/// An agent that said something shows it a moment later.
const DRAW_DELAY: Duration = Duration::from_millis(400);
/// Looks that are due this soon are made together.
const BATCH_WINDOW: Duration = Duration::from_millis(50);
/// A look that brought no answer is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct ScheduledAgent {
    agent_type: AgentType,
    process: ProcessRef,
    wrote_at: Option<Instant>,
    /// The first output that no look has seen.
    uncaptured_since: Option<Instant>,
    captured_at: Option<Instant>,
    /// The last look came in the middle of output: one is missing that sees how it ended.
    unsettled: bool,
    /// A look that is wanted whatever the pane writes.
    wanted_at: Option<Instant>,
    credit: f64,
    credit_at: Instant,
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DueCapture {
    pub(super) pane: u32,
    pub(super) agent_type: AgentType,
    pub(super) process: ProcessRef,
    /// Nothing was written for a while before this look.
    pub(super) settled: bool,
}

#[derive(Debug, Default)]
pub(super) struct ScreenSchedule {
    agents: HashMap<u32, ScheduledAgent>,
}

impl ScreenSchedule {
    /// Follows the agents that were found. A new one is looked at soon.
    pub(super) fn follow<'a>(&mut self, found: impl Iterator<Item = (u32, &'a AgentType, ProcessRef)>, now: Instant) {
        let mut before = std::mem::take(&mut self.agents);
        for (pane, agent_type, process) in found {
            let agent = match before.remove(&pane) {
                Some(agent) if agent.process == process && agent.agent_type == *agent_type => agent,
                _ => ScheduledAgent::new(agent_type.clone(), process, now),
            };
            self.agents.insert(pane, agent);
        }
    }

    pub(super) fn pane_wrote(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(&pane) {
            agent.wrote_at = Some(now);
            agent.uncaptured_since.get_or_insert(now);
        }
    }

    /// The agent in this pane said something: what it shows is worth a look.
    pub(super) fn agent_spoke(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(&pane) {
            agent.wanted_at = Some(now + DRAW_DELAY);
        }
    }

    /// It is worth a look at that time, whatever is known of its output.
    pub(super) fn request_at(&mut self, pane: u32, at: Instant) {
        if let Some(agent) = self.agents.get_mut(&pane) {
            agent.wanted_at = Some(agent.wanted_at.map_or(at, |wanted| wanted.min(at)));
        }
    }

    pub(super) fn request_all(&mut self, now: Instant) {
        self.agents.values_mut().for_each(|agent| agent.wanted_at = Some(now));
    }

    pub(super) fn contains(&self, pane: u32) -> bool {
        self.agents.contains_key(&pane)
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.agents.values().filter_map(ScheduledAgent::due).min()
    }

    /// The panes that are due. They count as looked at from now on.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        if self.wake_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        let due = self.agents.iter_mut().filter(|(_, agent)| agent.due().is_some_and(|at| at <= now + BATCH_WINDOW));
        let mut looks: Vec<DueCapture> = due.map(|(pane, agent)| agent.take(*pane, now)).collect();
        looks.sort_by_key(|look| look.pane);
        looks
    }

    /// The look brought nothing.
    pub(super) fn capture_failed(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(&pane) {
            agent.wanted_at = Some(now + RETRY_DELAY);
        }
    }
}

impl ScheduledAgent {
    fn new(agent_type: AgentType, process: ProcessRef, now: Instant) -> Self {
        Self {
            agent_type,
            process,
            wrote_at: None,
            uncaptured_since: None,
            captured_at: None,
            unsettled: false,
            wanted_at: Some(now),
            credit: MAX_BURST,
            credit_at: now,
        }
    }

    fn due(&self) -> Option<Instant> {
        let written = self.wrote_at.zip(self.uncaptured_since).map(|(wrote, from)| {
            let settled = wrote + SETTLE_TIME;
            let rested = self.captured_at.map_or(from, |at| at + WRITING_INTERVAL);
            let meanwhile = rested.max(from + FIRST_CAPTURE_DELAY);
            // Without credit a pane that settles again and again counts as one that goes on writing.
            let wait = Duration::from_secs_f64((1.0 - self.credit).max(0.0) * WRITING_INTERVAL.as_secs_f64());
            settled.max(self.credit_at + wait).min(meanwhile)
        });
        let end = self.wrote_at.filter(|_| self.unsettled).map(|wrote| wrote + SETTLE_TIME);
        written.into_iter().chain(end).chain(self.wanted_at).min()
    }

    fn take(&mut self, pane: u32, now: Instant) -> DueCapture {
        let settled = self.wrote_at.is_none_or(|at| at + SETTLE_TIME <= now);
        let gained = now.saturating_duration_since(self.credit_at).as_secs_f64() / WRITING_INTERVAL.as_secs_f64();
        self.credit = ((self.credit + gained).min(MAX_BURST) - 1.0).max(0.0);
        self.credit_at = now;
        (self.uncaptured_since, self.captured_at, self.unsettled) = (None, Some(now), !settled);
        self.wanted_at = self.wanted_at.filter(|at| *at > now + BATCH_WINDOW);
        DueCapture { pane, agent_type: self.agent_type.clone(), process: self.process, settled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn screens(start: Instant) -> ScreenSchedule {
        let mut screens = ScreenSchedule::default();
        let agent = AgentType::new("claude");
        screens.follow([(1, &agent, ProcessRef { pid: 1, start: 1 })].into_iter(), start);
        screens
    }

    /// The milliseconds at which the pane is looked at, and whether it had settled.
    fn looks(
        screens: &mut ScreenSchedule,
        start: Instant,
        until: u64,
        writes: impl Fn(u64) -> bool,
    ) -> Vec<(u64, bool)> {
        let mut times = Vec::new();
        for ms in 0..until {
            let now = start + millis(ms);
            if writes(ms) {
                screens.pane_wrote(1, now);
            }
            times.extend(screens.take_due(now).into_iter().map(|look| (ms, look.settled)));
        }
        times
    }

    #[test]
    fn a_new_agent_is_looked_at_once() {
        let start = Instant::now();
        assert_eq!(looks(&mut screens(start), start, 5_000, |_| false), [(0, true)]);
    }

    #[test]
    fn a_burst_of_output_is_looked_at_when_it_settles() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..5_100).contains(&ms) && ms % 20 == 0);
        assert_eq!(times, [(0, true), (5_230, true)]);
    }

    #[test]
    fn output_that_goes_on_is_looked_at_once_a_second_and_when_it_ends() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..8_000).contains(&ms) && ms % 100 == 0);
        assert_eq!(times, [(0, true), (5_300, false), (6_300, false), (7_300, false), (8_050, true)]);
    }

    #[test]
    fn the_end_of_output_is_seen_although_a_look_came_just_before_it() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..5_300).contains(&ms) && ms % 10 == 0);
        assert_eq!(times, [(0, true), (5_300, false), (5_440, true)]);
    }

    #[test]
    fn one_that_settles_again_and_again_is_looked_at_once_a_second() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 20_000, |ms| ms % 200 == 0);
        assert!((18..=25).contains(&times.len()), "{} looks in 20 s", times.len());
    }

    #[test]
    fn what_an_agent_says_is_looked_at_a_moment_later() {
        let start = Instant::now();
        let mut screens = screens(start);
        looks(&mut screens, start, 1_000, |_| false);
        screens.agent_spoke(1, start + millis(1_000));
        assert_eq!(looks(&mut screens, start, 3_000, |_| false), [(1_400, true)]);
    }

    #[test]
    fn another_process_is_another_agent() {
        let start = Instant::now();
        let mut screens = screens(start);
        looks(&mut screens, start, 1_000, |_| false);
        let agent = AgentType::new("claude");
        screens.follow([(1, &agent, ProcessRef { pid: 2, start: 2 })].into_iter(), start + millis(1_000));
        assert_eq!(screens.take_due(start + millis(1_000)).len(), 1);
        screens.follow(std::iter::empty(), start + millis(1_001));
        assert_eq!(screens.wake_at(), None);
    }
}
