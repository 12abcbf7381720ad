//! Plays a scenario and judges what agtmux said meanwhile.

use std::time::{Duration, Instant};

use agtmux_testkit::process;

use super::agents::{ConformanceAgent, DialogReply, LaunchMode};
use super::outcomes::StepOutcome;
use super::poll_until;
use super::record::EvidenceRecorder;
use super::sandbox::AgentSandbox;
use super::scenario::{GroundTruth, Scenario, ScenarioStep, StepAction};
use super::screen_pattern::AgentScreen;
use super::states::{EvidenceMode, ReportedState, ScreenState};
use super::step_verdict::{StepTimeline, judge_step};

/// How long an agent may take to come to a scene.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(45);
/// How long agtmux may take to say it. The lag is reported anyway; this only bounds the wait.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long what it said must hold: every scene lasts longer than this.
const HOLD_TIME: Duration = Duration::from_millis(1200);

pub(crate) struct ScenarioDriver<'a> {
    pub(crate) agent: &'a dyn ConformanceAgent,
    pub(crate) sandbox: &'a AgentSandbox,
    pub(crate) mode: EvidenceMode,
    pub(crate) recorder: Option<&'a EvidenceRecorder>,
}

/// Why a scenario cannot go on.
#[derive(Debug)]
pub(crate) struct DriveError(pub(crate) String);

impl ScenarioDriver<'_> {
    /// Starts the agent and returns when it takes prompts and agtmux has had the time to notice.
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
        let is_told = || {
            !matches!(self.reported_state(), ReportedState::NoAgent | ReportedState::Unknown) || self.has_no_adapter()
        };
        poll_until(REPORT_TIMEOUT, || is_told().then_some(()));
        Ok(())
    }

    /// Plays all steps; the second part says why it could not.
    pub(crate) fn run_scenario(
        &self,
        scenario: &Scenario,
        launch: &LaunchMode,
    ) -> (Vec<StepOutcome>, Option<DriveError>) {
        let mut outcomes = Vec::new();
        // Each step is judged from where the one before ended: nothing that is said goes unheard.
        let mut begun = Instant::now();
        for step in &scenario.steps {
            match self.run_step(scenario, step, launch, begun) {
                Ok((outcome, ended)) => {
                    outcomes.push(outcome);
                    begun = ended;
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
        begun: Instant,
    ) -> Result<(StepOutcome, Instant), DriveError> {
        let job = self.sandbox.job_pids();
        self.perform_action(&step.action, launch)?;
        let truth = self.wait_for_ground_truth(step, &job, begun)?;
        if let Some(recorder) = self.recorder {
            recorder.record(self, scenario, step, "first");
        }
        let accepted = step.accepted(self.mode);
        let is_told = || {
            accepted.contains(&self.reported_state())
                || (self.has_no_adapter() && !accepted.contains(&ReportedState::NoAgent))
        };
        poll_until(REPORT_TIMEOUT, || is_told().then_some(()));
        // Not a wait for something to come, but for nothing to come.
        let hold = if step.transient { Duration::ZERO } else { HOLD_TIME };
        let is_right = accepted.contains(&self.reported_state());
        poll_until(hold, || (is_right && !accepted.contains(&self.reported_state())).then_some(()));
        let held_until = Instant::now();
        let heard =
            StepTimeline { reports: self.sandbox.watch.state_reports(), began: begun, truth_at: truth, held_until };
        let outcome = judge_step(step, accepted, &heard);
        if let Some(recorder) = self.recorder.filter(|_| !step.transient) {
            recorder.record(self, scenario, step, "");
        }
        Ok((outcome, held_until))
    }

    fn reported_state(&self) -> ReportedState {
        self.sandbox.watch.state_reports().last().map_or(ReportedState::NoAgent, |told| told.state)
    }

    /// This build reads nothing of this agent: there is nothing to wait for.
    fn has_no_adapter(&self) -> bool {
        self.sandbox.watch.state_reports().last().is_some_and(|told| told.reason.as_deref() == Some("no_adapter"))
    }

    fn perform_action(&self, deed: &StepAction, launch: &LaunchMode) -> Result<(), DriveError> {
        let room = self.sandbox;
        match deed {
            StepAction::Wait => {}
            StepAction::Launch => room.launch(self.agent, launch),
            StepAction::Prompt(text) => self.submit(text, |text| room.paste(text))?,
            StepAction::FailingPrompt => self.submit(self.agent.failing_prompt(), |text| room.paste(text))?,
            StepAction::SlashCommand(wish) => {
                self.submit(self.agent.slash_command(*wish), |text| room.type_text(text))?
            }
            StepAction::Reply(reply) => self.press_all(self.agent.keys(*reply)),
            // As `kill %1` in the shell would: some agents are two processes, and the outer one passes nothing on.
            StepAction::Signal(signal) => room.job_pids().into_iter().for_each(|pid| {
                process::signal(pid, *signal);
            }),
        }
        Ok(())
    }

    /// Agents that have just started drop keys: pressed again until the scene is there.
    fn press_until(&self, reply: DialogReply, scene: ScreenState) {
        const PATIENCE: Duration = Duration::from_secs(2);
        const TRIES: usize = 5;
        let Some(mark) = self.agent.screen_pattern(scene) else { return };
        for _ in 0..TRIES {
            self.press_all(self.agent.keys(reply));
            if poll_until(PATIENCE, || mark.matches(&self.sandbox.capture()).then_some(())).is_some() {
                return;
            }
        }
    }

    /// Each key once what the one before it did is on the screen.
    pub(crate) fn press_all(&self, keys: &[&str]) {
        for key in keys {
            self.wait_until_steady();
            self.sandbox.press(key);
        }
    }

    /// Enter comes once the text stands in the box: agents take an Enter that follows a paste too soon for a part of it.
    pub(crate) fn submit(&self, text: &str, enter: impl Fn(&str)) -> Result<(), DriveError> {
        enter(text);
        let stands = || self.sandbox.capture().screen.contains(text).then_some(());
        poll_until(SCREEN_TIMEOUT, stands).ok_or_else(|| DriveError(format!("`{text}` did not appear in the box")))?;
        self.wait_until_steady();
        self.press_enter();
        Ok(())
    }

    /// A busy agent drops an Enter that it meets right behind a paste: pressed again where it changed nothing.
    fn press_enter(&self) {
        const PATIENCE: Duration = Duration::from_secs(3);
        const TRIES: usize = 3;
        let before = self.sandbox.capture();
        for _ in 0..TRIES {
            self.sandbox.press("Enter");
            if poll_until(PATIENCE, || (self.sandbox.capture().screen != before.screen).then_some(())).is_some() {
                return;
            }
        }
    }

    /// The last rows that are not empty.
    fn bottom_rows(&self) -> Vec<String> {
        let look = self.sandbox.capture();
        look.screen.trim_end().lines().rev().take(3).map(str::to_owned).collect()
    }

    /// Two looks a while apart show the same below the line where spinners turn.
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

    fn wait_for_ground_truth(&self, step: &ScenarioStep, job: &[u32], begun: Instant) -> Result<Instant, DriveError> {
        match &step.ground_truth {
            GroundTruth::Screen(scene) => self.wait_for_screen(*scene),
            GroundTruth::ModelAsked(text) => self.wait_for_model_request(text, begun, false),
            GroundTruth::ModelAnswered(text, scene) => {
                self.wait_for_model_request(text, begun, true)?;
                // The end of the turn before looks like the end of this one, until this one is drawn.
                let is_typed = matches!(step.action, StepAction::Prompt(typed) if typed == *text);
                let counts = |look: &AgentScreen| part_below(look, text).or_else(|| (!is_typed).then(|| look.clone()));
                self.wait_for_screen_part(*scene, counts)
            }
            GroundTruth::FileCreated(name) => {
                let path = self.sandbox.workspace.project.join(name);
                let there = poll_until(SCREEN_TIMEOUT, || path.exists().then(Instant::now));
                there.ok_or_else(|| DriveError(format!("no {name} was made; {}", self.screen_text())))
            }
            GroundTruth::ProcessEnded => {
                let left = || job.iter().copied().filter(|pid| process::is_alive(*pid)).collect::<Vec<u32>>();
                let ended = poll_until(SCREEN_TIMEOUT, || left().is_empty().then(Instant::now));
                let names = || left().into_iter().map(process::describe).collect::<Vec<_>>().join(", ");
                ended.ok_or_else(|| DriveError(format!("did not end: {}", names())))
            }
        }
    }

    /// When the model was asked this, or had answered it and what followed from it.
    fn wait_for_model_request(&self, text: &str, begun: Instant, answered: bool) -> Result<Instant, DriveError> {
        let found = poll_until(SCREEN_TIMEOUT, || {
            let request = self.sandbox.model.find_request(text)?;
            let moment = if answered { request.answer_ended? } else { request.at };
            (answered || moment >= begun).then_some(moment)
        });
        found.ok_or_else(|| DriveError(format!("the model was not asked `{text}`; {}", self.screen_text())))
    }

    /// The moment is the one of the last look that did not show it: the lag is rather too long than too short.
    pub(crate) fn wait_for_screen(&self, scene: ScreenState) -> Result<Instant, DriveError> {
        self.wait_for_screen_part(scene, |look| Some(look.clone()))
    }

    /// Only the part of a look that counts is compared with the mark; where there is none, it does not hold.
    fn wait_for_screen_part(
        &self,
        scene: ScreenState,
        part: impl Fn(&AgentScreen) -> Option<AgentScreen>,
    ) -> Result<Instant, DriveError> {
        let mark = self.agent.screen_pattern(scene).ok_or_else(|| DriveError(format!("it has no scene {scene:?}")))?;
        let mut before = Instant::now();
        let shown = poll_until(SCREEN_TIMEOUT, || {
            let now = Instant::now();
            if part(&self.sandbox.capture()).is_some_and(|part| mark.matches(&part)) {
                return Some(before);
            }
            before = now;
            None
        });
        shown.ok_or_else(|| DriveError(format!("the screen did not show {scene:?}; {}", self.screen_text())))
    }

    pub(crate) fn screen_text(&self) -> String {
        let look = self.sandbox.capture();
        let rows: Vec<&str> = look.screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        format!("title `{}`, screen:\n{}", look.title, rows.join("\n"))
    }
}

/// What stands below the last row that shows this, if one does.
fn part_below(look: &AgentScreen, text: &str) -> Option<AgentScreen> {
    let rows: Vec<&str> = look.screen.lines().collect();
    let row = rows.iter().rposition(|row| row.contains(text))?;
    Some(AgentScreen { screen: rows[row + 1..].join("\n"), ..look.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen_pattern::ScreenPattern;

    #[test]
    fn what_was_said_before_a_prompt_is_not_below_it() {
        let look = |screen: &str| AgentScreen { screen: screen.into(), ..AgentScreen::default() };
        let done = ScreenPattern::shows("done");
        let [before, typed, after] =
            ["> one\ndone\n> ", "> one\ndone\n> two", "> one\ndone\n> two\ndone\n> "].map(look);
        assert_eq!(part_below(&before, "two"), None);
        assert!(part_below(&typed, "two").is_some_and(|part| !done.matches(&part)));
        assert!(part_below(&after, "two").is_some_and(|part| done.matches(&part)));
    }
}
