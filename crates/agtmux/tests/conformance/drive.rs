//! Plays a scenario and judges what agtmux said meanwhile.

use std::time::{Duration, Instant};

use agtmux_testkit::process;

use super::agents::{Agent, Launch, Reply};
use super::judge::{Heard, judge};
use super::mark::Look;
use super::outcome::StepOutcome;
use super::record::Recorder;
use super::room::Room;
use super::scenario::{Deed, Scenario, Step, Truth};
use super::until;
use super::words::{Mode, Scene, Shown};

/// How long an agent may take to come to a scene.
const SCENE: Duration = Duration::from_secs(45);
/// How long agtmux may take to say it. The lag is reported anyway; this only bounds the wait.
const TELL: Duration = Duration::from_secs(10);
/// How long what it said must hold: every scene lasts longer than this.
const HOLD: Duration = Duration::from_millis(1200);

pub(crate) struct Driver<'a> {
    pub(crate) agent: &'a dyn Agent,
    pub(crate) room: &'a Room,
    pub(crate) mode: Mode,
    pub(crate) recorder: Option<&'a Recorder>,
}

/// Why a scenario cannot go on.
#[derive(Debug)]
pub(crate) struct Lost(pub(crate) String);

impl Driver<'_> {
    /// Starts the agent and returns when it takes prompts and agtmux has had the time to notice.
    pub(crate) fn start(&self, launch: &Launch) -> Result<(), Lost> {
        self.room.launch(self.agent, launch);
        let ready = match launch {
            Launch::Plan => Scene::ReadyToPlan,
            _ => Scene::Ready,
        };
        if *launch == Launch::Plan && !self.agent.keys(Reply::PlanMode).is_empty() {
            self.wait_for_scene(Scene::Ready)?;
            self.press_until(Reply::PlanMode, ready);
        }
        self.wait_for_scene(ready)?;
        let is_told = || !matches!(self.shown(), Shown::Gone | Shown::Unknown) || self.is_mute();
        until(TELL, || is_told().then_some(()));
        Ok(())
    }

    /// Plays all steps; the second part says why it could not.
    pub(crate) fn play(&self, scenario: &Scenario, launch: &Launch) -> (Vec<StepOutcome>, Option<Lost>) {
        let mut outcomes = Vec::new();
        // Each step is judged from where the one before ended: nothing that is said goes unheard.
        let mut begun = Instant::now();
        for step in &scenario.steps {
            match self.play_step(scenario, step, launch, begun) {
                Ok((outcome, ended)) => {
                    outcomes.push(outcome);
                    begun = ended;
                }
                Err(Lost(why)) => return (outcomes, Some(Lost(format!("{}: {why}", step.name)))),
            }
        }
        (outcomes, None)
    }

    fn play_step(
        &self,
        scenario: &Scenario,
        step: &Step,
        launch: &Launch,
        begun: Instant,
    ) -> Result<(StepOutcome, Instant), Lost> {
        let job = self.room.job();
        self.perform(&step.deed, launch)?;
        let truth = self.wait_for_truth(step, &job, begun)?;
        if let Some(recorder) = self.recorder {
            recorder.keep(self, scenario, step, "first");
        }
        let accepted = step.accepted(self.mode);
        let is_told = || accepted.contains(&self.shown()) || (self.is_mute() && !accepted.contains(&Shown::Gone));
        until(TELL, || is_told().then_some(()));
        // Not a wait for something to come, but for nothing to come.
        let hold = if step.brief { Duration::ZERO } else { HOLD };
        let is_right = accepted.contains(&self.shown());
        until(hold, || (is_right && !accepted.contains(&self.shown())).then_some(()));
        let held_until = Instant::now();
        let heard = Heard { told: self.room.watch.told(), begun, truth, held_until };
        let outcome = judge(step, accepted, &heard);
        if let Some(recorder) = self.recorder.filter(|_| !step.brief) {
            recorder.keep(self, scenario, step, "");
        }
        Ok((outcome, held_until))
    }

    fn shown(&self) -> Shown {
        self.room.watch.told().last().map_or(Shown::Gone, |told| told.shown)
    }

    /// This build reads nothing of this agent: there is nothing to wait for.
    fn is_mute(&self) -> bool {
        self.room.watch.told().last().is_some_and(|told| told.reason.as_deref() == Some("no_adapter"))
    }

    fn perform(&self, deed: &Deed, launch: &Launch) -> Result<(), Lost> {
        let room = self.room;
        match deed {
            Deed::Nothing => {}
            Deed::Launch => room.launch(self.agent, launch),
            Deed::Prompt(text) => self.submit(text, |text| room.paste(text))?,
            Deed::Failure => self.submit(self.agent.failure(), |text| room.paste(text))?,
            Deed::Command(wish) => self.submit(self.agent.command(*wish), |text| room.type_text(text))?,
            Deed::Reply(reply) => self.press_all(self.agent.keys(*reply)),
            // As `kill %1` in the shell would: some agents are two processes, and the outer one passes nothing on.
            Deed::Signal(signal) => room.job().into_iter().for_each(|pid| {
                process::signal(pid, *signal);
            }),
        }
        Ok(())
    }

    /// Agents that have just started drop keys: pressed again until the scene is there.
    fn press_until(&self, reply: Reply, scene: Scene) {
        const PATIENCE: Duration = Duration::from_secs(2);
        const TRIES: usize = 5;
        let Some(mark) = self.agent.mark(scene) else { return };
        for _ in 0..TRIES {
            self.press_all(self.agent.keys(reply));
            if until(PATIENCE, || mark.holds(&self.room.look()).then_some(())).is_some() {
                return;
            }
        }
    }

    /// Each key once what the one before it did is on the screen.
    pub(crate) fn press_all(&self, keys: &[&str]) {
        for key in keys {
            self.wait_until_steady();
            self.room.press(key);
        }
    }

    /// Enter comes once the text stands in the box: agents take an Enter that follows a paste too soon for a part of it.
    pub(crate) fn submit(&self, text: &str, enter: impl Fn(&str)) -> Result<(), Lost> {
        enter(text);
        let stands = || self.room.look().screen.contains(text).then_some(());
        until(SCENE, stands).ok_or_else(|| Lost(format!("`{text}` did not appear in the box")))?;
        self.wait_until_steady();
        self.press_enter();
        Ok(())
    }

    /// A busy agent drops an Enter that it meets right behind a paste: pressed again where it changed nothing.
    fn press_enter(&self) {
        const PATIENCE: Duration = Duration::from_secs(3);
        const TRIES: usize = 3;
        let before = self.room.look();
        for _ in 0..TRIES {
            self.room.press("Enter");
            if until(PATIENCE, || (self.room.look().screen != before.screen).then_some(())).is_some() {
                return;
            }
        }
    }

    /// The last rows that are not empty.
    fn bottom(&self) -> Vec<String> {
        let look = self.room.look();
        look.screen.trim_end().lines().rev().take(3).map(str::to_owned).collect()
    }

    /// Two looks a while apart show the same below the line where spinners turn.
    fn wait_until_steady(&self) {
        const APART: Duration = Duration::from_millis(150);
        let (mut last, mut since) = (self.bottom(), Instant::now());
        until(Duration::from_secs(3), || {
            let now = self.bottom();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            (since.elapsed() > APART).then_some(())
        });
    }

    fn wait_for_truth(&self, step: &Step, job: &[u32], begun: Instant) -> Result<Instant, Lost> {
        match &step.truth {
            Truth::Scene(scene) => self.wait_for_scene(*scene),
            Truth::Asked(text) => self.wait_for_request(text, begun, false),
            Truth::Answered(text, scene) => {
                self.wait_for_request(text, begun, true)?;
                // The end of the turn before looks like the end of this one, until this one is drawn.
                let is_typed = matches!(step.deed, Deed::Prompt(typed) if typed == *text);
                let counts = |look: &Look| below(look, text).or_else(|| (!is_typed).then(|| look.clone()));
                self.wait_for_part(*scene, counts)
            }
            Truth::File(name) => {
                let path = self.room.place.project.join(name);
                let there = until(SCENE, || path.exists().then(Instant::now));
                there.ok_or_else(|| Lost(format!("no {name} was made; {}", self.screen())))
            }
            Truth::Ended => {
                let left = || job.iter().copied().filter(|pid| process::is_alive(*pid)).collect::<Vec<u32>>();
                let ended = until(SCENE, || left().is_empty().then(Instant::now));
                let names = || left().into_iter().map(process::describe).collect::<Vec<_>>().join(", ");
                ended.ok_or_else(|| Lost(format!("did not end: {}", names())))
            }
        }
    }

    /// When the model was asked this, or had answered it and what followed from it.
    fn wait_for_request(&self, text: &str, begun: Instant, answered: bool) -> Result<Instant, Lost> {
        let found = until(SCENE, || {
            let request = self.room.model.asked(text)?;
            let moment = if answered { request.ended? } else { request.at };
            (answered || moment >= begun).then_some(moment)
        });
        found.ok_or_else(|| Lost(format!("the model was not asked `{text}`; {}", self.screen())))
    }

    /// The moment is the one of the last look that did not show it: the lag is rather too long than too short.
    pub(crate) fn wait_for_scene(&self, scene: Scene) -> Result<Instant, Lost> {
        self.wait_for_part(scene, |look| Some(look.clone()))
    }

    /// Only the part of a look that counts is compared with the mark; where there is none, it does not hold.
    fn wait_for_part(&self, scene: Scene, part: impl Fn(&Look) -> Option<Look>) -> Result<Instant, Lost> {
        let mark = self.agent.mark(scene).ok_or_else(|| Lost(format!("it has no scene {scene:?}")))?;
        let mut before = Instant::now();
        let shown = until(SCENE, || {
            let now = Instant::now();
            if part(&self.room.look()).is_some_and(|part| mark.holds(&part)) {
                return Some(before);
            }
            before = now;
            None
        });
        shown.ok_or_else(|| Lost(format!("the screen did not show {scene:?}; {}", self.screen())))
    }

    pub(crate) fn screen(&self) -> String {
        let look = self.room.look();
        let rows: Vec<&str> = look.screen.lines().map(str::trim_end).filter(|row| !row.is_empty()).collect();
        format!("title `{}`, screen:\n{}", look.title, rows.join("\n"))
    }
}

/// What stands below the last row that shows this, if one does.
fn below(look: &Look, text: &str) -> Option<Look> {
    let rows: Vec<&str> = look.screen.lines().collect();
    let row = rows.iter().rposition(|row| row.contains(text))?;
    Some(Look { screen: rows[row + 1..].join("\n"), ..look.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::Mark;

    #[test]
    fn what_was_said_before_a_prompt_is_not_below_it() {
        let look = |screen: &str| Look { screen: screen.into(), ..Look::default() };
        let done = Mark::shows("done");
        let [before, typed, after] =
            ["> one\ndone\n> ", "> one\ndone\n> two", "> one\ndone\n> two\ndone\n> "].map(look);
        assert_eq!(below(&before, "two"), None);
        assert!(below(&typed, "two").is_some_and(|part| !done.holds(&part)));
        assert!(below(&after, "two").is_some_and(|part| done.holds(&part)));
    }
}
