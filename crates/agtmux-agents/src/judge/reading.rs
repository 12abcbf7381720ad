//! Observations from one screen or title. The ledger compares them with other sources.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, RuleRef};
use agtmux_core::state::State;

use super::dialog::FoundDialog;
use super::{dialog, rule};
use crate::manifest::Manifest;
use crate::screen::{CapturedScreen, ScreenRegions, normalize_text};

/// One observation from a screen or title, and the rule behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenObservation {
    pub assertion: Assertion,
    /// Whether the rule is certain without other evidence.
    pub conclusive: bool,
    /// Concluded from something that is absent on the screen. It does not overrule the agent's own events.
    pub yields: bool,
    /// The screen shows no turn any more, so the result of the last turn no longer counts.
    pub anew: bool,
    pub rule: RuleRef,
    /// The line that the rule matched, unchanged.
    pub excerpt: String,
}

/// All observations from a screen. Empty if no rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenReading {
    /// The observation that determines the state comes first.
    pub observations: Vec<ScreenObservation>,
    pub dialog: Option<Dialog>,
    /// The number of the selected option, if visible.
    pub selected: Option<u32>,
    /// The numbers of the options with a tick box, and whether each one is ticked.
    pub ticks: Vec<(u32, bool)>,
}

impl ScreenReading {
    pub(crate) fn from_screen(manifest: &Manifest, screen: &CapturedScreen, title: Option<&str>) -> Self {
        let rules = manifest.rules();
        let regions = ScreenRegions::find(screen, rules.layout.as_ref());
        let title = title.map(normalize_text).filter(|title| !title.is_empty());
        let observe = |assertion, conclusive, name: &str, excerpt: &str| ScreenObservation {
            assertion,
            conclusive,
            yields: false,
            anew: false,
            rule: RuleRef { name: name.to_owned(), version: manifest.version },
            excerpt: excerpt.to_owned(),
        };
        if let Some((rule, FoundDialog { dialog, selected, ticks })) = dialog::find(&rules.dialog, &regions) {
            let asks = observe(Assertion::DialogOpen(dialog.kind), rule.conclusive, &rule.name, &dialog.question);
            return Self { observations: vec![asks], dialog: Some(dialog), selected, ticks };
        }
        let fitting = rules.screen.iter().find_map(|r| Some((r, rule::matching_line(r, &regions, title.as_deref())?)));
        let Some((rule, excerpt)) = fitting else { return Self::default() };
        let observe_state = |assertion: &Assertion| ScreenObservation {
            yields: rule.yields,
            anew: rule.anew,
            ..observe(*assertion, rule.conclusive, &rule.name, &excerpt)
        };
        let observations = assertions(rule.state).iter().map(observe_state);
        Self { observations: observations.collect(), ..Self::default() }
    }
}

impl ScreenObservation {
    pub(crate) fn from_title(manifest: &Manifest, title: &str) -> Option<Self> {
        let title = normalize_text(title);
        let rule = manifest.rules().title.iter().find(|rule| rule.pattern.is_match(&title))?;
        let assertion = *assertions(rule.state).first()?;
        let name = RuleRef { name: rule.name.clone(), version: manifest.version };
        Some(Self { assertion, conclusive: rule.conclusive, yields: false, anew: false, rule: name, excerpt: title })
    }
}

/// The assertions for a state. A waiting agent may be in the middle of a turn; in any other state no dialog is open.
fn assertions(state: State) -> &'static [Assertion] {
    match state {
        State::Running => &[Assertion::Running, Assertion::NoDialog],
        State::Idle => &[Assertion::Idle, Assertion::NoDialog],
        State::Completed => &[Assertion::Completed, Assertion::NoDialog],
        State::Error => &[Assertion::Failed, Assertion::NoDialog],
        State::WaitingApproval => &[Assertion::DialogOpen(DialogKind::Approval)],
        State::WaitingInput => &[Assertion::DialogOpen(DialogKind::Input)],
        State::Unknown => &[],
    }
}
