//! From captures to what they say.

use std::collections::HashMap;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::{Assertion, RuleRef, Source};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::{redact, text};
use agtmux_tmux::Capture;
use jiff::{SignedDuration, Timestamp};

use super::screen_schedule::DueCapture;

/// An agent draws what it does a moment after it begins, and may say it in the meantime.
const DRAW_LAG: SignedDuration = SignedDuration::from_millis(250);
/// Titles follow later still.
const TITLE_LAG: SignedDuration = SignedDuration::from_secs(1);
/// Two looks at least this far apart that show the same show what is, though output goes on.
const STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

/// What one look at a pane showed.
#[derive(Debug)]
pub(crate) struct ScreenEvidence {
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) pane: PaneId,
    /// The agent that was there before the look.
    pub(crate) process: ProcessRef,
    pub(crate) captured_at: Timestamp,
    pub(crate) observations: Vec<SourceObservation>,
    /// What was looked at and said nothing.
    pub(crate) silent_sources: Vec<Source>,
}

impl ScreenEvidence {
    /// What an agent kept about itself is no longer there.
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

    /// An agent that was started for one turn, with nobody to talk to.
    pub(super) fn headless(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        began: Timestamp,
    ) -> Self {
        let sights = [Assertion::Running, Assertion::NoDialog].map(|stand| SourceObservation {
            source: Source::Process,
            assertion: stand,
            conclusive: true,
            inferred_from_absence: false,
            no_turn_visible: false,
            settled: true,
            as_of: began,
            rule: RuleRef { name: "headless".into(), version: 1 },
            excerpt: "started for one turn, with nobody to talk to".into(),
            dialog: None,
        });
        Self {
            server,
            generation,
            pane,
            process,
            captured_at: began,
            observations: sights.into(),
            silent_sources: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct SourceObservation {
    pub(crate) source: Source,
    pub(crate) assertion: Assertion,
    pub(crate) conclusive: bool,
    /// Concluded from what is not to be seen.
    pub(crate) inferred_from_absence: bool,
    /// Nothing of any turn is left on it.
    pub(crate) no_turn_visible: bool,
    pub(crate) settled: bool,
    pub(crate) as_of: Timestamp,
    pub(crate) rule: RuleRef,
    pub(crate) excerpt: String,
    pub(crate) dialog: Option<Dialog>,
}

/// What the look before showed, by pane.
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

    /// Judges a capture whose making began at this time.
    pub(super) fn judge(
        &mut self,
        registry: &AgentRegistry,
        (server, generation): (ServerKey, Generation),
        look: &DueCapture,
        capture: &Capture,
        began: Timestamp,
    ) -> ScreenEvidence {
        let agent_type = look.agent_type.as_str();
        let title = text::from_bytes(&capture.title);
        let reading = registry.read_screen(agent_type, &CapturedScreen::parse(&capture.screen), Some(&title));
        let harmless = |text: String| redact::text(&text).into_owned();
        let stands: Vec<Assertion> = reading.observations.iter().map(|said| said.assertion).collect();
        let (settled, shown_from) = self.settled_since(look, began, &stands);
        let before = |span: SignedDuration, at: Timestamp| at.checked_sub(span).unwrap_or(at);
        let dialog = reading.dialog.map(without_secrets);
        let mut sights: Vec<SourceObservation> = Vec::new();
        for said in reading.observations {
            sights.push(SourceObservation {
                source: Source::Screen,
                assertion: said.assertion,
                conclusive: said.conclusive,
                inferred_from_absence: said.yields,
                no_turn_visible: said.anew,
                settled,
                as_of: before(DRAW_LAG, shown_from),
                rule: said.rule,
                excerpt: harmless(said.excerpt),
                dialog: matches!(said.assertion, Assertion::DialogOpen(_)).then(|| dialog.clone()).flatten(),
            });
        }
        let mut silent = Vec::new();
        if sights.is_empty() {
            silent.push(Source::Screen);
        }
        // A title that is only a hint takes back what the one before it said.
        let titles: Vec<_> =
            registry.title_observations(agent_type, &title).into_iter().filter(|said| said.conclusive).collect();
        if titles.is_empty() {
            silent.push(Source::Title);
        }
        sights.extend(titles.into_iter().map(|said| SourceObservation {
            source: Source::Title,
            assertion: said.assertion,
            conclusive: said.conclusive,
            inferred_from_absence: said.yields,
            no_turn_visible: said.anew,
            settled: true,
            as_of: before(TITLE_LAG, began),
            rule: said.rule,
            excerpt: harmless(said.excerpt),
            dialog: None,
        }));
        ScreenEvidence {
            server,
            generation,
            pane: PaneId(look.pane),
            process: look.process,
            captured_at: began,
            observations: sights,
            silent_sources: silent,
        }
    }

    /// Whether what is shown is not about to change, and since when it is known to be shown.
    fn settled_since(&mut self, look: &DueCapture, began: Timestamp, stands: &[Assertion]) -> (bool, Timestamp) {
        let now = PreviousCapture { process: look.process, captured_at: began, assertions: stands.to_vec() };
        let before = self.previous.insert(look.pane, now);
        let same = before.filter(|b| b.process == look.process && b.assertions == stands);
        match same.map(|b| b.captured_at).filter(|b| began.duration_since(*b) >= STABLE_FOR) {
            _ if look.settled => (true, began),
            Some(earlier) => (true, earlier),
            None => (false, began),
        }
    }
}

/// What is asked may hold a secret, such as a command with a key in it. Its fingerprint stays that of the whole.
fn without_secrets(dialog: Dialog) -> Dialog {
    let harmless = |text: String| redact::text(&text).into_owned();
    let option = |option: DialogOption| DialogOption { label: harmless(option.label), ..option };
    Dialog {
        question: harmless(dialog.question),
        subject: dialog.subject.map(harmless),
        options: dialog.options.into_iter().map(option).collect(),
        ..dialog
    }
}
