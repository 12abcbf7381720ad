//! The scenarios in which the model fails, one for each kind of failure. What the agent does then decides the expected
//! state.

use agtmux_testkit::model::ModelFailure;
use agtmux_testkit::real_agents::states::ReportedState::{Error, Idle, Input, Running};
use agtmux_testkit::real_agents::states::{AfterFailure, ScreenState};

use super::scenario::{GroundTruth, Scenario, ScenarioStep, StepAction, scenario, step, turn_ends};

pub(super) fn all() -> impl Iterator<Item = Scenario> {
    ModelFailure::ALL
        .into_iter()
        .flat_map(|failure| AfterFailure::ALL.map(|outcome| failure_scenario(failure, outcome)))
}

fn failure_scenario(failure: ModelFailure, outcome: AfterFailure) -> Scenario {
    let steps = vec![failing_step(failure, outcome)];
    // `make test` runs two failures that end a turn at once.
    let in_core = outcome == AfterFailure::Fails && matches!(failure, ModelFailure::Status(400 | 401));
    Scenario { failure: Some((failure, outcome)), in_core, ..scenario(name(failure), steps) }
}

fn name(failure: ModelFailure) -> &'static str {
    match failure {
        ModelFailure::Status(400) => "error-400",
        ModelFailure::Status(401) => "error-401",
        ModelFailure::Status(403) => "error-403",
        ModelFailure::Status(404) => "error-404",
        ModelFailure::Status(413) => "error-413",
        ModelFailure::Status(429) => "error-429",
        ModelFailure::Status(529) => "error-529",
        ModelFailure::Status(_) => "error-500",
        ModelFailure::Refused => "error-refused",
        ModelFailure::Reset => "error-reset",
        ModelFailure::BrokenStream => "error-broken",
    }
}

/// A turn that fails is never completed, not even briefly. It is idle only before it starts.
fn failing_step(failure: ModelFailure, outcome: AfterFailure) -> ScenarioStep {
    let (action, prompt) = (StepAction::FailingPrompt(failure), failure.prompt());
    match outcome {
        AfterFailure::Fails => {
            let ground_truth = GroundTruth::BelowPrompt(prompt, ScreenState::Failed);
            step("failed", action, ground_truth, &[Error], &[Running, Idle])
        }
        AfterFailure::Retries => {
            let ground_truth = match failure {
                ModelFailure::Refused => GroundTruth::BelowPrompt(prompt, ScreenState::Retrying),
                _ => GroundTruth::ModelAskedAgain(prompt),
            };
            step("retrying", action, ground_truth, &[Running], &[Idle])
        }
        AfterFailure::Asks => {
            let ground_truth = GroundTruth::BelowPrompt(prompt, ScreenState::FailureDialog);
            step("asked", action, ground_truth, &[Input], &[Running, Idle])
        }
        AfterFailure::Recovers => ScenarioStep { action, ..turn_ends(prompt, &[Running, Idle]) },
    }
}
