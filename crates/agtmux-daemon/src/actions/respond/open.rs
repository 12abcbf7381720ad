//! The dialog that is on the screen at this moment, and how it is answered.

use std::time::Duration;

use agtmux_agents::{AnswerKeys, OptionPattern, Pattern, Way};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::dialog::Dialog;
use tokio::time::{Instant, sleep};

use super::super::look::Look;
use super::super::{Failure, Scene, guards};

/// How long after it is known that an agent asks, it is on its screen at the latest.
const DRAWN_WITHIN: Duration = Duration::from_millis(800);
const LOOK_EVERY: Duration = Duration::from_millis(40);

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) dialog: Dialog,
    /// The rule that found it.
    pub(super) rule: String,
    pub(super) keys: AnswerKeys,
    /// The number of the option that is selected, where that can be seen.
    pub(super) selected: Option<u32>,
    /// The numbers of those that can be ticked, and whether each is.
    pub(super) ticks: Vec<(u32, bool)>,
}

impl Open {
    /// Agents tell that they ask before they draw it.
    pub(super) async fn read(scene: &Scene<'_>) -> Result<Self, Failure> {
        let deadline = Instant::now() + DRAWN_WITHIN;
        loop {
            let late = Instant::now() >= deadline;
            match Self::seen(scene, &scene.look().await?)? {
                Some(open) => return Ok(open),
                None if late => {
                    let error = guards::changed("what it asks is not on its screen; nothing was typed".into());
                    return Err(Failure::refused(error));
                }
                None => sleep(LOOK_EVERY).await,
            }
        }
    }

    /// None where no dialog is on the screen.
    pub(super) fn seen(scene: &Scene<'_>, look: &Look) -> Result<Option<Self>, Failure> {
        let agent_type = scene.agent()?.runtime.agent_type.clone();
        let registry = scene.actions.0.discovery.registry();
        let reading = look.reading(&registry, agent_type.as_str());
        let rule = reading.stands.first().map(|said| said.rule.name.clone()).unwrap_or_default();
        let keys = registry.answers(agent_type.as_str(), &rule).cloned();
        let (selected, ticks) = (reading.selected, reading.ticks);
        Ok(reading.dialog.zip(keys).map(|(dialog, keys)| Self { dialog, rule, keys, selected, ticks }))
    }

    /// Whether it is just as it was.
    pub(super) fn is_untouched(&self, since: &Self) -> bool {
        self.rule == since.rule && self.dialog.fingerprint == since.dialog.fingerprint
    }

    /// Whether it is the same question, whatever was done to its options: some show what is typed into them. What is all
    /// text cannot be told from what is typed into it: there it has to be known what was typed.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        if self.dialog.options.is_empty() && other.dialog.options.is_empty() {
            return self.rule == other.rule;
        }
        let asked = |open: &Self| (open.dialog.kind, open.dialog.question.clone(), open.dialog.subject.clone());
        asked(self) == asked(other) && self.dialog.options.len() == other.dialog.options.len()
    }

    /// Whether just these are ticked.
    pub(super) fn has_ticked(&self, wanted: &[u32]) -> bool {
        self.ticks.iter().all(|(n, ticked)| wanted.contains(n) == *ticked)
    }

    pub(super) fn option_like(&self, label: &Pattern) -> Option<u32> {
        self.first_option(|option| label.is_match(option))
    }

    pub(super) fn option_for(&self, meant: &OptionPattern) -> Option<u32> {
        self.first_option(|option| meant.is_match(option))
    }

    fn first_option(&self, fits: impl Fn(&str) -> bool) -> Option<u32> {
        self.dialog.options.iter().find(|option| fits(&option.label)).map(|option| option.n)
    }

    /// `1. Yes`
    pub(super) fn label(&self, n: u32) -> Result<String, Failure> {
        let option = self.dialog.options.iter().find(|option| option.n == n);
        let missing = || {
            let error = ApiError::new(ErrorCode::BadRequest, format!("it offers no option {n}"));
            Failure::refused(error.with_hint(self.takes()))
        };
        option.map(|option| format!("{n}. {}", option.label)).ok_or_else(missing)
    }

    /// Whether words go into the option that is selected: a digit would be one of them.
    pub(super) fn is_at_words(&self) -> bool {
        self.selected.is_some_and(|selected| self.is_for_words(selected))
    }

    /// Whether this option is nothing but a place for words.
    pub(super) fn is_for_words(&self, n: u32) -> bool {
        let text = self.keys.text.as_ref().filter(|text| text.keys.is_empty() && !text.opens);
        let Some(place) = text.and_then(|text| text.at.as_ref().or(text.take.as_ref())) else { return false };
        match self.option_like(place) {
            Some(place) => place == n,
            // Words that stand there already take the place of its label. It is the last that can be ticked.
            None => self.ticks.last().is_some_and(|(last, _)| *last == n),
        }
    }

    /// For whoever has given an answer that it does not take.
    pub(super) fn takes(&self) -> String {
        let plain = |word: &str, known: bool| known.then(|| word.to_owned());
        let is_known = |way: &Option<Way>| match way {
            Some(Way::Option(meant)) => self.option_for(meant).is_some(),
            other => other.is_some(),
        };
        let numbers = self.dialog.options.iter().filter(|_| self.keys.option.is_some());
        let several = plain("several with commas between them", self.keys.many.is_some());
        let mut words: Vec<String> = plain("approve", is_known(&self.keys.approve)).into_iter().collect();
        words.extend(plain("deny", is_known(&self.keys.deny)));
        words.extend(numbers.map(|option| option.n.to_string()));
        words.extend(several);
        words.extend(plain("--text", self.keys.text.is_some()));
        match words.is_empty() {
            true => "answer it in its pane: agtmux attach REF".into(),
            false => format!("it takes {}; or answer it in its pane: agtmux attach REF", words.join(", ")),
        }
    }
}
