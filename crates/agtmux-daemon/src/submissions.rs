//! The texts that agtmux submitted to agents, and whether the turns of these texts are pending.
//!
//! Directly after Enter, the state of an agent is still the one from before the text. A client that waits for the end
//! of the turn must not count that state. A turn is pending until the state shows that the agent works, or until a
//! later screen shows that the agent is at rest.

use std::collections::BTreeMap;

use agtmux_core::resolver::StateTransition;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

/// How long an agent may take to show that it works. A screen at rest proves nothing before this time has passed.
const START_TIMEOUT: SignedDuration = SignedDuration::from_secs(5);
/// After `work_seen`, a screen at rest that is captured at least this much later means that the turn is over.
const SHORT_TURN_TIME: SignedDuration = SignedDuration::from_millis(500);
/// How long to wait for another turn after one has ended, if the agent was busy when the text was submitted, or if the
/// turn seems to end early. A screen may look at rest for a moment while the agent prepares its first turn.
const NEXT_TURN_TIMEOUT: SignedDuration = SignedDuration::from_secs(1);
/// How long to wait for a screen at rest. The wait is limited, because some agents have screens that match no rule.
const REST_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// The last text that agtmux submitted to each agent.
#[derive(Debug, Default)]
pub(crate) struct Submissions(BTreeMap<RuntimeId, Submission>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Submission {
    /// When Enter was pressed.
    pub(crate) at: Timestamp,
    /// How many texts the daemon on the agent's host has submitted to the agent.
    pub(crate) number: u64,
    /// This daemon relayed the text, and the agent's host has not reported it yet.
    relayed: bool,
    /// The daemon on the agent's host follows the turn.
    on_host: bool,
    pending: Option<PendingTurn>,
}

impl Submission {
    /// Whether the turn of the text is pending.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

/// Why the turn of a text counts as pending.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PendingTurn {
    /// The agent is still busy with an earlier text.
    Queued,
    /// agtmux has not yet seen the agent work on the text.
    Unseen(UnseenTurn),
    /// The daemon on the agent's host reports the turn as pending.
    OnHost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UnseenTurn {
    /// A screen that shows the agent at rest ends the wait if it was captured at this time or later.
    rest_counts_from: Timestamp,
    /// Whether a capture at `rest_counts_from` was requested.
    look_requested: bool,
}

impl PendingTurn {
    fn unseen(rest_counts_from: Timestamp) -> Self {
        Self::Unseen(UnseenTurn { rest_counts_from, look_requested: false })
    }
}

impl UnseenTurn {
    fn expires_at(&self) -> Timestamp {
        after(self.rest_counts_from, REST_TIMEOUT)
    }

    fn next_deadline(&self) -> Timestamp {
        if self.look_requested { self.expires_at() } else { self.rest_counts_from }
    }
}

/// What the daemon on another host reports about the last text that it submitted to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportedSubmission {
    pub(crate) at: Timestamp,
    pub(crate) number: u64,
    pub(crate) pending: bool,
}

/// The work that is due because time has passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DueSubmissions {
    /// The agents whose screens must be captured.
    pub(crate) looks: Vec<RuntimeId>,
    /// The agents whose turns are no longer pending.
    pub(crate) expired: Vec<RuntimeId>,
}

impl Submissions {
    pub(crate) fn get(&self, runtime: &RuntimeId) -> Option<&Submission> {
        self.0.get(runtime)
    }

    /// Notes that an agent in this state is about to get a text by Enter. `relayed` means that the daemon on another
    /// host presses Enter.
    pub(crate) fn begin(&mut self, runtime: &RuntimeId, state: Option<State>, relayed: bool, now: Timestamp) {
        let number = self.0.get(runtime).map_or(0, |earlier| earlier.number) + u64::from(!relayed);
        let pending = match state.is_some_and(is_at_work) {
            true => PendingTurn::Queued,
            false => PendingTurn::unseen(after(now, START_TIMEOUT)),
        };
        self.0.insert(runtime.clone(), Submission { at: now, number, relayed, on_host: false, pending: Some(pending) });
    }

    /// Notes that the code which pressed Enter then saw the agent begin to work. The turn may end before its state is
    /// published.
    pub(crate) fn work_seen(&mut self, runtime: &RuntimeId, now: Timestamp) {
        if let Some(PendingTurn::Unseen(turn)) = self.pending_mut(runtime) {
            turn.rest_counts_from = turn.rest_counts_from.min(after(now, SHORT_TURN_TIME));
        }
    }

    /// Notes that the turn is no longer pending, or that the text was not submitted. Returns whether the turn was
    /// pending.
    pub(crate) fn settle(&mut self, runtime: &RuntimeId) -> bool {
        self.0.get_mut(runtime).is_some_and(|submission| submission.pending.take().is_some())
    }

    /// Notes a transition. Returns whether clients see a change.
    pub(crate) fn record(&mut self, transition: &StateTransition, now: Timestamp) -> bool {
        let Some(submission) = self.0.get_mut(&transition.runtime).filter(|submission| !submission.on_host) else {
            return false;
        };
        let before = transition.from.as_ref().map(|record| record.state);
        let is_early = now < after(submission.at, START_TIMEOUT);
        match (&submission.pending, is_at_work(transition.to.state)) {
            (Some(PendingTurn::Unseen(_)), true) => {
                submission.pending = None;
                true
            }
            // The agent may begin the submitted turn a moment later.
            (Some(PendingTurn::Queued), false) => {
                let from = after(submission.at, START_TIMEOUT).max(after(now, NEXT_TURN_TIMEOUT));
                submission.pending = Some(PendingTurn::unseen(from));
                false
            }
            // The turn may not be over: `idle` often means only that nothing on the screen shows work.
            (None, false) if is_early && (before, transition.to.state) == (Some(State::Running), State::Idle) => {
                submission.pending = Some(PendingTurn::unseen(after(now, NEXT_TURN_TIMEOUT)));
                true
            }
            _ => false,
        }
    }

    /// Notes that a screen showed the agent at rest. Returns whether the turn is no longer pending.
    pub(crate) fn rest_seen(&mut self, runtime: &RuntimeId, captured_at: Timestamp) -> bool {
        let counts = match self.pending_mut(runtime) {
            Some(PendingTurn::Unseen(turn)) => captured_at >= turn.rest_counts_from,
            _ => false,
        };
        counts && self.settle(runtime)
    }

    /// Applies the report of the agent's host. Returns whether something has changed.
    pub(crate) fn apply_report(&mut self, runtime: &RuntimeId, report: &ReportedSubmission) -> bool {
        let known = self.0.get(runtime);
        let is_outdated = |known: &Submission| known.relayed && known.is_pending() && report.number <= known.number;
        if known.is_some_and(is_outdated) {
            return false;
        }
        let pending = report.pending.then_some(PendingTurn::OnHost);
        let reported = Submission { at: report.at, number: report.number, relayed: false, on_host: true, pending };
        let has_changed = known != Some(&reported);
        self.0.insert(runtime.clone(), reported);
        has_changed
    }

    /// Returns the work that is due.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> DueSubmissions {
        let mut due = DueSubmissions::default();
        for (runtime, submission) in &mut self.0 {
            let Some(PendingTurn::Unseen(turn)) = &mut submission.pending else { continue };
            if turn.next_deadline() > now {
                continue;
            }
            if turn.look_requested {
                submission.pending = None;
                due.expired.push(runtime.clone());
            } else {
                turn.look_requested = true;
                due.looks.push(runtime.clone());
            }
        }
        due
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let deadline = |submission: &Submission| match &submission.pending {
            Some(PendingTurn::Unseen(turn)) => Some(turn.next_deadline()),
            _ => None,
        };
        self.0.values().filter_map(deadline).min()
    }

    pub(crate) fn forget(&mut self, runtime: &RuntimeId) {
        self.0.remove(runtime);
    }

    /// Moves all times by this much, because the clock of this machine was set.
    pub(crate) fn shift_clock(&mut self, by: SignedDuration) {
        self.0.values_mut().for_each(|submission| submission.at = after(submission.at, by));
        self.skip_time(by);
    }

    /// Makes all waits longer by this much, because the machine slept.
    pub(crate) fn skip_time(&mut self, by: SignedDuration) {
        for submission in self.0.values_mut() {
            if let Some(PendingTurn::Unseen(turn)) = &mut submission.pending {
                turn.rest_counts_from = after(turn.rest_counts_from, by);
            }
        }
    }

    fn pending_mut(&mut self, runtime: &RuntimeId) -> Option<&mut PendingTurn> {
        self.0.get_mut(runtime)?.pending.as_mut()
    }
}

fn is_at_work(state: State) -> bool {
    matches!(state, State::Running | State::WaitingApproval | State::WaitingInput)
}

fn after(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use agtmux_core::runtime::StateRecord;
    use agtmux_core::state::ReasonCode;

    use super::*;

    fn runtime() -> RuntimeId {
        RuntimeId::from_stored("one".into())
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + millis).expect("in range")
    }

    fn submitted_in(state: State) -> Submissions {
        let mut submissions = Submissions::default();
        submissions.begin(&runtime(), Some(state), false, at(0));
        submissions
    }

    fn is_pending(submissions: &Submissions) -> bool {
        submissions.get(&runtime()).is_some_and(Submission::is_pending)
    }

    fn becomes(submissions: &mut Submissions, state: State, millis: i64) -> bool {
        changes(submissions, None, state, millis)
    }

    fn changes(submissions: &mut Submissions, from: Option<State>, to: State, millis: i64) -> bool {
        let record = |state| StateRecord { state, ..StateRecord::initial(ReasonCode::NoAdapter, at(millis)) };
        let transition = StateTransition { runtime: runtime(), from: from.map(record), to: record(to) };
        submissions.record(&transition, at(millis))
    }

    #[test]
    fn a_turn_that_seems_to_end_early_is_pending_until_a_second_look() {
        let mut submissions = submitted_in(State::Idle);
        assert!(becomes(&mut submissions, State::Running, 300));
        assert!(changes(&mut submissions, Some(State::Running), State::Idle, 600));
        assert!(is_pending(&submissions) && !submissions.rest_seen(&runtime(), at(1_500)));
        assert!(becomes(&mut submissions, State::Running, 1_550), "the agent was not at rest");
        assert!(changes(&mut submissions, Some(State::Running), State::Idle, 4_900));
        assert!(submissions.rest_seen(&runtime(), at(5_900)));
        // A turn is over at once if it ends with a result, or if it does not end early.
        for (state, millis) in [(State::Completed, 600), (State::Error, 600), (State::Idle, 5_000)] {
            let mut submissions = submitted_in(State::Idle);
            assert!(becomes(&mut submissions, State::Running, 300));
            assert!(!changes(&mut submissions, Some(State::Running), state, millis) && !is_pending(&submissions));
        }
    }

    #[test]
    fn a_turn_is_pending_until_the_agent_works_or_asks() {
        for state in [State::Running, State::WaitingApproval, State::WaitingInput] {
            let mut submissions = submitted_in(State::Completed);
            assert!(!becomes(&mut submissions, State::Idle, 10), "the end of the turn before");
            assert!(is_pending(&submissions));
            assert!(becomes(&mut submissions, state, 20), "{state}");
            assert!(!is_pending(&submissions));
        }
    }

    #[test]
    fn a_turn_that_was_not_seen_ends_with_a_late_screen_at_rest() {
        let mut submissions = submitted_in(State::Completed);
        assert!(!submissions.rest_seen(&runtime(), at(4_999)), "the agent may not have drawn the turn yet");
        assert_eq!(submissions.next_deadline(), Some(at(5_000)));
        let due = submissions.take_due(at(5_000));
        assert_eq!((due.looks, due.expired), (vec![runtime()], Vec::new()));
        assert!(submissions.rest_seen(&runtime(), at(5_400)));
        assert_eq!((is_pending(&submissions), submissions.next_deadline()), (false, None));
    }

    #[test]
    fn a_short_turn_that_the_sender_saw_ends_sooner() {
        let mut submissions = submitted_in(State::Idle);
        submissions.work_seen(&runtime(), at(100));
        assert!(!submissions.rest_seen(&runtime(), at(599)));
        assert!(submissions.rest_seen(&runtime(), at(600)));
    }

    #[test]
    fn a_turn_without_any_screen_at_rest_does_not_stay_pending() {
        let mut submissions = submitted_in(State::Idle);
        assert_eq!(submissions.take_due(at(5_000)).looks, [runtime()]);
        assert_eq!(submissions.take_due(at(14_999)), DueSubmissions::default());
        assert_eq!(submissions.take_due(at(15_000)).expired, [runtime()]);
        assert!(!is_pending(&submissions));
    }

    #[test]
    fn the_end_of_the_turn_before_a_queued_text_does_not_count() {
        let mut submissions = submitted_in(State::Running);
        assert!(!submissions.rest_seen(&runtime(), at(9_000)), "the earlier turn runs");
        assert!(!becomes(&mut submissions, State::Completed, 60_000));
        assert!(!submissions.rest_seen(&runtime(), at(60_900)), "the next turn may begin");
        assert!(becomes(&mut submissions, State::Running, 60_950));

        let mut steered = submitted_in(State::Running);
        assert!(!becomes(&mut steered, State::Completed, 60_000));
        assert!(steered.rest_seen(&runtime(), at(61_000)), "the agent used the text in the same turn");
    }

    #[test]
    fn a_relayed_text_is_pending_until_the_host_has_reported_it() {
        let report = |number, pending| ReportedSubmission { at: at(1), number, pending };
        let mut submissions = Submissions::default();
        assert!(submissions.apply_report(&runtime(), &report(3, false)));
        submissions.begin(&runtime(), Some(State::Completed), true, at(0));
        assert!(!submissions.apply_report(&runtime(), &report(3, false)), "sent before the text");
        assert!(is_pending(&submissions));
        assert!(submissions.apply_report(&runtime(), &report(4, true)));
        assert!(is_pending(&submissions) && !becomes(&mut submissions, State::Running, 5), "the host decides");
        assert!(submissions.apply_report(&runtime(), &report(4, false)));
        assert!(!submissions.apply_report(&runtime(), &report(4, false)), "no news");
        assert!(!is_pending(&submissions));
    }

    #[test]
    fn a_text_that_was_not_submitted_is_not_pending() {
        let mut submissions = submitted_in(State::Idle);
        assert!(submissions.settle(&runtime()));
        assert!(!submissions.settle(&runtime()));
        assert_eq!(submissions.get(&runtime()).map(|submission| submission.number), Some(1));
    }

    #[test]
    fn a_clock_that_is_set_does_not_end_the_wait() {
        let mut submissions = submitted_in(State::Idle);
        submissions.shift_clock(SignedDuration::from_secs(3600));
        assert_eq!(submissions.next_deadline(), Some(at(3_605_000)));
        assert_eq!(submissions.get(&runtime()).map(|submission| submission.at), Some(at(3_600_000)));
    }
}
