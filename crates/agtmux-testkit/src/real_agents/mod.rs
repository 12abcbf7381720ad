//! The real agents: how to configure each one without a network, start it, answer it and recognise its screens. The
//! screen patterns were measured on the pinned versions. A run reports drift if an agent no longer shows an expected
//! pattern.

mod aider;
mod claude;
mod codex;
mod copilot;
mod gemini;
pub mod hooks;
pub mod install;
mod opencode;
pub mod options;
mod pi;
mod polling;
mod qwen;
pub mod sandbox;
pub mod screen_pattern;
pub mod states;
pub mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::ModelFailure;
use install::PackageRegistry;
use screen_pattern::ScreenPattern;
use states::{AfterFailure, EvidenceMode, ScreenState};

pub use polling::poll_until;

/// All tested agents.
pub const ALL: [&dyn ConformanceAgent; 8] = [
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &copilot::Copilot,
    &opencode::OpenCode,
    &pi::Pi,
    &qwen::Qwen,
    &aider::Aider,
];

/// A command that the agents may run without approval.
pub const FREE_TOOL: &str = "./free-tool";
/// A command that needs approval.
pub const ASKED_TOOL: &str = "./asked-tool";

pub trait ConformanceAgent: Sync {
    fn name(&self) -> &'static str;

    /// The package, and the version that the screen patterns were measured on.
    fn package(&self) -> (&'static str, &'static str);

    fn registry(&self) -> PackageRegistry {
        PackageRegistry::Npm
    }

    /// The evidence modes that the agent supports.
    fn modes(&self) -> &'static [EvidenceMode] {
        &EvidenceMode::ALL
    }

    /// Whether the agent needs a newer node than the machine may have.
    fn needs_newer_node(&self) -> bool {
        false
    }

    /// Writes the settings that make the agent start without dialogs.
    fn prepare(&self, workspace: &AgentWorkspace);

    /// Environment variables in addition to those of every agent.
    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)>;

    /// The command line that a user would type.
    fn launch(&self, mode: &LaunchMode) -> String;

    /// The pattern of this screen state, or none if the agent does not have this state.
    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern>;

    /// Scenarios that the agent does not support, although it has all of their screen states.
    fn unsupported_scenarios(&self) -> &'static [&'static str] {
        &[]
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str];

    fn slash_command(&self, command: SlashCommand) -> &'static str;

    /// What the agent does after this failure of the model.
    fn after_failure(&self, failure: ModelFailure) -> AfterFailure;
}

/// The directories and settings of an agent during a scenario.
#[derive(Debug, Clone)]
pub struct AgentWorkspace {
    pub home: PathBuf,
    pub project: PathBuf,
    /// The address of the mock model.
    pub model_url: String,
    pub trusted: bool,
    /// A program that saves hook payloads, if recording is on.
    pub hook_payload_saver: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchMode {
    Plain,
    /// In plan mode.
    Plan,
    /// Non-interactive: answers this prompt and exits.
    Headless(&'static str),
}

/// An answer to a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogReply {
    Trust,
    Approve,
    Deny,
    AcceptPlan,
    Choose,
    Interrupt,
    /// Switches to plan mode, because some agents ask questions only in that mode.
    PlanMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlashCommand {
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

    /// The command line that saves a hook payload.
    fn save_hook_command(&self, event: &str) -> Option<String> {
        self.hook_payload_saver.as_ref().map(|saver: &PathBuf| format!("{} {event}", Path::display(saver)))
    }
}
