//! Decides when to capture the screens of agents: directly after the first output of a quiet pane, when the output
//! settles, and at intervals while the output continues.

use std::time::{Duration, Instant};

use agtmux_core::ids::{AgentType, ProcessRef};

use super::agent_map::{AgentMap, FoundAgent};

/// A pane that was quiet for `QUIET_TIME` is captured this long after its first new output. Most redraws are complete
/// by then. If the captured screen shows a turn or a dialog, agtmux does not wait until the output settles.
const EARLY_CAPTURE_DELAY: Duration = Duration::from_millis(30);
const QUIET_TIME: Duration = Duration::from_secs(1);
/// Output has settled after this much silence.
const SETTLE_TIME: Duration = Duration::from_millis(150);
/// If the output of a pane does not settle, the pane is captured this long after its first new output.
const FIRST_CAPTURE_DELAY: Duration = Duration::from_millis(300);
/// How often a screen is captured while output continues.
const WRITING_INTERVAL: Duration = Duration::from_secs(1);
/// How many captures of one pane may follow each other quickly. After that, there is one per [`WRITING_INTERVAL`].
const MAX_BURST: f64 = 4.0;
/// The screen of an agent is captured this long after an event of the agent, because the agent draws the change a
/// moment after it sends the event.
const DRAW_DELAY: Duration = Duration::from_millis(400);
/// How often and for how long the screen is captured after the agent has reported a dialog. The captures end earlier if
/// the screen shows the dialog. Meanwhile, the daemon does not publish the new state of the agent, for about as long as
/// `DIALOG_LOOK_TIME`.
const DIALOG_LOOK_INTERVAL: Duration = Duration::from_millis(60);
const DIALOG_LOOK_TIME: Duration = Duration::from_millis(300);
/// Captures that are due within this time are made together.
const BATCH_WINDOW: Duration = Duration::from_millis(50);
/// The delay before a failed capture is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct ScheduledAgent {
    wrote_at: Option<Instant>,
    /// The time of the first output since the last capture.
    uncaptured_since: Option<Instant>,
    captured_at: Option<Instant>,
    /// When the early capture is due. The capture of the settled screen still follows later.
    early_at: Option<Instant>,
    /// The last capture was made while the pane wrote, so another capture is due when the output ends.
    unsettled: bool,
    /// When a requested capture is due, whether or not the pane writes.
    wanted_at: Option<Instant>,
    /// Set while agtmux looks for a dialog: the time of the next capture, and the time at which agtmux stops looking.
    dialog_look: Option<(Instant, Instant)>,
    credit: f64,
    credit_at: Instant,
}

/// A capture that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueCapture {
    pub(crate) pane: u32,
    pub(crate) agent_type: AgentType,
    pub(crate) process: ProcessRef,
    /// Output had settled before this capture.
    pub(crate) settled: bool,
    /// The capture directly follows the first output of a quiet pane. A capture of the settled screen comes later.
    pub(crate) early: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ScreenSchedule {
    agents: AgentMap<ScheduledAgent>,
}

impl ScreenSchedule {
    /// Updates the set of agents. The screen of a new agent is captured soon.
    pub(crate) fn follow<'a>(&mut self, found: impl Iterator<Item = FoundAgent<'a>>, now: Instant) {
        self.agents.follow(found, |_, _| Some(ScheduledAgent::new(now)));
    }

    pub(crate) fn pane_wrote(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.wrote_at = Some(now);
            agent.uncaptured_since.get_or_insert(now);
        }
    }

    /// Like `pane_wrote`, but for output that agtmux noticed without delay. If the pane was quiet before, plans an
    /// early capture.
    pub(crate) fn pane_wrote_just_now(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(pane)
            && agent.wrote_at.is_none_or(|at| at + QUIET_TIME <= now)
        {
            agent.early_at = Some(now + EARLY_CAPTURE_DELAY);
        }
        self.pane_wrote(pane, now);
    }

    /// Plans a capture, because the agent in this pane sent an event.
    pub(crate) fn agent_sent_event(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.wanted_at = Some(now + DRAW_DELAY);
        }
    }

    /// Plans captures that begin at once, because the agent in this pane reported a dialog. The captures end when one
    /// of them shows a dialog.
    pub(crate) fn look_for_dialog(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.dialog_look = Some((now, now + DIALOG_LOOK_TIME));
        }
    }

    /// Notes that a capture showed a dialog.
    pub(crate) fn dialog_seen(&mut self, pane: u32) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.dialog_look = None;
        }
    }

    /// Plans a capture at this time, even if the pane does not write.
    pub(crate) fn request_at(&mut self, pane: u32, at: Instant) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.wanted_at = Some(agent.wanted_at.map_or(at, |wanted| wanted.min(at)));
        }
    }

    pub(crate) fn request_all(&mut self, now: Instant) {
        self.agents.iter_mut().for_each(|(_, _, _, agent)| agent.wanted_at = Some(now));
    }

    /// Whether agtmux has captured the screen of every agent at least once. A failed attempt counts as a capture.
    pub(crate) fn all_taken(&self) -> bool {
        self.agents.values().all(|agent| agent.captured_at.is_some())
    }

    pub(crate) fn contains(&self, pane: u32) -> bool {
        self.agents.contains(pane)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.agents.values().filter_map(ScheduledAgent::due).min()
    }

    /// Returns the captures that are due. The caller must make these captures, because the schedule forgets them.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        if self.wake_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        let is_due = |agent: &ScheduledAgent| agent.due().is_some_and(|at| at <= now + BATCH_WINDOW);
        let due = self.agents.iter_mut().filter(|(_, _, _, agent)| is_due(agent));
        let mut looks: Vec<DueCapture> = due
            .map(|(pane, agent_type, process, agent)| {
                let agent_type = agent_type.clone();
                let early = agent.take_early(now);
                let settled = !early && agent.take(now);
                DueCapture { pane, agent_type, process, settled, early }
            })
            .collect();
        looks.sort_by_key(|look| look.pane);
        looks
    }

    /// Plans a retry after a failed capture.
    pub(crate) fn capture_failed(&mut self, pane: u32, now: Instant) {
        if let Some(agent) = self.agents.get_mut(pane) {
            agent.wanted_at = Some(now + RETRY_DELAY);
        }
    }
}

impl ScheduledAgent {
    fn new(now: Instant) -> Self {
        Self {
            wrote_at: None,
            uncaptured_since: None,
            captured_at: None,
            early_at: None,
            unsettled: false,
            wanted_at: Some(now),
            dialog_look: None,
            credit: MAX_BURST,
            credit_at: now,
        }
    }

    fn due(&self) -> Option<Instant> {
        self.due_later().into_iter().chain(self.early_at).min()
    }

    /// When the next capture is due, apart from early captures.
    fn due_later(&self) -> Option<Instant> {
        let written = self.wrote_at.zip(self.uncaptured_since).map(|(wrote, from)| {
            let settled = wrote + SETTLE_TIME;
            let rested = self.captured_at.map_or(from, |at| at + WRITING_INTERVAL);
            let meanwhile = rested.max(from + FIRST_CAPTURE_DELAY);
            // A pane that settles again and again uses up its credit. The pane is then captured as rarely as a pane
            // that keeps writing.
            let wait = Duration::from_secs_f64((1.0 - self.credit).max(0.0) * WRITING_INTERVAL.as_secs_f64());
            settled.max(self.credit_at + wait).min(meanwhile)
        });
        let end = self.wrote_at.filter(|_| self.unsettled).map(|wrote| wrote + SETTLE_TIME);
        let look = self.dialog_look.map(|(at, _)| at);
        written.into_iter().chain(end).chain(self.wanted_at).chain(look).min()
    }

    /// Removes the planned early capture. Returns true if there was one and no other capture is due. In this case, the
    /// capture of the settled screen stays planned.
    fn take_early(&mut self, now: Instant) -> bool {
        let is_early = self.early_at.take().is_some();
        is_early && self.due_later().is_none_or(|at| at > now + BATCH_WINDOW)
    }

    /// Notes that a capture is made now. Returns whether the output had settled before the capture.
    fn take(&mut self, now: Instant) -> bool {
        let settled = self.wrote_at.is_none_or(|at| at + SETTLE_TIME <= now);
        let gained = now.saturating_duration_since(self.credit_at).as_secs_f64() / WRITING_INTERVAL.as_secs_f64();
        let next_look = now + DIALOG_LOOK_INTERVAL;
        let was_look = self.dialog_look.is_some();
        self.dialog_look = self.dialog_look.filter(|(_, last)| next_look <= *last).map(|(_, last)| (next_look, last));
        // Looking for a dialog does not delay the captures after output.
        let cost = if was_look { 0.0 } else { 1.0 };
        self.credit = ((self.credit + gained).min(MAX_BURST) - cost).max(0.0);
        self.credit_at = now;
        (self.uncaptured_since, self.captured_at, self.unsettled) = (None, Some(now), !settled);
        self.wanted_at = self.wanted_at.filter(|at| *at > now + BATCH_WINDOW);
        settled
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

    /// The time of each capture in milliseconds, and whether the output had settled by then.
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
    fn a_new_agent_is_captured_once() {
        let start = Instant::now();
        assert_eq!(looks(&mut screens(start), start, 5_000, |_| false), [(0, true)]);
    }

    #[test]
    fn a_burst_of_output_is_captured_when_it_settles() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..5_100).contains(&ms) && ms % 20 == 0);
        assert_eq!(times, [(0, true), (5_230, true)]);
    }

    #[test]
    fn continuous_output_is_captured_once_a_second_and_at_its_end() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..8_000).contains(&ms) && ms % 100 == 0);
        assert_eq!(times, [(0, true), (5_300, false), (6_300, false), (7_300, false), (8_050, true)]);
    }

    #[test]
    fn the_end_of_output_is_captured_even_just_after_another_capture() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 9_000, |ms| (5_000..5_300).contains(&ms) && ms % 10 == 0);
        assert_eq!(times, [(0, true), (5_300, false), (5_440, true)]);
    }

    #[test]
    fn a_pane_that_settles_repeatedly_is_captured_once_a_second() {
        let start = Instant::now();
        let times = looks(&mut screens(start), start, 20_000, |ms| ms % 200 == 0);
        assert!((18..=25).contains(&times.len()), "{} captures in 20 s", times.len());
    }

    #[test]
    fn a_screen_is_captured_shortly_after_an_agent_event() {
        let start = Instant::now();
        let mut screens = screens(start);
        looks(&mut screens, start, 1_000, |_| false);
        screens.agent_sent_event(1, start + millis(1_000));
        assert_eq!(looks(&mut screens, start, 3_000, |_| false), [(1_400, true)]);
    }

    #[test]
    fn a_reported_dialog_is_looked_for_at_once_until_it_is_seen() {
        let start = Instant::now();
        let mut screens = screens(start);
        looks(&mut screens, start, 1_000, |_| false);
        screens.look_for_dialog(1, start + millis(1_000));
        screens.agent_sent_event(1, start + millis(1_000));
        let times = looks(&mut screens, start, 3_000, |_| false);
        assert_eq!(
            times.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(),
            [1_000, 1_060, 1_120, 1_180, 1_240, 1_300, 1_400]
        );
        screens.look_for_dialog(1, start + millis(3_000));
        screens.dialog_seen(1);
        assert_eq!(screens.wake_at(), None);
    }

    #[test]
    fn a_quiet_pane_is_captured_early_and_again_when_its_output_settles() {
        let start = Instant::now();
        let mut screens = screens(start);
        looks(&mut screens, start, 1_000, |_| false);
        screens.pane_wrote_just_now(1, start + millis(1_000));
        let early = screens.take_due(start + millis(1_030));
        assert!(matches!(early[..], [DueCapture { early: true, settled: false, .. }]), "{early:?}");
        assert!(screens.take_due(start + millis(1_149)).is_empty());
        let settled = screens.take_due(start + millis(1_150));
        assert!(matches!(settled[..], [DueCapture { early: false, settled: true, .. }]), "{settled:?}");
        assert_eq!(screens.wake_at(), None);
    }

    #[test]
    fn a_pane_that_keeps_writing_is_not_captured_early() {
        let start = Instant::now();
        let mut screens = screens(start);
        screens.pane_wrote_just_now(1, start);
        screens.take_due(start + millis(30));
        let mut early = 0;
        for ms in 31..5_000 {
            if ms % 100 == 0 {
                screens.pane_wrote_just_now(1, start + millis(ms));
            }
            early += screens.take_due(start + millis(ms)).iter().filter(|due| due.early).count();
        }
        assert_eq!(early, 0);
    }

    #[test]
    fn a_new_process_is_a_new_agent() {
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
