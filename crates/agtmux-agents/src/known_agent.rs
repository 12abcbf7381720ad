//! One agent of the registry: its manifest, and the functions that apply it.

use agtmux_core::evidence::{Assertion, Claim, Observation, Source};
use agtmux_core::ids::AgentType;
use agtmux_core::state::State;

use crate::adapter::ManifestOrigin;
use crate::command_line::Invocation;
use crate::judge::{self, ScreenReading};
use crate::manifest::{
    AgentLogFile, AgentSetup, AgentStatusFile, AnswerKeys, ConversationStore, Manifest, ResumeTemplate, ScreenLayout,
    ScreenRegion, TypingRules,
};
use crate::native::{self, NativeEvent};
use crate::process::ProcessFacts;
use crate::screen::{CapturedScreen, ScreenRegions};

/// An agent that the registry knows.
#[derive(Debug)]
pub struct KnownAgent {
    pub(crate) manifest: Manifest,
    pub(crate) origin: ManifestOrigin,
}

impl KnownAgent {
    pub fn name(&self) -> &AgentType {
        &self.manifest.name
    }

    pub fn origin(&self) -> &ManifestOrigin {
        &self.origin
    }

    /// The program names of the agent.
    pub fn programs(&self) -> &[String] {
        &self.manifest.process.programs
    }

    /// The number of rules of each kind.
    pub fn rule_counts(&self) -> [(&'static str, usize); 4] {
        [
            ("screen", self.manifest.screen.len()),
            ("dialog", self.manifest.dialog.len()),
            ("title", self.manifest.title.len()),
            ("event", self.manifest.event.len()),
        ]
    }

    /// How `agtmux setup` makes the agent send its events.
    pub fn setup(&self) -> Option<&AgentSetup> {
        self.manifest.setup.as_ref()
    }

    /// Judges a screen of the agent. `title` is the pane title at the time of the capture.
    pub fn read_screen(&self, screen: &CapturedScreen, title: Option<&str>) -> ScreenReading {
        ScreenReading::from_screen(&self.manifest, screen, title)
    }

    /// Judges a pane title of the agent. The observation is about a dialog if the title announces a dialog. Otherwise
    /// it is about the turn.
    pub fn read_title(&self, title: &str) -> Option<Observation> {
        judge::read_title(&self.manifest, title)
    }

    /// Like [`read_title`](Self::read_title). If the manifest has title rules for dialogs and this title announces no
    /// dialog, also returns the observation that no dialog is open.
    pub fn title_observations(&self, title: &str) -> Vec<Observation> {
        let Some(observation) = self.read_title(title) else { return Vec::new() };
        let mut titles = self.manifest.title.iter();
        let announces_dialogs = titles.any(|rule| matches!(rule.state, State::WaitingApproval | State::WaitingInput));
        let no_dialog = (announces_dialogs && observation.assertion.claim() == Claim::Turn)
            .then(|| Observation { assertion: Assertion::NoDialog, ..observation.clone() });
        [observation].into_iter().chain(no_dialog).collect()
    }

    /// The text in the agent's input box, without ghost text. None if no box is visible.
    pub fn typed_text(&self, screen: &CapturedScreen) -> Option<String> {
        ScreenRegions::find(screen, self.layout()).typed_text()
    }

    /// The non-blank rows above the input box.
    pub fn transcript(&self, screen: &CapturedScreen) -> Vec<String> {
        ScreenRegions::find(screen, self.layout()).text_above_box()
    }

    /// The non-blank rows of the current turn: from the last prompt to the input box. If the screen shows no prompt, all
    /// rows above the input box; without an input box, all rows.
    pub fn shown_turn(&self, screen: &CapturedScreen) -> Vec<String> {
        let regions = ScreenRegions::find(screen, self.layout());
        let turn = regions.rows(ScreenRegion::Turn);
        let rows = if turn.is_empty() { regions.rows(ScreenRegion::Transcript) } else { turn };
        rows.into_iter().map(|row| row.text().to_owned()).collect()
    }

    /// Whether the input box shows suggested text after typed text.
    pub fn shows_suggestion(&self, screen: &CapturedScreen) -> bool {
        ScreenRegions::find(screen, self.layout()).shows_suggestion()
    }

    /// Whether the manifest describes the agent's input box.
    pub fn has_input_box_rules(&self) -> bool {
        self.layout().is_some()
    }

    fn layout(&self) -> Option<&ScreenLayout> {
        self.manifest.layout.as_ref()
    }

    /// How the input box handles keys.
    pub fn typing_rules(&self) -> &TypingRules {
        &self.manifest.typing
    }

    /// Whether agtmux can read the agent's dialogs from its screen.
    pub fn reads_dialogs(&self) -> bool {
        !self.manifest.dialog.is_empty()
    }

    /// The keys that answer a dialog. `rule` is the name of the rule that found the dialog.
    pub fn answer_keys(&self, rule: &str) -> &AnswerKeys {
        self.manifest.answers.for_dialog(rule)
    }

    /// The command that resumes an ended session.
    pub fn resume(&self) -> Option<&ResumeTemplate> {
        self.manifest.resume.as_ref()
    }

    /// The arguments of this agent process that agtmux passes on when it resumes the agent's session.
    pub fn kept_arguments(&self, process: &ProcessFacts<'_>) -> Vec<String> {
        let arguments = Invocation::from_process(process).args;
        self.resume().map(|resume| resume.kept_arguments(arguments)).unwrap_or_default()
    }

    /// Whether the agent's own events report submitted prompts.
    pub fn reports_submissions(&self) -> bool {
        self.manifest.event.iter().any(|rule| rule.submits.is_some())
    }

    /// The prompt that this event reports as submitted. None if the event reports no prompt. Empty if the event does
    /// not contain the text of the prompt.
    pub fn submitted_prompt(&self, event: NativeEvent<'_>) -> Option<String> {
        let mut rules = self.manifest.event.iter();
        let rule = rules.find(|rule| rule.matches(event.source, event.event_type, event.payload, None))?;
        Some(native::text_at(event.payload, rule.submits.as_deref()?).unwrap_or_default())
    }

    /// Whether the rules were tested with the real agent.
    pub fn is_measured(&self) -> bool {
        self.manifest.measured
    }

    /// Whether one process may send the events of several agents of this type.
    pub fn shares_process(&self) -> bool {
        self.manifest.native.shared_process
    }

    pub fn status_file(&self) -> Option<&AgentStatusFile> {
        self.manifest.status_file.as_ref()
    }

    /// Where the agent stores its conversations.
    pub fn conversation(&self) -> Option<&ConversationStore> {
        self.manifest.conversation.as_ref()
    }

    pub fn log_file(&self) -> Option<&AgentLogFile> {
        self.manifest.log.as_ref()
    }

    /// Whether the agent reports its state by OSC sequences on its terminal.
    pub fn emits_osc(&self) -> bool {
        self.manifest.event.iter().any(|rule| rule.source == Source::Osc)
    }

    /// Whether a rule exists for events of this type from the agent's status file or log.
    pub fn reads_file_event(&self, event_type: &str) -> bool {
        let mut rules = self.manifest.event.iter();
        rules.any(|rule| rule.source == Source::File && rule.event_type == event_type)
    }
}
