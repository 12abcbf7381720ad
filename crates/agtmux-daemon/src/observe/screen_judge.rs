//! Judges screen captures: turns them into evidence for the engine.

use std::collections::HashMap;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::{Assertion, RuleRef, Source};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::{redact, text};
use agtmux_tmux::Capture;
use jiff::{SignedDuration, Timestamp};

use super::screen_schedule::DueCapture;

/// A screen shows the state from this long before its capture. An agent draws after it acts, and may send an event
/// meanwhile.
const DRAW_LAG: SignedDuration = SignedDuration::from_millis(250);
/// The same for titles, which lag more.
const TITLE_LAG: SignedDuration = SignedDuration::from_secs(1);
/// Two equal captures at least this far apart count as settled, even if output continues.
const STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

/// What one capture of a pane showed.
#[derive(Debug)]
pub(crate) struct ScreenEvidence {
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) pane: PaneId,
    /// The agent that ran in the pane before the capture.
    pub(crate) process: ProcessRef,
    pub(crate) captured_at: Timestamp,
    pub(crate) observations: Vec<SourceObservation>,
    /// The sources that were read and said nothing.
    pub(crate) silent_sources: Vec<Source>,
}

impl ScreenEvidence {
    /// Evidence that an agent's status file was removed.
    pub(super) fn status_file_gone(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        began: Timestamp,
    ) -> Self {
        Self {
            server,
            generation,
            pane,
            process,
            captured_at: began,
            observations: Vec::new(),
            silent_sources: vec![Source::File],
        }
    }

    /// Evidence that a headless agent runs. It was started for one turn, without a user.
    pub(crate) fn headless(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        began: Timestamp,
    ) -> Self {
        let observations = [Assertion::Running, Assertion::NoDialog].map(|assertion| SourceObservation {
            source: Source::Process,
            assertion,
            conclusive: true,
            inferred_from_absence: false,
            no_turn_visible: false,
            settled: true,
            as_of: began,
            rule: RuleRef { name: "headless".into(), version: 1 },
            excerpt: "headless: started for one turn".into(),
            dialog: None,
        });
        Self {
            server,
            generation,
            pane,
            process,
            captured_at: began,
            observations: observations.into(),
            silent_sources: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct SourceObservation {
    pub(crate) source: Source,
    pub(crate) assertion: Assertion,
    pub(crate) conclusive: bool,
    /// Concluded from something that is missing on the screen.
    pub(crate) inferred_from_absence: bool,
    /// The screen shows nothing of any turn.
    pub(crate) no_turn_visible: bool,
    pub(crate) settled: bool,
    pub(crate) as_of: Timestamp,
    pub(crate) rule: RuleRef,
    pub(crate) excerpt: String,
    pub(crate) dialog: Option<Dialog>,
}

/// Judges captures. Remembers the previous capture of each pane.
#[derive(Debug, Default)]
pub(crate) struct ScreenJudge {
    previous: HashMap<u32, PreviousCapture>,
}

#[derive(Debug)]
struct PreviousCapture {
    process: ProcessRef,
    captured_at: Timestamp,
    assertions: Vec<Assertion>,
}

impl ScreenJudge {
    pub(crate) fn retain(&mut self, panes: impl Fn(u32) -> bool) {
        self.previous.retain(|pane, _| panes(*pane));
    }

    /// Judges a capture that began at this time.
    pub(crate) fn judge(
        &mut self,
        registry: &AgentRegistry,
        (server, generation): (ServerKey, Generation),
        due: &DueCapture,
        capture: &Capture,
        began: Timestamp,
    ) -> ScreenEvidence {
        let agent_type = due.agent_type.as_str();
        let title = text::from_bytes(&capture.title);
        let reading = registry.read_screen(agent_type, &CapturedScreen::parse(&capture.screen), Some(&title));
        let redacted = |text: String| redact::text(&text).into_owned();
        let assertions: Vec<Assertion> = reading.observations.iter().map(|observation| observation.assertion).collect();
        let (settled, shown_from) = self.settled_since(due, began, &assertions);
        let before = |span: SignedDuration, at: Timestamp| at.checked_sub(span).unwrap_or(at);
        let dialog = reading.dialog.map(without_secrets);
        let mut observations: Vec<SourceObservation> = Vec::new();
        for observation in reading.observations {
            observations.push(SourceObservation {
                source: Source::Screen,
                assertion: observation.assertion,
                conclusive: observation.conclusive,
                inferred_from_absence: observation.yields,
                no_turn_visible: observation.anew,
                settled,
                as_of: before(DRAW_LAG, shown_from),
                rule: observation.rule,
                excerpt: redacted(observation.excerpt),
                dialog: matches!(observation.assertion, Assertion::DialogOpen(_)).then(|| dialog.clone()).flatten(),
            });
        }
        let mut silent = Vec::new();
        if observations.is_empty() {
            silent.push(Source::Screen);
        }
        // A title that is only a hint cancels what the previous title said.
        let titles: Vec<_> = registry
            .title_observations(agent_type, &title)
            .into_iter()
            .filter(|observation| observation.conclusive)
            .collect();
        if titles.is_empty() {
            silent.push(Source::Title);
        }
        observations.extend(titles.into_iter().map(|observation| SourceObservation {
            source: Source::Title,
            assertion: observation.assertion,
            conclusive: observation.conclusive,
            inferred_from_absence: observation.yields,
            no_turn_visible: observation.anew,
            settled: true,
            as_of: before(TITLE_LAG, began),
            rule: observation.rule,
            excerpt: redacted(observation.excerpt),
            dialog: None,
        }));
        ScreenEvidence {
            server,
            generation,
            pane: PaneId(due.pane),
            process: due.process,
            captured_at: began,
            observations,
            silent_sources: silent,
        }
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

/// Redacts a dialog, which may contain a secret such as a key in a command. The fingerprint stays that of the
/// original.
fn without_secrets(dialog: Dialog) -> Dialog {
    let redacted = |text: String| redact::text(&text).into_owned();
    let option = |option: DialogOption| DialogOption { label: redacted(option.label), ..option };
    Dialog {
        question: redacted(dialog.question),
        subject: dialog.subject.map(redacted),
        options: dialog.options.into_iter().map(option).collect(),
        ..dialog
    }
}
