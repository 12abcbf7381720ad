use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::glob;
use crate::native::value_at;

/// Whether a file name matches a pattern with `*`. The pattern is one component of a path.
pub fn name_matches(pattern: &str, name: &[u8]) -> bool {
    glob::matches(pattern, name)
}

/// An append-only log of an agent, with one JSON document per line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentLogFile {
    /// The environment variable that overrides the agent's directory.
    pub root_variable: Option<String>,
    /// The agent's directory, relative to HOME.
    pub root: String,
    /// The path of the log in that directory; `*` matches any part of a name.
    pub path: String,
    /// The name of the lock file that a running agent has next to its log; `{pid}` stands for the pid of the agent.
    /// agtmux finds the log of an agent by this file. If this key is not set, the log is the file that the agent's
    /// process has open.
    pub lock: Option<String>,
    /// The paths of the fields that may contain the type of a record, such as `payload.type`. The first path that leads
    /// to a text is used.
    event: Vec<String>,
    /// The path of the field that contains the time of a record.
    time: String,
}

impl AgentLogFile {
    pub(super) fn problem(&self) -> Option<String> {
        let plain = |path: &str| {
            let parts = || path.split('/');
            !path.is_empty() && !path.starts_with('/') && parts().all(|part| !matches!(part, "" | "." | ".."))
        };
        let lock = self.lock.as_deref().is_none_or(|lock| plain(lock) && !lock.contains(['/', '*']));
        if !plain(&self.root) || self.root.contains('*') || !plain(&self.path) || !lock {
            return Some("'log' must name a directory below HOME, a file in it, and a lock file beside the log".into());
        }
        self.event.is_empty().then(|| "'log.event' must be the path of the field that holds a record's type".into())
    }

    /// Whether this path is one of the agent's logs. The path is relative to the agent's directory.
    pub fn matches_path(&self, below_root: &str) -> bool {
        let (wanted, found) = (self.path.split('/'), below_root.split('/'));
        wanted.clone().count() == found.clone().count()
            && wanted.zip(found).all(|(pattern, name)| name_matches(pattern, name.as_bytes()))
    }

    pub fn event_type<'v>(&self, record: &'v Value) -> Option<&'v str> {
        self.event.iter().find_map(|path| value_at(record, path)?.as_str())
    }

    pub fn time(&self, record: &Value) -> Option<Timestamp> {
        time_at(record, &self.time)
    }
}

/// Reads a time in RFC 3339 format or in milliseconds.
pub(crate) fn time_at(record: &Value, path: &str) -> Option<Timestamp> {
    match value_at(record, path)? {
        Value::String(text) => text.parse().ok(),
        number => Timestamp::from_millisecond(number.as_i64()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn log(path: &str, lock: Option<&str>) -> AgentLogFile {
        AgentLogFile {
            root_variable: None,
            root: ".agent".into(),
            path: path.into(),
            lock: lock.map(str::to_owned),
            event: vec!["payload.type".into(), "type".into()],
            time: "timestamp".into(),
        }
    }

    #[test]
    fn a_star_does_not_match_a_slash() {
        let log = log("sessions/*/rollout-*.jsonl", None);
        assert!(log.matches_path("sessions/15/rollout-a.jsonl"));
        for other in
            ["sessions/11/15/rollout-a.jsonl", "sessions/15/other.jsonl", "sessions/15", "x/15/rollout-a.jsonl"]
        {
            assert!(!log.matches_path(other), "{other}");
        }
    }

    #[test]
    fn paths_outside_the_agents_directory_are_rejected() {
        assert_eq!(log("sessions/*/log.jsonl", Some("inuse.{pid}.lock")).problem(), None);
        for (path, lock) in [("/etc/passwd", None), ("../x", None), ("a/./b", None), ("a", Some("../b")), ("", None)] {
            assert!(log(path, lock).problem().is_some(), "{path} {lock:?}");
        }
    }

    #[test]
    fn type_and_time_of_a_record_are_read() {
        let log = log("log", None);
        let record =
            json!({"type": "event_msg", "payload": {"type": "task_started"}, "timestamp": "2026-01-02T03:04:05Z"});
        assert_eq!(log.event_type(&record), Some("task_started"));
        assert_eq!(log.event_type(&json!({"type": "session_meta", "payload": {}})), Some("session_meta"));
        assert_eq!(log.time(&record), "2026-01-02T03:04:05Z".parse().ok());
        assert_eq!(log.time(&json!({"timestamp": 1000})), Timestamp::from_second(1).ok());
        assert_eq!(log.time(&json!({"timestamp": "soon"})), None);
    }
}
