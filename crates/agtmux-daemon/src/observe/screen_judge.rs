//! Judges screen captures: turns them into evidence for the engine.

use std::collections::HashMap;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use agtmux_core::evidence::{Assertion, Observation, Source};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::{redact, text};
use agtmux_tmux::Capture;
use jiff::{SignedDuration, Timestamp};

use super::screen_schedule::DueCapture;

/// Observations from a capture are dated this much earlier than the capture itself. An agent may send an event before
/// it redraws its screen. A capture made in between still shows the old screen, so its observations must not count as
/// newer than the event.
const DRAW_LAG: SignedDuration = SignedDuration::from_millis(250);
/// Like `DRAW_LAG`, but for a captured title. The value is larger, because agents update their title later than their
/// screen.
const TITLE_LAG: SignedDuration = SignedDuration::from_secs(1);
/// If two captures that are at least this far apart lead to the same assertions, the screen counts as settled, even if
/// output continues.
const STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

/// For this long after the machine wakes up, a changed screen counts only after a second capture confirms it, because
/// agents redraw their screens in several parts after a sleep. `CONFIRM_AFTER` is the minimum time between the two
/// captures.
const WAKE_TIME: SignedDuration = SignedDuration::from_secs(10);
const CONFIRM_AFTER: SignedDuration = SignedDuration::from_secs(2);

/// What one capture of a pane showed.
#[derive(Debug)]
pub(crate) struct ScreenEvidence {
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) pane: PaneId,
    /// The process of the agent that ran in the pane when the capture began.
    pub(crate) process: ProcessRef,
    pub(crate) captured_at: Timestamp,
    pub(crate) observations: Vec<Observation>,
    /// The sources (screen or title) that gave no observation, although agtmux read them.
    pub(crate) silent_sources: Vec<Source>,
}

impl ScreenEvidence {
    pub(super) fn new(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        captured_at: Timestamp,
    ) -> Self {
        let (observations, silent_sources) = (Vec::new(), Vec::new());
        Self { server, generation, pane, process, captured_at, observations, silent_sources }
    }
}

/// Judges captures. Remembers the previous capture of each pane.
#[derive(Debug, Default)]
pub(super) struct ScreenJudge {
    previous: HashMap<u32, PreviousCapture>,
    /// When the machine last woke up from sleep.
    woke_at: Option<Timestamp>,
    /// Changed screens that were captured after the machine woke up and that no later capture has confirmed yet.
    unconfirmed: HashMap<u32, PreviousCapture>,
}

#[derive(Debug, Clone)]
struct PreviousCapture {
    process: ProcessRef,
    captured_at: Timestamp,
    /// What the screen and the title show.
    assertions: Vec<Assertion>,
}

impl PreviousCapture {
    fn shows_same(&self, other: &Self) -> bool {
        self.process == other.process && self.assertions == other.assertions
    }
}

impl ScreenJudge {
    pub(super) fn retain(&mut self, panes: impl Fn(u32) -> bool) {
        self.previous.retain(|pane, _| panes(*pane));
        self.unconfirmed.retain(|pane, _| panes(*pane));
    }

    /// Notes that the machine slept until now.
    pub(super) fn woke(&mut self, now: Timestamp) {
        self.woke_at = Some(now);
        self.unconfirmed.clear();
    }

    /// Judges a capture. `began` is when the capture began. Returns `None` if the capture does not count. This is so
    /// for an early capture that shows no turn or dialog, and for a capture right after a wake-up that a later capture must
    /// confirm.
    pub(super) fn judge(
        &mut self,
        registry: &AgentRegistry,
        server: (ServerKey, Generation),
        due: &DueCapture,
        capture: &Capture,
        began: Timestamp,
    ) -> Option<ScreenEvidence> {
        let agent = registry.agent(due.agent_type.as_str());
        let title = text::from_bytes(&capture.title);
        let screen = CapturedScreen::parse(&capture.screen);
        let on_screen = agent.map(|agent| agent.read_screen(&screen, Some(&title)).observations).unwrap_or_default();
        // Drop inconclusive observations. A title without conclusive observations counts as silent, so that the
        // observations of the previous title end.
        let mut in_title = agent.map(|agent| agent.title_observations(&title)).unwrap_or_default();
        in_title.retain(|observation| observation.conclusive);
        let assertions = on_screen.iter().chain(&in_title).map(|observation| observation.assertion).collect();
        let capture = PreviousCapture { process: due.process, captured_at: began, assertions };
        if due.early && !(shows_beginning(&on_screen) && self.is_awake(began)) {
            return None;
        }
        if self.must_be_confirmed(due.pane, &capture) {
            return None;
        }
        // An early capture is not remembered: the screen may still be half drawn.
        let (settled, shown_from) = if due.early { (false, began) } else { self.settled_since(due, capture) };
        let mut evidence = ScreenEvidence::new(server, PaneId(due.pane), due.process, began);
        evidence.silent_sources.extend(on_screen.is_empty().then_some(Source::Screen));
        evidence.silent_sources.extend((in_title.is_empty() && !due.early).then_some(Source::Title));
        let before = |span: SignedDuration, at: Timestamp| at.checked_sub(span).unwrap_or(at);
        let (screen_as_of, title_as_of) = (before(DRAW_LAG, shown_from), before(TITLE_LAG, began));
        let on_screen = on_screen.into_iter().map(|seen| Observation { as_of: screen_as_of, settled, ..seen });
        let in_title = in_title.into_iter().map(|seen| Observation { as_of: title_as_of, ..seen });
        evidence.observations = on_screen.chain(in_title).map(without_secrets).collect();
        Some(evidence)
    }

    /// Whether a later capture must confirm this one. True if the machine has just woken up and the screen differs from
    /// the last screen before the sleep.
    fn must_be_confirmed(&mut self, pane: u32, capture: &PreviousCapture) -> bool {
        let before = self.previous.get(&pane).filter(|before| before.process == capture.process);
        if self.is_awake(capture.captured_at) || before.is_none_or(|before| before.shows_same(capture)) {
            self.unconfirmed.remove(&pane);
            return false;
        }
        let seen = self.unconfirmed.entry(pane).or_insert_with(|| capture.clone());
        if !seen.shows_same(capture) {
            *seen = capture.clone();
        }
        let is_confirmed = capture.captured_at.duration_since(seen.captured_at).abs() >= CONFIRM_AFTER;
        if is_confirmed {
            self.unconfirmed.remove(&pane);
        }
        !is_confirmed
    }

    /// Whether the machine has been awake for at least `WAKE_TIME`.
    fn is_awake(&self, now: Timestamp) -> bool {
        // If the clock was set back after the machine woke up, `now` is before the wake-up. The machine then no longer
        // counts as waking up.
        let since_wake = self.woke_at.map(|woke_at| now.duration_since(woke_at));
        since_wake.is_none_or(|since| !(SignedDuration::ZERO..WAKE_TIME).contains(&since))
    }

    /// Whether the screen has settled, and from which time on the screen is known to show this state.
    fn settled_since(&mut self, due: &DueCapture, capture: PreviousCapture) -> (bool, Timestamp) {
        let began = capture.captured_at;
        let before = self.previous.insert(due.pane, capture.clone());
        let same = before.filter(|before| before.shows_same(&capture));
        match same.map(|b| b.captured_at).filter(|b| began.duration_since(*b) >= STABLE_FOR) {
            _ if due.settled => (true, began),
            Some(earlier) => (true, earlier),
            None => (false, began),
        }
    }
}

/// Whether an early capture counts: only if the screen shows that something has begun, a turn or a dialog. A screen at
/// rest may be the one from before the turn. A state that is inferred from missing text does not count, because the
/// screen may be half drawn.
fn shows_beginning(on_screen: &[Observation]) -> bool {
    let begins = |seen: &Observation| matches!(seen.assertion, Assertion::Running | Assertion::DialogOpen(_));
    let is_conclusive = |seen: &Observation| seen.conclusive && !seen.inferred_from_absence;
    on_screen.first().is_some_and(is_conclusive) && on_screen.iter().any(begins)
}

/// Redacts an observation: its excerpt and its dialog may contain a secret, such as a key in a command.
fn without_secrets(observation: Observation) -> Observation {
    Observation {
        excerpt: redact::text(&observation.excerpt).into_owned(),
        dialog: observation.dialog.map(|dialog| Box::new(dialog.without_secrets())),
        ..observation
    }
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{AgentType, ServerName, TargetName};

    use super::*;

    const PROCESS: ProcessRef = ProcessRef { pid: 7, start: 1 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + millis).expect("in range")
    }

    /// Whether a capture with this assertion, at this time, must be confirmed. An accepted capture becomes the previous
    /// capture for the next call.
    fn is_held(judge: &mut ScreenJudge, millis: i64, assertion: Assertion) -> bool {
        let capture = PreviousCapture { process: PROCESS, captured_at: at(millis), assertions: vec![assertion] };
        let held = judge.must_be_confirmed(1, &capture);
        if !held {
            judge.previous.insert(1, capture);
        }
        held
    }

    #[test]
    fn after_a_sleep_a_changed_screen_counts_once_it_is_confirmed() {
        let mut judge = ScreenJudge::default();
        assert!(!is_held(&mut judge, 0, Assertion::Running));
        assert!(!is_held(&mut judge, 10, Assertion::Completed), "no sleep");
        assert!(!is_held(&mut judge, 20, Assertion::Running));
        judge.woke(at(30_000));
        assert!(!is_held(&mut judge, 30_000, Assertion::Running), "the same as before the sleep");
        assert!(is_held(&mut judge, 30_100, Assertion::Completed), "a screen that is half drawn");
        assert!(!is_held(&mut judge, 30_600, Assertion::Running));
        assert!(is_held(&mut judge, 31_000, Assertion::Completed));
        assert!(is_held(&mut judge, 32_900, Assertion::Completed), "1.9 s");
        assert!(!is_held(&mut judge, 33_000, Assertion::Completed), "2 s");
    }

    #[test]
    fn a_while_after_a_sleep_every_screen_counts() {
        let mut judge = ScreenJudge::default();
        assert!(!is_held(&mut judge, 0, Assertion::Running));
        judge.woke(at(1_000));
        assert!(is_held(&mut judge, 10_900, Assertion::Completed));
        assert!(!is_held(&mut judge, 11_000, Assertion::Completed));
    }

    /// Judges an early capture of a Claude Code screen. Returns what the screen shows, or `None` if it does not count.
    fn judge_early(judge: &mut ScreenJudge, screen: &str) -> Option<Vec<Assertion>> {
        let key = ServerKey { target: TargetName::local(), server: ServerName::new("s") };
        let server = (key, Generation { pid: 1, start_time: 1 });
        let agent_type = AgentType::new("claude");
        let due = DueCapture { pane: 1, agent_type, process: PROCESS, settled: false, early: true };
        let capture = Capture {
            server_pid: 1,
            pane: 1,
            pane_pid: 7,
            full_screen: false,
            title: b"\xe2\x9c\xb3 Claude Code".to_vec(),
            screen: screen.into(),
        };
        let evidence = judge.judge(AgentRegistry::builtin(), server, &due, &capture, at(0))?;
        assert_eq!(evidence.silent_sources, []);
        assert!(evidence.observations.iter().all(|seen| seen.source != Source::Screen || !seen.settled));
        Some(evidence.observations.iter().map(|seen| seen.assertion).collect())
    }

    const DIALOG: &str = "\
────────────────────────────────────────────────────────────
 Bash command

   touch x

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, always
   3. No

 Esc to cancel · Tab to amend";

    #[test]
    fn an_early_capture_counts_only_if_it_shows_a_turn_or_a_dialog() {
        let mut judge = ScreenJudge::default();
        assert_eq!(judge_early(&mut judge, "half a scr"), None);
        let prompt = "────────────────────\n❯ \n────────────────────";
        assert_eq!(judge_early(&mut judge, prompt), None, "idle is inferred from the absence of a turn");
        let hint = judge_early(&mut judge, &format!("{prompt}\n  ? for shortcuts"));
        assert_eq!(hint, None, "the screen may be the one from before the turn");
        let shown = judge_early(&mut judge, DIALOG).expect("a dialog is conclusive");
        assert!(shown.iter().any(|assertion| matches!(assertion, Assertion::DialogOpen(_))), "{shown:?}");
        assert!(judge.previous.is_empty(), "an early capture is not remembered");
    }

    #[test]
    fn an_early_capture_does_not_count_just_after_a_sleep() {
        let mut judge = ScreenJudge::default();
        judge.woke(at(-1_000));
        assert_eq!(judge_early(&mut judge, DIALOG), None);
    }
}
