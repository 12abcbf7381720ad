//! Judges screen captures: turns them into evidence for the engine.

use std::collections::HashMap;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use agtmux_core::evidence::{Assertion, Observation, Source};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::{redact, text};
use agtmux_tmux::Capture;
use jiff::{SignedDuration, Timestamp};

use super::screen_schedule::DueCapture;

/// Observations of a captured screen are dated this much before the capture. An agent draws its screen after it acts,
/// so a capture may still show the screen from before an event that the agent has just sent.
const DRAW_LAG: SignedDuration = SignedDuration::from_millis(250);
/// The same for a captured title. The value is larger, because agents update their title later than their screen.
const TITLE_LAG: SignedDuration = SignedDuration::from_secs(1);
/// If two captures that are at least this far apart lead to the same assertions, the screen counts as settled, even if
/// output continues.
const STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

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
    /// The sources that were read but gave no observation.
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
}

#[derive(Debug)]
struct PreviousCapture {
    process: ProcessRef,
    captured_at: Timestamp,
    assertions: Vec<Assertion>,
}

impl ScreenJudge {
    pub(super) fn retain(&mut self, panes: impl Fn(u32) -> bool) {
        self.previous.retain(|pane, _| panes(*pane));
    }

    /// Judges a capture. `began` is when the capture began.
    pub(super) fn judge(
        &mut self,
        registry: &AgentRegistry,
        server: (ServerKey, Generation),
        due: &DueCapture,
        capture: &Capture,
        began: Timestamp,
    ) -> ScreenEvidence {
        let agent = registry.agent(due.agent_type.as_str());
        let title = text::from_bytes(&capture.title);
        let screen = CapturedScreen::parse(&capture.screen);
        let on_screen = agent.map(|agent| agent.read_screen(&screen, Some(&title)).observations).unwrap_or_default();
        let assertions: Vec<Assertion> = on_screen.iter().map(|observation| observation.assertion).collect();
        let (settled, shown_from) = self.settled_since(due, began, &assertions);
        // Drop inconclusive observations. A title without conclusive observations counts as silent, which ends what the
        // previous title said.
        let mut in_title = agent.map(|agent| agent.title_observations(&title)).unwrap_or_default();
        in_title.retain(|observation| observation.conclusive);
        let mut evidence = ScreenEvidence::new(server, PaneId(due.pane), due.process, began);
        evidence.silent_sources.extend(on_screen.is_empty().then_some(Source::Screen));
        evidence.silent_sources.extend(in_title.is_empty().then_some(Source::Title));
        let before = |span: SignedDuration, at: Timestamp| at.checked_sub(span).unwrap_or(at);
        let (screen_as_of, title_as_of) = (before(DRAW_LAG, shown_from), before(TITLE_LAG, began));
        let on_screen = on_screen.into_iter().map(|seen| Observation { as_of: screen_as_of, settled, ..seen });
        let in_title = in_title.into_iter().map(|seen| Observation { as_of: title_as_of, ..seen });
        evidence.observations = on_screen.chain(in_title).map(without_secrets).collect();
        evidence
    }

    /// Whether the screen has settled, and since when it shows the current state.
    fn settled_since(&mut self, due: &DueCapture, began: Timestamp, assertions: &[Assertion]) -> (bool, Timestamp) {
        let now = PreviousCapture { process: due.process, captured_at: began, assertions: assertions.to_vec() };
        let before = self.previous.insert(due.pane, now);
        let same = before.filter(|b| b.process == due.process && b.assertions == assertions);
        match same.map(|b| b.captured_at).filter(|b| began.duration_since(*b) >= STABLE_FOR) {
            _ if due.settled => (true, began),
            Some(earlier) => (true, earlier),
            None => (false, began),
        }
    }
}

/// Redacts an observation: its excerpt and its dialog may contain a secret, such as a key in a command.
fn without_secrets(observation: Observation) -> Observation {
    Observation {
        excerpt: redact::text(&observation.excerpt).into_owned(),
        dialog: observation.dialog.map(|dialog| Box::new(dialog.without_secrets())),
        ..observation
    }
}
