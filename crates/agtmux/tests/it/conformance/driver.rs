//! Runs a scenario and judges the states that agtmux reports during it.

use std::time::{Duration, Instant};

use agtmux_testkit::model::ModelFailure;
use agtmux_testkit::process;
use agtmux_testkit::real_agents::poll_until;
use agtmux_testkit::real_agents::sandbox::AgentSandbox;
use agtmux_testkit::real_agents::screen_pattern::AgentScreen;
use agtmux_testkit::real_agents::states::{EvidenceMode, ReportedState, ScreenState};
use agtmux_testkit::real_agents::{ConformanceAgent, DialogReply, LaunchMode};

use super::outcomes::StepOutcome;
use super::record::EvidenceRecorder;
use super::scenario::{GroundTruth, Scenario, ScenarioStep, StepAction};
use super::step_verdict::{StepTimeline, judge_step};

/// How long an agent may take to show a state.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(45);
/// How long to wait until agtmux reports a state. This only limits the wait; the conformance report lists the actual
/// lag.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long agtmux must keep reporting the right state. Every state that is not transient lasts longer than this.
const HOLD_TIME: Duration = Duration::from_millis(1200);

pub(crate) struct ScenarioDriver<'a> {
    pub(crate) agent: &'a dyn ConformanceAgent,
    pub(crate) sandbox: &'a AgentSandbox,
    pub(crate) mode: EvidenceMode,
    pub(crate) recorder: Option<&'a EvidenceRecorder>,
}

/// The reason why a scenario cannot continue.
#[derive(Debug)]
pub(crate) struct DriveError(pub(crate) String);

impl ScenarioDriver<'_> {
    /// Starts the agent and waits until it accepts prompts and agtmux reports it.
    pub(crate) fn start(&self, launch: &LaunchMode) -> Result<(), DriveError> {
        self.sandbox.launch(self.agent, launch);
        let ready = match launch {
            LaunchMode::Plan => ScreenState::ReadyToPlan,
            _ => ScreenState::Ready,
        };
        if *launch == LaunchMode::Plan && !self.agent.keys(DialogReply::PlanMode).is_empty() {
            self.wait_for_screen(ScreenState::Ready)?;
            self.press_until(DialogReply::PlanMode, ready);
        }
        self.wait_for_screen(ready)?;
        let is_reported = || {
            !matches!(self.reported_state(), ReportedState::NoAgent | ReportedState::Unknown) || self.has_no_adapter()
        };
        poll_until(REPORT_TIMEOUT, || is_reported().then_some(()));
        Ok(())
    }

    /// Runs all steps. The second part of the result is the error that ended the run early.
    pub(crate) fn run_scenario(
        &self,
        scenario: &Scenario,
        launch: &LaunchMode,
    ) -> (Vec<StepOutcome>, Option<DriveError>) {
        let mut outcomes = Vec::new();
        // Each step starts at the end of the previous one, so that every report belongs to a step.
        let mut began = Instant::now();
        for step in &scenario.steps {
            match self.run_step(scenario, step, launch, began) {
                Ok((outcome, ended)) => {
                    outcomes.push(outcome);
                    began = ended;
                }
                Err(DriveError(why)) => return (outcomes, Some(DriveError(format!("{}: {why}", step.name)))),
            }
        }
        (outcomes, None)
    }

    fn run_step(
        &self,
        scenario: &Scenario,
        step: &ScenarioStep,
        launch: &LaunchMode,
        began: Instant,
    ) -> Result<(StepOutcome, Instant), DriveError> {
        let job = self.sandbox.job_pids();
        self.perform_action(&step.action, launch)?;
        let truth_at = self.wait_for_ground_truth(step, &job, began)?;
        if let Some(recorder) = self.recorder {
            recorder.record(self, scenario, step, "first");
        }
        let accepted = step.accepted(self.mode);
        let is_reported = || {
            accepted.contains(&self.reported_state())
                || (self.has_no_adapter() && !accepted.contains(&ReportedState::NoAgent))
        };
        poll_until(REPORT_TIMEOUT, || is_reported().then_some(()));
        // Waits for the whole hold time, or until the report changes to a wrong state.
        let hold_time = if step.transient { Duration::ZERO } else { HOLD_TIME };
        let is_right = accepted.contains(&self.reported_state());
        poll_until(hold_time, || (is_right && !accepted.contains(&self.reported_state())).then_some(()));
        let held_until = Instant::now();
        let (has_hooks, reports) = (self.mode == EvidenceMode::Hooks, self.sandbox.watch.state_reports());
        let timeline = StepTimeline { has_hooks, reports, began, truth_at, held_until };
        let outcome = judge_step(step, accepted, &timeline);
        if let Some(recorder) = self.recorder.filter(|_| !step.transient) {
            recorder.record(self, scenario, step, "");
        }
        Ok((outcome, held_until))
    }

    fn reported_state(&self) -> ReportedState {
        self.sandbox.watch.state_reports().last().map_or(ReportedState::NoAgent, |report| report.state)
    }

    /// Whether this build has no adapter for the agent. In this case agtmux will not report a state.
    fn has_no_adapter(&self) -> bool {
        self.sandbox.watch.state_reports().last().is_some_and(|report| report.reason.as_deref() == Some("no_adapter"))
    }

    fn perform_action(&self, action: &StepAction, launch: &LaunchMode) -> Result<(), DriveError> {
        let sandbox = self.sandbox;
        match action {
            StepAction::Wait => {}
            StepAction::Launch => sandbox.launch(self.agent, launch),
            StepAction::Prompt(text) => self.submit(text, |text| sandbox.paste(text))?,
            StepAction::FailingPrompt(failure) => {
                if *failure == ModelFailure::Refused {
                    sandbox.model.stop();
                }
                self.submit(failure.prompt(), |text| sandbox.paste(text))?;
            }
            StepAction::SlashCommand(command) => {
                self.submit(self.agent.slash_command(*command), |text| sandbox.type_text(text))?
            }
            StepAction::Command(text) => self.submit(text, |text| sandbox.type_text(text))?,
            StepAction::Reply(reply) => self.press_all(self.agent.keys(*reply)),
            // Signals the whole job as `kill %1` does: some agents are two processes, and the outer one forwards no
            // signals.
            StepAction::Signal(signal) => sandbox.job_pids().into_iter().for_each(|pid| {
                process::signal(pid, *signal);
            }),
        }
        Ok(())
    }

    /// Presses the keys again until the screen shows the state, because agents drop keys right after their start.
    fn press_until(&self, reply: DialogReply, state: ScreenState) {
        const TIMEOUT: Duration = Duration::from_secs(2);
        const TRIES: usize = 5;
        let Some(pattern) = self.agent.screen_pattern(state) else { return };
        for _ in 0..TRIES {
            self.press_all(self.agent.keys(reply));
            if poll_until(TIMEOUT, || pattern.matches(&self.sandbox.capture()).then_some(())).is_some() {
                return;
            }
        }
    }

    /// Presses the keys one after the other. Before each key, waits until the screen has stopped changing.
    pub(crate) fn press_all(&self, keys: &[&str]) {
        for key in keys {
            self.wait_until_steady();
            self.sandbox.press(key);
        }
    }

    /// Enters the text and presses Enter when the input box shows it. An Enter too soon after a paste becomes part of
    /// the paste.
    pub(crate) fn submit(&self, text: &str, enter: impl Fn(&str)) -> Result<(), DriveError> {
        enter(text);
        let is_visible = || self.sandbox.capture().screen.contains(text).then_some(());
        poll_until(SCREEN_TIMEOUT, is_visible)
            .ok_or_else(|| DriveError(format!("`{text}` did not appear in the input box")))?;
        self.wait_until_steady();
        self.press_enter();
        Ok(())
    }

    /// Presses Enter again if the screen does not change, because a busy agent drops an Enter right after a paste.
    fn press_enter(&self) {
        const TIMEOUT: Duration = Duration::from_secs(3);
        const TRIES: usize = 3;
        let before = self.sandbox.capture();
        for _ in 0..TRIES {
            self.sandbox.press("Enter");
            if poll_until(TIMEOUT, || (self.sandbox.capture().screen != before.screen).then_some(())).is_some() {
                return;
            }
        }
    }

    /// The last rows that are not empty.
    fn bottom_rows(&self) -> Vec<String> {
        let capture = self.sandbox.capture();
        capture.screen.trim_end().lines().rev().take(3).map(str::to_owned).collect()
    }

    /// Waits until the bottom rows, which have no spinner, stay the same for 150 ms.
    fn wait_until_steady(&self) {
        const APART: Duration = Duration::from_millis(150);
        let (mut last, mut since) = (self.bottom_rows(), Instant::now());
        poll_until(Duration::from_secs(3), || {
            let now = self.bottom_rows();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            (since.elapsed() > APART).then_some(())
        });
    }

    fn wait_for_ground_truth(&self, step: &ScenarioStep, job: &[u32], began: Instant) -> Result<Instant, DriveError> {
        match &step.ground_truth {
            GroundTruth::Screen(state) => self.wait_for_screen(*state),
            GroundTruth::BelowPrompt(text, state) => {
                self.wait_for_screen_part(*state, |capture| part_below(capture, text))
            }
            GroundTruth::ModelAsked(text) => self.wait_for_model_request(text, began, false),
            GroundTruth::ModelAskedAgain(text) => self.wait_for_retry(text, began),
            GroundTruth::ModelAnswered(text, state) => {
                self.wait_for_model_request(text, began, true)?;
                // Until the new turn is drawn, the screen still shows the end of the previous turn.
                let is_typed = step.action.prompt() == Some(*text);
                let relevant_part =
                    |capture: &AgentScreen| part_below(capture, text).or_else(|| (!is_typed).then(|| capture.clone()));
                self.wait_for_screen_part(*state, relevant_part)
            }
            GroundTruth::FileCreated(name) => {
                let path = self.sandbox.workspace.project.join(name);
                let created = poll_until(SCREEN_TIMEOUT, || path.exists().then(Instant::now));
                created.ok_or_else(|| DriveError(format!("the agent did not create {name}; {}", self.screen_text())))
            }
            GroundTruth::ProcessEnded => {
                let left = || job.iter().copied().filter(|pid| process::is_alive(*pid)).collect::<Vec<u32>>();
                let ended = poll_until(SCREEN_TIMEOUT, || left().is_empty().then(Instant::now));
                let names = || left().into_iter().map(process::describe).collect::<Vec<_>>().join(", ");
                ended.ok_or_else(|| DriveError(format!("these processes did not end: {}", names())))
            }
        }
    }

    /// Waits until the model has received the text or, with `answered`, until the model has answered the text in full.
    /// Returns the time at which this happened.
    fn wait_for_model_request(&self, text: &str, began: Instant, answered: bool) -> Result<Instant, DriveError> {
        let found = poll_until(SCREEN_TIMEOUT, || {
            let request = self.sandbox.model.find_request(text)?;
            let moment = if answered { request.answer_ended? } else { request.at };
            (answered || moment >= began).then_some(moment)
        });
        found.ok_or_else(|| DriveError(format!("the model did not receive `{text}`; {}", self.screen_text())))
    }

    /// Waits until the model has received the text twice since `began`. Returns the time of the second request.
    fn wait_for_retry(&self, text: &str, began: Instant) -> Result<Instant, DriveError> {
        let found = poll_until(SCREEN_TIMEOUT, || {
            let requests = self.sandbox.model.requests();
            let mut retries = requests.iter().filter(|request| request.asks(text) && request.at >= began).skip(1);
            retries.next().map(|request| request.at)
        });
        found.ok_or_else(|| DriveError(format!("the agent did not send `{text}` again; {}", self.screen_text())))
    }

    /// Waits until the screen shows the state. Returns the time of the last capture that did not show it yet, so that a
    /// lag measured from this time is never too short.
    pub(crate) fn wait_for_screen(&self, state: ScreenState) -> Result<Instant, DriveError> {
        self.wait_for_screen_part(state, |capture| Some(capture.clone()))
    }

    /// Like `wait_for_screen`, but compares only the part of the screen that `part` returns with the pattern. If `part`
    /// returns `None`, the pattern does not match.
    fn wait_for_screen_part(
        &self,
        state: ScreenState,
        part: impl Fn(&AgentScreen) -> Option<AgentScreen>,
    ) -> Result<Instant, DriveError> {
        let pattern = self
            .agent
            .screen_pattern(state)
            .ok_or_else(|| DriveError(format!("the agent has no screen state {state:?}")))?;
        let mut before = Instant::now();
        let seen_at = poll_until(SCREEN_TIMEOUT, || {
            let now = Instant::now();
            if part(&self.sandbox.capture()).is_some_and(|part| pattern.matches(&part)) {
                return Some(before);
            }
            before = now;
            None
        });
        seen_at.ok_or_else(|| DriveError(format!("the screen did not show {state:?}; {}", self.screen_text())))
    }

    pub(crate) fn screen_text(&self) -> String {
        let capture = self.sandbox.capture();
        let rows: Vec<&str> = capture.screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        format!("title `{}`, screen:\n{}", capture.title, rows.join("\n"))
    }
}

/// The screen below the last row that contains the text.
fn part_below(capture: &AgentScreen, text: &str) -> Option<AgentScreen> {
    let rows: Vec<&str> = capture.screen.lines().collect();
    let row = rows.iter().rposition(|row| row.contains(text))?;
    Some(AgentScreen { screen: rows[row + 1..].join("\n"), ..capture.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_testkit::real_agents::screen_pattern::ScreenPattern;

    #[test]
    fn the_part_below_a_prompt_excludes_earlier_output() {
        let capture = |screen: &str| AgentScreen { screen: screen.into(), ..AgentScreen::default() };
        let done = ScreenPattern::shows("done");
        let [before, typed, after] =
            ["> one\ndone\n> ", "> one\ndone\n> two", "> one\ndone\n> two\ndone\n> "].map(capture);
        assert_eq!(part_below(&before, "two"), None);
        assert!(part_below(&typed, "two").is_some_and(|part| !done.matches(&part)));
        assert!(part_below(&after, "two").is_some_and(|part| done.matches(&part)));
    }
}
