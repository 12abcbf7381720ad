//! The real agents. For each agent, this module knows how to configure it without a network, how to start and answer
//! it, and how to recognise its screens. The screen patterns were measured on the pinned versions. A conformance run
//! reports drift if an agent no longer shows an expected pattern.

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

/// A command that every agent is configured to run without approval.
pub const FREE_TOOL: &str = "./free-tool";
/// A command that an agent may run only after approval.
pub const ASKED_TOOL: &str = "./asked-tool";

pub trait ConformanceAgent: Sync {
    fn name(&self) -> &'static str;

    /// The name of the agent's package, and the version on which the screen patterns were measured.
    fn package(&self) -> (&'static str, &'static str);

    /// Further versions whose core scenarios the soak tests run.
    fn other_versions(&self) -> &'static [&'static str] {
        &[]
    }

    fn registry(&self) -> PackageRegistry {
        PackageRegistry::Npm
    }

    /// The evidence modes in which the agent can be tested.
    fn modes(&self) -> &'static [EvidenceMode] {
        &EvidenceMode::ALL
    }

    /// The packages to install beside this version, if npm cannot install it, but its archive runs with these.
    fn archive_with(&self, _version: &str) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether the agent may need a newer node than the one on this machine.
    fn needs_newer_node(&self) -> bool {
        false
    }

    /// Writes the agent's settings, so that the agent shows no dialogs when it starts.
    fn prepare(&self, workspace: &AgentWorkspace);

    /// Additional environment variables that only this agent needs.
    fn environment(&self, workspace: &AgentWorkspace) -> Vec<(&'static str, String)>;

    /// The command line that a user would type.
    fn launch(&self, mode: &LaunchMode) -> String;

    /// The pattern that recognises this screen state. `None` if the agent does not have this state.
    fn screen_pattern(&self, state: ScreenState) -> Option<ScreenPattern>;

    /// The names of scenarios that the agent does not support, although its screen can show all states that they need.
    fn unsupported_scenarios(&self) -> &'static [&'static str] {
        &[]
    }

    fn keys(&self, reply: DialogReply) -> &'static [&'static str];

    fn slash_command(&self, command: SlashCommand) -> &'static str;

    /// What the agent does after the model has failed in this way.
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
    /// The program that saves hook payloads. `None` if they are not recorded.
    pub hook_payload_saver: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchMode {
    Plain,
    /// Starts the agent in plan mode.
    Plan,
    /// Starts the agent without a user interface. The agent answers this prompt and exits.
    Headless(&'static str),
}

/// How a test answers an agent's dialog.
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
