//! Observations from one screen or title. The ledger compares them with observations from other sources.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::state::State;
use jiff::Timestamp;

use super::dialog::FoundDialog;
use super::{dialog, rule};
use crate::manifest::Manifest;
use crate::screen::{CapturedScreen, ScreenRegions, normalize_text};

/// A placeholder for the time of an observation. This module does not know when a screen was captured. The caller sets
/// the time.
const UNDATED: Timestamp = Timestamp::UNIX_EPOCH;

/// All observations that the rules make from one screen. Empty if no rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenReading {
    /// The observation that determines the state comes first.
    pub observations: Vec<Observation>,
    /// The number of the selected option: the one that the dialog highlights. None if the screen shows no highlight.
    pub selected: Option<u32>,
    /// The numbers of the options with a tick box, and whether each box is ticked.
    pub ticks: Vec<(u32, bool)>,
    /// Whether the dialog is a panel: it has replaced the input box, and agtmux cannot read its options. agtmux can
    /// close a panel but cannot answer it.
    pub is_panel: bool,
}

impl ScreenReading {
    pub(crate) fn from_screen(manifest: &Manifest, screen: &CapturedScreen, title: Option<&str>) -> Self {
        let regions = ScreenRegions::find(screen, manifest.layout.as_ref());
        let title = title.map(normalize_text).filter(|title| !title.is_empty());
        let observe = |assertion, conclusive, name: &str, excerpt: &str| Observation {
            conclusive,
            excerpt: excerpt.to_owned(),
            ..Observation::new(Source::Screen, assertion, UNDATED, RuleRef::new(name, manifest.version))
        };
        if let Some((rule, FoundDialog { dialog, selected, ticks })) = dialog::find(&manifest.dialog, &regions) {
            let asks = observe(Assertion::DialogOpen(dialog.kind), rule.conclusive, &rule.name, &dialog.question);
            let asks = Observation { dialog: Some(Box::new(dialog)), ..asks };
            return Self { observations: vec![asks], selected, ticks, is_panel: false };
        }
        let fitting =
            manifest.screen.iter().find_map(|r| Some((r, rule::matching_line(r, &regions, title.as_deref())?)));
        let Some((rule, excerpt)) = fitting else { return Self::default() };
        let observe_state = |assertion: &Assertion| Observation {
            inferred_from_absence: if *assertion == Assertion::NoDialog { rule.overlaid } else { rule.yields },
            no_turn_visible: rule.anew,
            ..observe(*assertion, rule.conclusive, &rule.name, &excerpt)
        };
        let mut observations: Vec<Observation> = Assertion::for_state(rule.state).iter().map(observe_state).collect();
        let is_panel = rule.state == State::WaitingInput && rule.conclusive && !regions.has_box();
        if let Some(asks) = observations.first_mut().filter(|_| is_panel) {
            let title = rule::panel_title(rule, &regions);
            asks.dialog = Some(Box::new(Dialog::new(DialogKind::Input, title, None, Vec::new())));
        }
        Self { observations, is_panel, ..Self::default() }
    }

    /// The open dialog.
    pub fn dialog(&self) -> Option<&Dialog> {
        self.observations.first()?.dialog.as_deref()
    }
}

/// The observation that a title rule makes. If the title announces a dialog, the observation is about that dialog.
/// Otherwise it is about the turn.
pub(crate) fn read_title(manifest: &Manifest, title: &str) -> Option<Observation> {
    let title = normalize_text(title);
    let rule = manifest.title.iter().find(|rule| rule.pattern.is_match(&title))?;
    let assertion = *Assertion::for_state(rule.state).first()?;
    let name = RuleRef::new(rule.name.as_str(), manifest.version);
    let observation = Observation::new(Source::Title, assertion, UNDATED, name);
    Some(Observation { conclusive: rule.conclusive, excerpt: title, ..observation })
}
