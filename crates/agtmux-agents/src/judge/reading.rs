//! What one look at a screen or a title says, for whoever weighs it against other sources.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{DialogKind, Rule, Stand};
use agtmux_core::state::State;

use super::dialog::Open;
use super::{dialog, rule};
use crate::manifest::Manifest;
use crate::screen::{Regions, Screen, plain};

/// One statement, with what decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub stand: Stand,
    /// Whether it may stand for itself.
    pub conclusive: bool,
    /// Concluded from what is not to be seen: it makes nothing untrue that the agent itself says.
    pub yields: bool,
    /// Nothing of any turn is left on screen: how the last one ended no longer counts.
    pub anew: bool,
    pub rule: Rule,
    /// The line that decided, as it was found.
    pub excerpt: String,
}

/// Everything that a screen says. Nothing where no rule fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// What says the state comes first.
    pub stands: Vec<Said>,
    pub dialog: Option<Dialog>,
    /// The number of the option that is selected in it, where that can be seen.
    pub selected: Option<u32>,
    /// The numbers of those that can be ticked, and whether each is.
    pub ticks: Vec<(u32, bool)>,
}

impl Reading {
    pub(crate) fn of(manifest: &Manifest, screen: &Screen, title: Option<&str>) -> Self {
        let rules = manifest.rules();
        let regions = Regions::find(screen, rules.layout.as_ref());
        let title = title.map(plain).filter(|title| !title.is_empty());
        let said = |stand, conclusive, name: &str, excerpt: &str| Said {
            stand,
            conclusive,
            yields: false,
            anew: false,
            rule: Rule { name: name.to_owned(), version: manifest.version },
            excerpt: excerpt.to_owned(),
        };
        if let Some((rule, Open { dialog, selected, ticks })) = dialog::find(&rules.dialog, &regions) {
            let asks = said(Stand::Asks(dialog.kind), rule.conclusive, &rule.name, &dialog.question);
            return Self { stands: vec![asks], dialog: Some(dialog), selected, ticks };
        }
        let fitting = rules.screen.iter().find_map(|r| Some((r, rule::fits(r, &regions, title.as_deref())?)));
        let Some((rule, excerpt)) = fitting else { return Self::default() };
        let said = |stand: &Stand| Said {
            yields: rule.yields,
            anew: rule.anew,
            ..said(*stand, rule.conclusive, &rule.name, &excerpt)
        };
        let stands = stands(rule.state).iter().map(said);
        Self { stands: stands.collect(), ..Self::default() }
    }
}

impl Said {
    pub(crate) fn by_title(manifest: &Manifest, title: &str) -> Option<Self> {
        let title = plain(title);
        let rule = manifest.rules().title.iter().find(|rule| rule.pattern.is_match(&title))?;
        let stand = *stands(rule.state).first()?;
        let name = Rule { name: rule.name.clone(), version: manifest.version };
        Some(Self { stand, conclusive: rule.conclusive, yields: false, anew: false, rule: name, excerpt: title })
    }
}

/// An agent that asks may be in the middle of a turn; one that does anything else asks nothing.
fn stands(state: State) -> &'static [Stand] {
    match state {
        State::Running => &[Stand::Running, Stand::AsksNothing],
        State::Idle => &[Stand::Idle, Stand::AsksNothing],
        State::Completed => &[Stand::Completed, Stand::AsksNothing],
        State::Error => &[Stand::Failed, Stand::AsksNothing],
        State::WaitingApproval => &[Stand::Asks(DialogKind::Approval)],
        State::WaitingInput => &[Stand::Asks(DialogKind::Input)],
        State::Unknown => &[],
    }
}
