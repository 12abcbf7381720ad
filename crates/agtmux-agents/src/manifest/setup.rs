use serde::Deserialize;

use super::extensions;

/// How `agtmux setup` makes an agent send its events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetup {
    /// The name of the agent in messages.
    pub title: String,
    /// The agent counts as installed if this program or the settings directory exists.
    pub program: String,
    /// The environment variable that overrides the settings directory.
    pub root_variable: Option<String>,
    /// A path that is appended to the value of `root_variable` to form the path of the settings directory.
    #[serde(default)]
    pub below_variable: String,
    /// The settings directory, relative to HOME.
    pub root: String,
    /// What the user has to do after `agtmux setup`.
    pub next: String,
    #[serde(rename = "file")]
    pub files: Vec<SetupFile>,
    /// The files in which the MCP server is registered.
    #[serde(rename = "mcp", default)]
    pub mcp_files: Vec<SetupFile>,
}

/// One file that setup changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupFile {
    /// The path relative to the settings directory. For the format `package`, relative to the data directory of agtmux.
    pub path: String,
    pub format: SetupFormat,
    /// The events for which to install a hook.
    #[serde(default)]
    pub events: Vec<String>,
    /// The matcher to write into each group of hooks.
    pub matcher: Option<String>,
    /// Whether to write a name into each hook. The agent shows that name.
    #[serde(default)]
    pub named: bool,
    /// The timeout of each hook, in the unit that the agent uses.
    #[serde(default)]
    pub timeout: u32,
    /// The format version to write into the file.
    #[serde(default)]
    pub version: u32,
    /// The file to install, relative to the directory `extensions`. For the format `package`, the directory to install.
    extension: Option<String>,
    /// For the format `package-list`: the directory of the package, in the data directory of agtmux.
    pub package: Option<String>,
    /// For the format `mcp-json`: the path relative to HOME, unless `root_variable` moves the settings directory.
    pub home_path: Option<String>,
    /// For the format `mcp-json`: the object that has one member per MCP server.
    #[serde(default)]
    pub key: String,
    /// For the format `mcp-json`: the member for the server, as JSON. `PROGRAM` stands for the path of agtmux.
    #[serde(default)]
    pub entry: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetupFormat {
    /// JSON with hooks in groups: each event has a list of groups.
    Grouped,
    /// JSON without groups, in a file that only agtmux writes.
    Own,
    /// JSON with neither groups nor timeouts.
    Flat,
    /// A TOML file with the key `notify`.
    Notify,
    /// An extension: a file of the directory `extensions`, copied as a whole.
    Extension,
    /// A package: a directory of `extensions`. It is copied to the data directory of agtmux.
    Package,
    /// JSON with a list of packages, to which the directory of a package is added.
    PackageList,
    /// A file that earlier versions of agtmux installed. Setup removes it.
    Obsolete,
    /// JSON with an object of MCP servers.
    McpJson,
    /// TOML with a table per MCP server.
    McpToml,
}

impl AgentSetup {
    /// Replaces each package by its files.
    pub(super) fn with_package_files(mut self) -> Self {
        self.files = self.files.into_iter().flat_map(SetupFile::expanded).collect();
        self
    }
}

impl SetupFile {
    /// The text of the extension to install.
    pub fn extension_text(&self) -> Option<&'static str> {
        extensions::text(self.extension.as_deref()?)
    }

    /// One entry per file if this is a package, else the entry itself.
    fn expanded(self) -> Vec<Self> {
        let Some(package) = self.extension.clone().filter(|_| self.format == SetupFormat::Package) else {
            return vec![self];
        };
        let file = |name: &str| Self {
            path: format!("{}/{name}", self.path),
            extension: Some(format!("{package}/{name}")),
            ..self.clone()
        };
        extensions::package_files(&package).map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentRegistry;

    #[test]
    fn every_built_in_setup_is_complete() {
        let registry = AgentRegistry::builtin();
        let setups = registry.agents().iter().filter_map(|agent| Some((agent.name().as_str(), agent.setup()?)));
        let names: Vec<&str> = setups.clone().map(|(name, _)| name).collect();
        assert_eq!(names, AgentRegistry::setup_names().collect::<Vec<_>>());
        for (name, file) in setups.flat_map(|(name, setup)| setup.files.iter().map(move |file| (name, file))) {
            let has_hooks = matches!(file.format, SetupFormat::Grouped | SetupFormat::Own | SetupFormat::Flat);
            assert_eq!(has_hooks, !file.events.is_empty(), "{name}");
            let has_text = matches!(file.format, SetupFormat::Extension | SetupFormat::Package);
            assert_eq!(has_text, file.extension_text().is_some(), "{name}");
            assert_eq!(file.format == SetupFormat::PackageList, file.package.is_some(), "{name}");
            assert_eq!(matches!(file.format, SetupFormat::Own | SetupFormat::Flat), file.version > 0, "{name}");
            assert_eq!(matches!(file.format, SetupFormat::Grouped | SetupFormat::Own), file.timeout > 0, "{name}");
        }
    }
}
