//! The agents that setup supports. Each file is data only.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod pi;
mod qwen;

use std::ffi::OsString;
use std::path::PathBuf;

use super::command::on_path;
use super::edit::hooks::HookFormat;

pub(super) const ALL: [&SetupAgent; 8] = [
    &claude::AGENT,
    &codex::AGENT,
    &copilot::AGENT,
    &cursor::AGENT,
    &gemini::AGENT,
    &opencode::AGENT,
    &pi::AGENT,
    &qwen::AGENT,
];

#[derive(Debug)]
pub(super) struct SetupAgent {
    /// The agent type, as in manifests.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) program: &'static str,
    pub(super) home: SettingsDir,
    pub(super) files: &'static [SettingsFile],
    /// Printed after the installation: what the user has to do next.
    pub(super) next: &'static str,
}

/// The directory of an agent's settings.
#[derive(Debug)]
pub(super) struct SettingsDir {
    /// The variable that moves the directory, and a path to append to its value. Empty if the agent has none.
    pub(super) variable: (&'static str, &'static str),
    pub(super) below_home: &'static str,
}

#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) name: &'static str,
    pub(super) content: SettingsContent,
}

#[derive(Debug)]
pub(super) enum SettingsContent {
    /// A JSON object with a key `hooks`.
    Hooks(HookFormat),
    /// A TOML file with the root key `notify`.
    Notify,
    /// A file that setup owns completely, written from this template.
    Whole(&'static str),
}

impl SetupAgent {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|agent| agent.name == name)
    }

    pub(super) fn dir(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let (variable, rest) = self.home.variable;
        let elsewhere = Some(variable)
            .filter(|name| !name.is_empty())
            .and_then(set)
            .map(|dir| if rest.is_empty() { dir } else { dir.join(rest) });
        elsewhere.or_else(|| Some(set("HOME")?.join(self.home.below_home)))
    }

    /// The variable and its value, if the value is a relative path. Setup ignores it, because only the agent knows to
    /// which directory it is relative.
    pub(super) fn ignored_variable(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, PathBuf)> {
        let (variable, _) = self.home.variable;
        let value = var(variable).filter(|value| !variable.is_empty() && !value.is_empty()).map(PathBuf::from)?;
        value.is_relative().then_some((variable, value))
    }

    /// Whether the settings directory or the program exists.
    pub(super) fn is_installed(&self, dir: &std::path::Path) -> bool {
        dir.is_dir() || on_path(self.program).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_variables_move_the_settings_directory() {
        let dir = |name: &str, vars: &[(&str, &str)]| {
            let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(*value));
            SetupAgent::named(name).expect("known").dir(var)
        };
        assert_eq!(dir("claude", &[("HOME", "/h")]), Some("/h/.claude".into()));
        assert_eq!(dir("claude", &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]), Some("/c".into()));
        assert_eq!(dir("codex", &[("CODEX_HOME", "/c")]), Some("/c".into()));
        assert_eq!(dir("gemini", &[("HOME", "/h"), ("GEMINI_CLI_HOME", "/g")]), Some("/g/.gemini".into()));
        assert_eq!(dir("gemini", &[("HOME", "/h"), ("GEMINI_CLI_HOME", "rel")]), Some("/h/.gemini".into()));
        assert_eq!(dir("cursor", &[("HOME", "/h"), ("", "/c")]), Some("/h/.cursor".into()));
        assert_eq!(dir("opencode", &[("HOME", "/h")]), Some("/h/.config/opencode".into()));
        assert_eq!(dir("opencode", &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/opencode".into()));
        assert_eq!(dir("pi", &[("HOME", "/h"), ("PI_CODING_AGENT_DIR", "/p")]), Some("/p".into()));
        assert_eq!(dir("codex", &[]), None);
        let ignored = |value: &'static str| {
            SetupAgent::named("claude")
                .and_then(|agent| agent.ignored_variable(|_| Some(value.into())))
                .map(|(name, _)| name)
        };
        assert_eq!((ignored("rel"), ignored("/c"), ignored("")), (Some("CLAUDE_CONFIG_DIR"), None, None));
    }
}
