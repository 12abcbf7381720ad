//! The dialog that is on the screen at this moment, and how it is answered.

use std::time::Duration;

use agtmux_agents::{AnswerKeys, AnswerMethod, OptionPattern, Pattern};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::dialog::Dialog;
use tokio::time::{Instant, sleep};

use super::super::pane_screen::PaneScreen;
use super::super::{ActionFailure, ActionPane, guards};

/// How long after it is known that an agent asks, it is on its screen at the latest.
const DRAW_TIMEOUT: Duration = Duration::from_millis(800);
const POLL_INTERVAL: Duration = Duration::from_millis(40);

#[derive(Debug, Clone)]
pub(super) struct OpenDialog {
    pub(super) dialog: Dialog,
    /// The rule that found it.
    pub(super) rule: String,
    pub(super) keys: AnswerKeys,
    /// The number of the option that is selected, where that can be seen.
    pub(super) selected: Option<u32>,
    /// The numbers of those that can be ticked, and whether each is.
    pub(super) ticks: Vec<(u32, bool)>,
}

impl OpenDialog {
    /// Agents tell that they ask before they draw it.
    pub(super) async fn wait_for(scene: &ActionPane<'_>) -> Result<Self, ActionFailure> {
        let deadline = Instant::now() + DRAW_TIMEOUT;
        loop {
            let late = Instant::now() >= deadline;
            match Self::from_screen(scene, &scene.capture().await?)? {
                Some(open) => return Ok(open),
                None if late => {
                    let error = guards::state_changed("what it asks is not on its screen; nothing was typed".into());
                    return Err(ActionFailure::refused(error));
                }
                None => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// None where no dialog is on the screen.
    pub(super) fn from_screen(scene: &ActionPane<'_>, look: &PaneScreen) -> Result<Option<Self>, ActionFailure> {
        let agent_type = scene.agent()?.runtime.agent_type.clone();
        let registry = scene.actions.0.discovery.registry();
        let reading = look.reading(&registry, agent_type.as_str());
        let rule = reading.observations.first().map(|said| said.rule.name.clone()).unwrap_or_default();
        let keys = registry.answer_keys(agent_type.as_str(), &rule).cloned();
        let (selected, ticks) = (reading.selected, reading.ticks);
        Ok(reading.dialog.zip(keys).map(|(dialog, keys)| Self { dialog, rule, keys, selected, ticks }))
    }

    /// Whether it is just as it was.
    pub(super) fn is_unchanged_since(&self, since: &Self) -> bool {
        self.rule == since.rule && self.dialog.fingerprint == since.dialog.fingerprint
    }

    /// Whether it is the same question, whatever was done to its options: some show what is typed into them. What is all
    /// text cannot be told from what is typed into it: there it has to be known what was typed.
    pub(super) fn is_same_question(&self, other: &Self) -> bool {
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

    pub(super) fn option_with_label(&self, label: &Pattern) -> Option<u32> {
        self.first_option(|option| label.is_match(option))
    }

    pub(super) fn option_for_answer(&self, meant: &OptionPattern) -> Option<u32> {
        self.first_option(|option| meant.is_match(option))
    }

    fn first_option(&self, fits: impl Fn(&str) -> bool) -> Option<u32> {
        self.dialog.options.iter().find(|option| fits(&option.label)).map(|option| option.n)
    }

    /// `1. Yes`
    pub(super) fn label(&self, n: u32) -> Result<String, ActionFailure> {
        let option = self.dialog.options.iter().find(|option| option.n == n);
        let missing = || {
            let error = ApiError::new(ErrorCode::BadRequest, format!("it offers no option {n}"));
            ActionFailure::refused(error.with_hint(self.accepted_answers()))
        };
        option.map(|option| format!("{n}. {}", option.label)).ok_or_else(missing)
    }

    /// Whether words go into the option that is selected: a digit would be one of them.
    pub(super) fn is_text_option_selected(&self) -> bool {
        self.selected.is_some_and(|selected| self.is_text_option(selected))
    }

    /// Whether this option is nothing but a place for words.
    pub(super) fn is_text_option(&self, n: u32) -> bool {
        let text = self.keys.text.as_ref().filter(|text| text.keys.is_empty() && !text.opens);
        let Some(place) = text.and_then(|text| text.at.as_ref().or(text.take.as_ref())) else { return false };
        match self.option_with_label(place) {
            Some(place) => place == n,
            // Words that stand there already take the place of its label. It is the last that can be ticked.
            None => self.ticks.last().is_some_and(|(last, _)| *last == n),
        }
    }

    /// For whoever has given an answer that it does not take.
    pub(super) fn accepted_answers(&self) -> String {
        let plain = |word: &str, known: bool| known.then(|| word.to_owned());
        let is_known = |way: &Option<AnswerMethod>| match way {
            Some(AnswerMethod::Option(meant)) => self.option_for_answer(meant).is_some(),
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
