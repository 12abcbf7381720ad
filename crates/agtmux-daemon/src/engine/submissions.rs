//! Tracks the texts that actions submit to agents.

use agtmux_core::evidence::{Assertion, Claim, Observation, Source};
use agtmux_core::runtime::RuntimeId;

use super::step::EngineStep;
use super::{Engine, EngineHandle, EngineInput};

/// The progress of a text that is submitted to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmissionProgress {
    /// agtmux is about to press Enter. `relayed` is true if another daemon presses it.
    Begins { relayed: bool },
    /// The screen shows that the agent has begun to work.
    WorkSeen,
    /// agtmux could not submit the text.
    Failed,
}

impl EngineHandle {
    /// Tells the engine about the progress of a submission. Returns when clients can see it.
    pub(crate) async fn note_submission(&self, runtime: RuntimeId, progress: SubmissionProgress) {
        self.request(|done| EngineInput::Submission(runtime, progress, done)).await;
    }
}

impl Engine {
    pub(super) fn apply_submission(
        &mut self,
        runtime: &RuntimeId,
        progress: SubmissionProgress,
        step: &mut EngineStep,
    ) {
        if !self.runtime_panes.contains_key(runtime) {
            return;
        }
        match progress {
            SubmissionProgress::Begins { relayed } => {
                let state = self.states.state(runtime).map(|record| record.state);
                self.submissions.begin(runtime, state, relayed, step.now);
            }
            SubmissionProgress::WorkSeen => return self.submissions.work_seen(runtime, step.now),
            SubmissionProgress::Failed => {
                self.submissions.settle(runtime);
            }
        }
        self.publish_submission(runtime, step);
    }

    /// Requests the captures that are due. Also publishes the submissions whose turn is no longer pending, because the
    /// wait for it was too long.
    pub(super) fn check_submissions(&mut self, step: &mut EngineStep) {
        let due = self.submissions.take_due(step.now);
        due.looks.iter().for_each(|runtime| self.request_recheck(runtime));
        due.expired.iter().for_each(|runtime| self.publish_submission(runtime, step));
    }

    /// Publishes the changed submission of this agent to clients and hubs.
    pub(super) fn publish_submission(&self, runtime: &RuntimeId, step: &mut EngineStep) {
        if let Some(pane) = self.runtime_panes.get(runtime) {
            step.mark_pane_changed(&self.fleet, pane);
            step.changed_evidence.insert(runtime.clone());
        }
    }
}

/// Whether these observations show that the agent neither works nor asks. They must come from a capture of a settled
/// screen.
pub(super) fn shows_rest(observations: &[Observation]) -> bool {
    let is_busy = |seen: &Observation| matches!(seen.assertion, Assertion::Running | Assertion::DialogOpen(_));
    let rests = |seen: &Observation| {
        let about_turn = seen.assertion.claim() == Claim::Turn && seen.source == Source::Screen;
        about_turn && seen.conclusive && seen.settled
    };
    observations.iter().any(rests) && !observations.iter().any(is_busy)
}
