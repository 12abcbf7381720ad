//! The dialog that is on the screen now, and the keys that answer it.

use std::time::Duration;

use agtmux_agents::{AnswerKeys, AnswerMethod, OptionPattern, Pattern};
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_core::asked_command;
use agtmux_core::dialog::{Dialog, DialogOption};

use super::super::pane_screen::PaneScreen;
use super::super::{ActionPane, guards};
use crate::engine::LocatedAgent;

/// How long an agent may take to draw a dialog that it has reported.
const DRAW_TIMEOUT: Duration = Duration::from_millis(800);

#[derive(Clone)]
pub(in crate::actions) struct OpenDialog<'a> {
    pub(super) pane: &'a ActionPane<'a>,
    /// The dialog as the screen shows it.
    pub(super) dialog: Dialog,
    /// The dialog as clients see it: without secrets, and with the whole command if the agent has reported it.
    pub(super) shown: Dialog,
    /// The manifest rule that recognised the dialog.
    pub(super) rule: String,
    pub(super) keys: AnswerKeys,
    /// The number of the selected option, if the screen shows which option is selected.
    pub(super) selected: Option<u32>,
    /// The options that can be ticked, and whether each one is ticked.
    pub(super) ticks: Vec<(u32, bool)>,
}

impl<'a> OpenDialog<'a> {
    /// Waits for a dialog on the screen. Agents report a dialog before they draw it.
    pub(super) async fn wait_for(pane: &'a ActionPane<'a>) -> ApiResult<Self> {
        let open = pane.poll_screen(DRAW_TIMEOUT, |capture| Self::from_screen(pane, capture)).await?;
        open.ok_or_else(|| guards::state_changed("the dialog is not on the screen; nothing was typed".into()))
    }

    /// The dialog on this screen, or `None` if the screen shows no dialog.
    pub(in crate::actions) fn from_screen(pane: &'a ActionPane<'a>, capture: &PaneScreen) -> ApiResult<Option<Self>> {
        let agent_type = &pane.agent()?.runtime.agent_type;
        let registry = pane.actions.0.discovery.registry();
        let Some(agent) = registry.agent(agent_type.as_str()) else { return Ok(None) };
        let reading = capture.reading(agent);
        let rule = reading.observations.first().map(|observation| observation.rule.name.clone()).unwrap_or_default();
        let mut keys = agent.answer_keys(&rule).clone();
        if reading.is_panel {
            keys = AnswerKeys { deny: keys.deny, ..AnswerKeys::default() };
        }
        let (dialog, selected, ticks) = (reading.dialog().cloned(), reading.selected, reading.ticks);
        let located = pane.agent()?;
        Ok(dialog.map(|dialog| {
            let shown = asked_command::complete(&dialog.clone().without_secrets(), &located.asked);
            Self { pane, dialog, shown, rule, keys, selected, ticks }
        }))
    }

    /// The dialog as clients see it, completed by what this agent has reported.
    pub(super) fn shown_to(&self, agent: &LocatedAgent) -> Dialog {
        asked_command::complete(&self.dialog.clone().without_secrets(), &agent.asked)
    }

    /// The fingerprint of the dialog as clients see it.
    pub(in crate::actions) fn fingerprint(&self) -> &str {
        &self.shown.fingerprint
    }

    /// Whether the screen shows only a part of the command, and the whole command comes from a report of the agent.
    pub(super) fn is_completed(&self) -> bool {
        self.shown.fingerprint != self.dialog.fingerprint
    }

    /// The dialog as this screen shows it, or `None` if the screen does not show the same question.
    pub(super) fn still_on(&self, capture: &PaneScreen) -> ApiResult<Option<Self>> {
        Ok(Self::from_screen(self.pane, capture)?.filter(|seen| seen.is_same_question(self)))
    }

    /// Whether this dialog is exactly the same as the earlier dialog `since`.
    pub(super) fn is_unchanged_since(&self, since: &Self) -> bool {
        self.rule == since.rule && self.dialog.fingerprint == since.dialog.fingerprint
    }

    /// Whether both dialogs ask the same question. Option labels are not compared, because some options show the text
    /// that is typed into them.
    ///
    /// The text of a dialog without options may include typed text. Two dialogs without options count as the same
    /// question if the same manifest rule recognised them.
    pub(super) fn is_same_question(&self, other: &Self) -> bool {
        if self.dialog.options.is_empty() && other.dialog.options.is_empty() {
            return self.rule == other.rule;
        }
        let asked = |open: &Self| (open.dialog.kind, open.dialog.question.clone(), open.dialog.subject.clone());
        asked(self) == asked(other) && self.dialog.options.len() == other.dialog.options.len()
    }

    /// Whether these options are ticked and all others are not.
    pub(super) fn has_ticked(&self, wanted: &[u32]) -> bool {
        self.ticks.iter().all(|(n, ticked)| wanted.contains(n) == *ticked)
    }

    pub(super) fn option_with_label(&self, label: &Pattern) -> Option<u32> {
        self.first_option(|option| label.is_match(option))
    }

    pub(super) fn option_for_answer(&self, expected: &OptionPattern) -> Option<u32> {
        self.first_option(|option| expected.is_match(option))
    }

    fn first_option(&self, fits: impl Fn(&str) -> bool) -> Option<u32> {
        self.dialog.options.iter().find(|option| fits(&option.label)).map(|option| option.n)
    }

    /// The number and label of an option, such as `1. Yes`.
    pub(super) fn label(&self, n: u32) -> ApiResult<String> {
        let option = self.dialog.options.iter().find(|option| option.n == n);
        let missing = || {
            let error = ApiError::new(ErrorCode::BadRequest, format!("the dialog has no option {n}"));
            error.with_hint(self.accepted_answers())
        };
        option.map(|option| format!("{n}. {}", option.label)).ok_or_else(missing)
    }

    /// Whether a text field is selected. In a text field, a digit key types a digit and selects no option.
    pub(super) fn is_text_option_selected(&self) -> bool {
        self.selected.is_some_and(|selected| self.is_text_option(selected))
    }

    /// Whether this option is itself a text field, and not an option that opens one.
    pub(super) fn is_text_option(&self, n: u32) -> bool {
        let text = self.keys.text.as_ref().filter(|text| text.keys.is_empty() && !text.opens);
        let Some(field) = text.and_then(|text| text.at.as_ref().or(text.take.as_ref())) else { return false };
        match self.option_with_label(field) {
            Some(field) => field == n,
            // Typed text has replaced the label of the text field. The field is the last option that can be ticked.
            None => self.ticks.last().is_some_and(|(last, _)| *last == n),
        }
    }

    /// The answers that the dialog accepts, as the user types them on the command line: `approve|deny|N|--text TEXT`.
    /// Empty if agtmux knows no keys for the dialog.
    pub(in crate::actions) fn answer_choices(&self) -> String {
        let numbered = self.keys.option.is_some() && !self.dialog.options.is_empty();
        let known = [
            ("approve", self.knows(&self.keys.approve)),
            ("deny", self.knows(&self.keys.deny)),
            ("N", numbered),
            ("--text TEXT", self.keys.text.is_some()),
        ];
        known.into_iter().filter(|(_, known)| *known).map(|(word, _)| word).collect::<Vec<_>>().join("|")
    }

    fn knows(&self, method: &Option<AnswerMethod>) -> bool {
        match method {
            Some(AnswerMethod::Option(expected)) => self.option_for_answer(expected).is_some(),
            other => other.is_some(),
        }
    }

    /// A hint that lists the accepted answers, for a caller that gave another answer.
    pub(super) fn accepted_answers(&self) -> String {
        let plain = |word: &str, known: bool| known.then(|| word.to_owned());
        let takes_number = |option: &&DialogOption| self.keys.option.is_some() && !self.is_text_option(option.n);
        let numbers = self.dialog.options.iter().filter(takes_number);
        let several = plain("several numbers separated by commas", self.keys.many.is_some());
        let mut words: Vec<String> = plain("approve", self.knows(&self.keys.approve)).into_iter().collect();
        words.extend(plain("deny", self.knows(&self.keys.deny)));
        words.extend(numbers.map(|option| option.n.to_string()));
        words.extend(several);
        words.extend(plain("--text", self.keys.text.is_some()));
        match words.is_empty() {
            true => "answer the dialog in the pane: agtmux attach REF".into(),
            false => {
                format!("accepted answers: {}; or answer the dialog in the pane: agtmux attach REF", words.join(", "))
            }
        }
    }
}
