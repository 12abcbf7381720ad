use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::log_file::time_at;
use crate::native::value_at;

/// A file in which an agent stores its current status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentStatusFile {
    /// The environment variable that overrides the agent's directory.
    pub root_variable: Option<String>,
    /// The agent's directory, relative to HOME.
    pub root: String,
    /// The path of the file in that directory; `{pid}` stands for the pid of the agent.
    pub path: String,
    /// The type of the event that agtmux makes from the contents of the file.
    pub event: String,
    /// The path of the field that contains the start time of the process, in kernel ticks.
    start: Option<String>,
    /// The path of the field that contains the time at which the file was written. If not set, the modification time of
    /// the file is used.
    time: Option<String>,
}

impl AgentStatusFile {
    pub(super) fn problem(&self) -> Option<String> {
        let is_outside =
            |path: &str| path.is_empty() || path.starts_with('/') || path.split('/').any(|part| part == "..");
        let wrong = is_outside(&self.root) || is_outside(&self.path);
        wrong.then(|| "'status_file' must name a directory below HOME and a file in it".into())
    }

    /// Whether these contents describe the process with this start time. If not, an earlier process with the same pid
    /// wrote them: a killed agent leaves its file behind, and a new process may get its pid.
    pub fn is_about(
        &self,
        contents: &Value,
        (start, began): (u64, Option<Timestamp>),
        modified: Option<Timestamp>,
    ) -> bool {
        if let Some(recorded) = self.start.as_deref().and_then(|path| number(value_at(contents, path)?)) {
            return recorded == start;
        }
        let recorded = self.time.as_deref().and_then(|path| time_at(contents, path));
        let written = recorded.or(modified);
        written.zip(began).is_none_or(|(written, began)| written >= began)
    }
}

/// Reads the start time as a number. None if the file contains a date instead, as on some systems.
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
    fn contents_written_before_the_process_started_are_ignored() {
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
        assert!(
            file.is_about(&json!({"at": 1000}), (7, None), None),
            "without any start time the contents are accepted"
        );
    }
}
