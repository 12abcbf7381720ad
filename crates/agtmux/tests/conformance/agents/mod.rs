//! The agents: how each is made ready without a network, started, answered and recognised. What is here was measured
//! on the pinned versions; a run that no longer finds a mark reports that as drift.

mod aider;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod pi;
mod qwen;

use std::fs;
use std::path::{Path, PathBuf};

use super::install::PackageRegistry;
use super::screen_pattern::ScreenPattern;
use super::states::{EvidenceMode, ScreenState};

/// All that are tried.
pub(crate) const ALL: [&dyn ConformanceAgent; 8] = [
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &copilot::Copilot,
    &opencode::OpenCode,
    &pi::Pi,
    &qwen::Qwen,
    &aider::Aider,
];

/// A command that the agents may run without asking.
pub(crate) const FREE_TOOL: &str = "./free-tool";
/// The same, but they must ask.
pub(crate) const ASKED_TOOL: &str = "./asked-tool";

pub(crate) trait ConformanceAgent: Sync {
    fn name(&self) -> &'static str;

    /// The package and the version that the marks were measured on.
    fn package(&self) -> (&'static str, &'static str);

    fn registry(&self) -> PackageRegistry {
        PackageRegistry::Npm
    }

    /// Not all of them where it has no hooks.
    fn modes(&self) -> &'static [EvidenceMode] {
        &EvidenceMode::ALL
    }

    /// Whether it needs a newer node than a machine may have.
    fn needs_newer_node(&self) -> bool {
        false
    }

    /// Writes the settings that make it start without questions.
    fn prepare(&self, place: &AgentWorkspace);

    /// Besides what every agent gets.
    fn environment(&self, place: &AgentWorkspace) -> Vec<(&'static str, String)>;

    /// What a user would type.
    fn launch(&self, how: &LaunchMode) -> String;

    /// None where it has no such scene.
    fn screen_pattern(&self, scene: ScreenState) -> Option<ScreenPattern>;

    /// Scenarios that it cannot be led through, besides those with a scene that it does not have.
    fn unsupported_scenarios(&self) -> &'static [&'static str] {
        &[]
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str];

    fn slash_command(&self, wish: SlashCommand) -> &'static str;

    /// What makes it fail within a test's patience.
    fn failing_prompt(&self) -> &'static str {
        "FAIL 500"
    }
}

/// Where one of them lives during a scenario.
#[derive(Debug, Clone)]
pub(crate) struct AgentWorkspace {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    /// The mock model's.
    pub(crate) model_url: String,
    pub(crate) trusted: bool,
    /// A program that keeps what hooks are given, if that is wanted.
    pub(crate) hook_payload_saver: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LaunchMode {
    Plain,
    /// In the mode that only plans.
    Plan,
    /// Without a user: it answers this and ends.
    Headless(&'static str),
}

/// An answer to a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialogReply {
    Trust,
    Approve,
    Deny,
    AcceptPlan,
    Choose,
    Interrupt,
    /// Into the mode in which it may ask questions, where it has one.
    PlanMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    Clear,
    Exit,
}

impl AgentWorkspace {
    fn write(&self, file: &str, text: &str) {
        let path = self.home.join(file);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the world is writable");
        fs::write(&path, text).expect("the world is writable");
    }

    fn project_path(&self) -> String {
        self.project.display().to_string()
    }

    /// The command line that keeps what a hook is given.
    fn save_hook_command(&self, event: &str) -> Option<String> {
        self.hook_payload_saver.as_ref().map(|keeper: &PathBuf| format!("{} {event}", Path::display(keeper)))
    }
}
