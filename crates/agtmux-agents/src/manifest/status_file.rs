use serde::Deserialize;

/// A file in which an agent keeps what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StatusFile {
    /// The variable that moves the agent's directory elsewhere.
    #[serde(default)]
    pub root_variable: Option<String>,
    /// The agent's directory, below HOME.
    pub root: String,
    /// The file in it; `{pid}` stands for the agent's process.
    pub path: String,
    /// The type of the events that its contents are.
    pub event: String,
}

impl StatusFile {
    pub(super) fn problem(&self) -> Option<String> {
        let leads_out =
            |path: &str| path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..");
        let wrong = leads_out(&self.root) || leads_out(&self.path);
        wrong.then(|| "'status_file' must name a directory below HOME and a file in it".into())
    }
}
