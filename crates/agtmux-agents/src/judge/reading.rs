//! What one look at a screen or a title says, for whoever weighs it against other sources.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, RuleRef};
use agtmux_core::state::State;

use super::dialog::FoundDialog;
use super::{dialog, rule};
use crate::manifest::Manifest;
use crate::screen::{CapturedScreen, ScreenRegions, normalize_text};

/// One statement, with what decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenObservation {
    pub assertion: Assertion,
    /// Whether it may stand for itself.
    pub conclusive: bool,
    /// Concluded from what is not to be seen: it makes nothing untrue that the agent itself says.
    pub yields: bool,
    /// Nothing of any turn is left on screen: how the last one ended no longer counts.
    pub anew: bool,
    pub rule: RuleRef,
    /// The line that decided, as it was found.
    pub excerpt: String,
}

/// Everything that a screen says. Nothing where no rule fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenReading {
    /// What says the state comes first.
    pub observations: Vec<ScreenObservation>,
    pub dialog: Option<Dialog>,
    /// The number of the option that is selected in it, where that can be seen.
    pub selected: Option<u32>,
    /// The numbers of those that can be ticked, and whether each is.
    pub ticks: Vec<(u32, bool)>,
}

impl ScreenReading {
    pub(crate) fn from_screen(manifest: &Manifest, screen: &CapturedScreen, title: Option<&str>) -> Self {
        let rules = manifest.rules();
        let regions = ScreenRegions::find(screen, rules.layout.as_ref());
        let title = title.map(normalize_text).filter(|title| !title.is_empty());
        let said = |stand, conclusive, name: &str, excerpt: &str| ScreenObservation {
            assertion: stand,
            conclusive,
            yields: false,
            anew: false,
            rule: RuleRef { name: name.to_owned(), version: manifest.version },
            excerpt: excerpt.to_owned(),
        };
        if let Some((rule, FoundDialog { dialog, selected, ticks })) = dialog::find(&rules.dialog, &regions) {
            let asks = said(Assertion::DialogOpen(dialog.kind), rule.conclusive, &rule.name, &dialog.question);
            return Self { observations: vec![asks], dialog: Some(dialog), selected, ticks };
        }
        let fitting = rules.screen.iter().find_map(|r| Some((r, rule::matching_line(r, &regions, title.as_deref())?)));
        let Some((rule, excerpt)) = fitting else { return Self::default() };
        let said = |stand: &Assertion| ScreenObservation {
            yields: rule.yields,
            anew: rule.anew,
            ..said(*stand, rule.conclusive, &rule.name, &excerpt)
        };
        let stands = assertions(rule.state).iter().map(said);
        Self { observations: stands.collect(), ..Self::default() }
    }
}

impl ScreenObservation {
    pub(crate) fn from_title(manifest: &Manifest, title: &str) -> Option<Self> {
        let title = normalize_text(title);
        let rule = manifest.rules().title.iter().find(|rule| rule.pattern.is_match(&title))?;
        let stand = *assertions(rule.state).first()?;
        let name = RuleRef { name: rule.name.clone(), version: manifest.version };
        Some(Self {
            assertion: stand,
            conclusive: rule.conclusive,
            yields: false,
            anew: false,
            rule: name,
            excerpt: title,
        })
    }
}

/// An agent that asks may be in the middle of a turn; one that does anything else asks nothing.
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
