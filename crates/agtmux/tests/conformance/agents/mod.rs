//! The agents: how each is made ready without a network, started, answered and recognised. What is here was measured
//! on the pinned versions; a run that no longer finds a mark reports that as drift.

mod claude;
mod codex;
mod gemini;
mod opencode;
mod pi;

use std::fs;
use std::path::{Path, PathBuf};

use super::mark::Mark;
use super::words::Scene;

/// All that are tried.
pub(crate) const ALL: [&dyn Agent; 5] = [&claude::Claude, &codex::Codex, &gemini::Gemini, &opencode::OpenCode, &pi::Pi];

/// A command that the agents may run without asking.
pub(crate) const FREE_TOOL: &str = "./free-tool";
/// The same, but they must ask.
pub(crate) const ASKED_TOOL: &str = "./asked-tool";

pub(crate) trait Agent: Sync {
    fn name(&self) -> &'static str;

    /// The npm package and the version that the marks were measured on.
    fn package(&self) -> (&'static str, &'static str);

    /// Whether it needs a newer node than a machine may have.
    fn newer_node(&self) -> bool {
        false
    }

    /// Writes the settings that make it start without questions.
    fn prepare(&self, place: &Place);

    /// Besides what every agent gets.
    fn environment(&self, place: &Place) -> Vec<(&'static str, String)>;

    /// What a user would type.
    fn launch(&self, how: &Launch) -> String;

    /// None where it has no such scene.
    fn mark(&self, scene: Scene) -> Option<Mark>;

    fn keys(&self, reply: Reply) -> &'static [&'static str];

    fn command(&self, wish: Wish) -> &'static str;

    /// What makes it fail within a test's patience.
    fn failure(&self) -> &'static str {
        "FAIL 500"
    }
}

/// Where one of them lives during a scenario.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    /// The mock model's.
    pub(crate) url: String,
    pub(crate) trusted: bool,
    /// A program that keeps what hooks are given, if that is wanted.
    pub(crate) hook_keeper: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Launch {
    Plain,
    /// In the mode that only plans.
    Plan,
    /// Without a user: it answers this and ends.
    Headless(&'static str),
}

/// An answer to a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
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
pub(crate) enum Wish {
    Clear,
    Exit,
}

impl Place {
    fn write(&self, file: &str, text: &str) {
        let path = self.home.join(file);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the world is writable");
        fs::write(&path, text).expect("the world is writable");
    }

    fn project(&self) -> String {
        self.project.display().to_string()
    }

    /// The command line that keeps what a hook is given.
    fn keeper(&self, event: &str) -> Option<String> {
        self.hook_keeper.as_ref().map(|keeper: &PathBuf| format!("{} {event}", Path::display(keeper)))
    }
}
