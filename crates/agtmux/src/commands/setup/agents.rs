//! The agents that setup supports, as their manifests describe them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agtmux_agents::{AgentRegistry, AgentSetup, SetupFile, SetupFormat};

use super::command::on_path;
use super::edit::hooks::{HookFormat, HookShape};

pub(super) static ALL: LazyLock<Vec<SetupAgent>> = LazyLock::new(|| {
    let agents = AgentRegistry::builtin().agents().iter();
    agents.filter_map(|agent| Some(SetupAgent::new(agent.name().as_str(), agent.setup()?))).collect()
});

#[derive(Debug)]
pub(super) struct SetupAgent {
    /// The agent type, as in manifests.
    pub(super) name: &'static str,
    pub(super) setup: &'static AgentSetup,
    pub(super) files: Vec<SettingsFile>,
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
    fn new(name: &'static str, setup: &'static AgentSetup) -> Self {
        let file =
            |file: &'static SetupFile| SettingsFile { name: &file.path, content: SettingsContent::from_manifest(file) };
        Self { name, setup, files: setup.files.iter().map(file).collect() }
    }

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|agent| agent.name == name)
    }

    pub(super) fn dir(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below = &self.setup.below_variable;
        let moved = self.setup.root_variable.as_deref().and_then(set);
        let moved = moved.map(|dir| if below.is_empty() { dir } else { dir.join(below) });
        moved.or_else(|| Some(set("HOME")?.join(&self.setup.root)))
    }

    /// The variable and its value, if the value is a relative path. Setup ignores it, because only the agent knows to
    /// which directory it is relative.
    pub(super) fn ignored_variable(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, PathBuf)> {
        let variable = self.setup.root_variable.as_deref()?;
        let value = var(variable).filter(|value| !value.is_empty()).map(PathBuf::from)?;
        value.is_relative().then_some((variable, value))
    }

    /// Whether the settings directory or the program exists.
    pub(super) fn is_installed(&self, dir: &Path) -> bool {
        dir.is_dir() || on_path(&self.setup.program).is_some()
    }
}

impl SettingsContent {
    fn from_manifest(file: &'static SetupFile) -> Self {
        let hooks = |shape| {
            let events: Vec<&'static str> = file.events.iter().map(String::as_str).collect();
            Self::Hooks(HookFormat { events: events.leak(), shape, timeout: file.timeout })
        };
        match file.format {
            SetupFormat::Grouped => hooks(HookShape::Grouped { matcher: file.matcher.as_deref(), named: file.named }),
            SetupFormat::Own => hooks(HookShape::Own { version: file.version }),
            SetupFormat::Flat => hooks(HookShape::Flat { version: file.version }),
            SetupFormat::Notify => Self::Notify,
            SetupFormat::Extension => Self::Whole(file.extension_text().unwrap_or_default()),
        }
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
