//! The agents that setup supports, as their manifests describe them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agtmux_agents::{AgentRegistry, AgentSetup};

use super::command::on_path;

pub(super) static ALL: LazyLock<Vec<SetupAgent>> = LazyLock::new(|| {
    let agents = AgentRegistry::builtin().agents().iter();
    agents.filter_map(|agent| Some(SetupAgent { name: agent.name().as_str(), setup: agent.setup()? })).collect()
});

#[derive(Debug)]
pub(super) struct SetupAgent {
    /// The agent type, as in manifests.
    pub(super) name: &'static str,
    pub(super) setup: &'static AgentSetup,
}

impl SetupAgent {
    pub(super) fn dir(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below = &self.setup.below_variable;
        let moved = self.setup.root_variable.as_deref().and_then(set);
        let moved = moved.map(|dir| if below.is_empty() { dir } else { dir.join(below) });
        moved.or_else(|| Some(set("HOME")?.join(&self.setup.root)))
    }

    /// Whether an environment variable has moved the settings directory.
    pub(super) fn is_moved(&self, var: impl Fn(&str) -> Option<OsString>) -> bool {
        let value = self.setup.root_variable.as_deref().and_then(var).map(PathBuf::from);
        value.is_some_and(|path| path.is_absolute())
    }

    /// The environment variable that names the settings directory, and its value. `None` unless the value is a relative
    /// path. Setup ignores a relative path, because only the agent knows which directory the path is relative to.
    pub(super) fn ignored_variable(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, PathBuf)> {
        let variable = self.setup.root_variable.as_deref()?;
        let value = var(variable).filter(|value| !value.is_empty()).map(PathBuf::from)?;
        value.is_relative().then_some((variable, value))
    }

    /// Whether the agent's settings directory or its program exists.
    pub(super) fn is_installed(&self, dir: &Path) -> bool {
        dir.is_dir() || on_path(&self.setup.program).is_some()
    }
}

/// The data directory of agtmux, for packages: `~/.local/share/agtmux`, or below XDG_DATA_HOME.
pub(super) fn data_dir(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
    base.map(|base| base.join("agtmux"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static SetupAgent {
        ALL.iter().find(|agent| agent.name == name).expect("known")
    }

    #[test]
    fn environment_variables_move_the_settings_directory() {
        let dir = |name: &str, vars: &[(&str, &str)]| {
            let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(*value));
            named(name).dir(var)
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
        let ignored =
            |value: &'static str| named("claude").ignored_variable(|_| Some(value.into())).map(|(name, _)| name);
        assert_eq!((ignored("rel"), ignored("/c"), ignored("")), (Some("CLAUDE_CONFIG_DIR"), None, None));
    }
}
