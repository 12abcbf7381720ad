//! From captures to what they say.

use std::collections::HashMap;

use agtmux_agents::{Registry, Screen};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::{Rule, Source, Stand};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_core::{redact, text};
use agtmux_tmux::Capture;
use jiff::{SignedDuration, Timestamp};

use super::screens::Look;

/// An agent draws what it does a moment after it begins, and may say it in the meantime.
const DRAWN_WITHIN: SignedDuration = SignedDuration::from_millis(250);
/// Titles follow later still.
const TITLED_WITHIN: SignedDuration = SignedDuration::from_secs(1);
/// Two looks at least this far apart that show the same show what is, though output goes on.
const SAME_FOR: SignedDuration = SignedDuration::from_millis(300);

/// What one look at a pane showed.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) pane: PaneId,
    /// The agent that was there before the look.
    pub(crate) process: ProcessRef,
    pub(crate) began: Timestamp,
    pub(crate) sights: Vec<Sight>,
    /// What was looked at and said nothing.
    pub(crate) silent: Vec<Source>,
}

impl Seen {
    /// What an agent kept about itself is no longer there.
    pub(super) fn file_is_gone(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        began: Timestamp,
    ) -> Self {
        Self { server, generation, pane, process, began, sights: Vec::new(), silent: vec![Source::File] }
    }

    /// An agent that was started for one turn, with nobody to talk to.
    pub(super) fn headless(
        (server, generation): (ServerKey, Generation),
        pane: PaneId,
        process: ProcessRef,
        began: Timestamp,
    ) -> Self {
        let sights = [Stand::Running, Stand::AsksNothing].map(|stand| Sight {
            source: Source::Process,
            stand,
            conclusive: true,
            yields: false,
            anew: false,
            settled: true,
            as_of: began,
            rule: Rule { name: "headless".into(), version: 1 },
            excerpt: "started for one turn, with nobody to talk to".into(),
            dialog: None,
        });
        Self { server, generation, pane, process, began, sights: sights.into(), silent: Vec::new() }
    }
}

#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) source: Source,
    pub(crate) stand: Stand,
    pub(crate) conclusive: bool,
    /// Concluded from what is not to be seen.
    pub(crate) yields: bool,
    /// Nothing of any turn is left on it.
    pub(crate) anew: bool,
    pub(crate) settled: bool,
    pub(crate) as_of: Timestamp,
    pub(crate) rule: Rule,
    pub(crate) excerpt: String,
    pub(crate) dialog: Option<Dialog>,
}

/// What the look before showed, by pane.
#[derive(Debug, Default)]
pub(super) struct Eyes {
    before: HashMap<u32, Before>,
}

#[derive(Debug)]
struct Before {
    process: ProcessRef,
    began: Timestamp,
    stands: Vec<Stand>,
}

impl Eyes {
    pub(super) fn forget_all_but(&mut self, panes: impl Fn(u32) -> bool) {
        self.before.retain(|pane, _| panes(*pane));
    }

    /// Judges a capture whose making began at this time.
    pub(super) fn judge(
        &mut self,
        registry: &Registry,
        (server, generation): (ServerKey, Generation),
        look: &Look,
        capture: &Capture,
        began: Timestamp,
    ) -> Seen {
        let agent_type = look.agent_type.as_str();
        let title = text::from_bytes(&capture.title);
        let reading = registry.read_screen(agent_type, &Screen::parse(&capture.screen), Some(&title));
        let harmless = |text: String| redact::text(&text).into_owned();
        let stands: Vec<Stand> = reading.stands.iter().map(|said| said.stand).collect();
        let (settled, shown_from) = self.since(look, began, &stands);
        let before = |span: SignedDuration, at: Timestamp| at.checked_sub(span).unwrap_or(at);
        let dialog = reading.dialog.map(without_secrets);
        let mut sights: Vec<Sight> = Vec::new();
        for said in reading.stands {
            sights.push(Sight {
                source: Source::Screen,
                stand: said.stand,
                conclusive: said.conclusive,
                yields: said.yields,
                anew: said.anew,
                settled,
                as_of: before(DRAWN_WITHIN, shown_from),
                rule: said.rule,
                excerpt: harmless(said.excerpt),
                dialog: matches!(said.stand, Stand::Asks(_)).then(|| dialog.clone()).flatten(),
            });
        }
        let mut silent = Vec::new();
        if sights.is_empty() {
            silent.push(Source::Screen);
        }
        // A title that is only a hint takes back what the one before it said.
        let titles: Vec<_> = registry.titles(agent_type, &title).into_iter().filter(|said| said.conclusive).collect();
        if titles.is_empty() {
            silent.push(Source::Title);
        }
        sights.extend(titles.into_iter().map(|said| Sight {
            source: Source::Title,
            stand: said.stand,
            conclusive: said.conclusive,
            yields: said.yields,
            anew: said.anew,
            settled: true,
            as_of: before(TITLED_WITHIN, began),
            rule: said.rule,
            excerpt: harmless(said.excerpt),
            dialog: None,
        }));
        Seen { server, generation, pane: PaneId(look.pane), process: look.process, began, sights, silent }
    }

    /// Whether what is shown is not about to change, and since when it is known to be shown.
    fn since(&mut self, look: &Look, began: Timestamp, stands: &[Stand]) -> (bool, Timestamp) {
        let now = Before { process: look.process, began, stands: stands.to_vec() };
        let before = self.before.insert(look.pane, now);
        let same = before.filter(|b| b.process == look.process && b.stands == stands);
        match same.map(|b| b.began).filter(|b| began.duration_since(*b) >= SAME_FOR) {
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
