use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::log_file::time_at;
use crate::native::value_at;

/// A file in which an agent keeps what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentStatusFile {
    /// The variable that moves the agent's directory elsewhere.
    #[serde(default)]
    pub root_variable: Option<String>,
    /// The agent's directory, below HOME.
    pub root: String,
    /// The file in it; `{pid}` stands for the agent's process.
    pub path: String,
    /// The type of the events that its contents are.
    pub event: String,
    /// Where it tells when its process started, as the kernel counts it.
    #[serde(default)]
    start: Option<String>,
    /// Where it tells when it was written; else the file's own time counts.
    #[serde(default)]
    time: Option<String>,
}

impl AgentStatusFile {
    pub(super) fn problem(&self) -> Option<String> {
        let leads_out =
            |path: &str| path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..");
        let wrong = leads_out(&self.root) || leads_out(&self.path);
        wrong.then(|| "'status_file' must name a directory below HOME and a file in it".into())
    }

    /// Whether these contents are about the process that started then. An agent that was killed leaves its file behind, and
    /// another process may get its number.
    pub fn is_about(
        &self,
        contents: &Value,
        (start, began): (u64, Option<Timestamp>),
        modified: Option<Timestamp>,
    ) -> bool {
        if let Some(told) = self.start.as_deref().and_then(|path| number(value_at(contents, path)?)) {
            return told == start;
        }
        let told = self.time.as_deref().and_then(|path| time_at(contents, path));
        let written = told.or(modified);
        written.zip(began).is_none_or(|(written, began)| written >= began)
    }
}

/// Some systems count it in another way; that is no number.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at_second(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    #[test]
    fn what_was_written_before_a_process_began_is_not_about_it() {
        let file = AgentStatusFile {
            root_variable: None,
            root: ".agent".into(),
            path: "{pid}.json".into(),
            event: "status".into(),
            start: Some("procStart".into()),
            time: Some("at".into()),
        };
        for (contents, modified, about) in [
            (json!({"procStart": "7", "at": 1000}), 1, true),
            (json!({"procStart": 8, "at": 99_000}), 99, false),
            (json!({"procStart": "Mon Nov 16", "at": 99_000}), 1, true),
            (json!({"procStart": "Mon Nov 16", "at": 1000}), 99, false),
            (json!({}), 99, true),
            (json!({}), 1, false),
        ] {
            assert_eq!(file.is_about(&contents, (7, at_second(50)), at_second(modified)), about, "{contents}");
        }
        assert!(file.is_about(&json!({"at": 1000}), (7, None), None), "nothing tells otherwise");
    }
}
