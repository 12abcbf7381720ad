use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::glob;
use crate::native::value_at;

/// Whether a file's name fits a pattern of a path's part.
pub fn name_matches(pattern: &str, name: &[u8]) -> bool {
    glob::matches(pattern, name)
}

/// A log that an agent writes of what it does: a JSON document per line, only ever added to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentLogFile {
    /// The variable that moves the agent's directory elsewhere.
    #[serde(default)]
    pub root_variable: Option<String>,
    /// The agent's directory, below HOME.
    pub root: String,
    /// The log in it; a `*` stands for any part of a name.
    pub path: String,
    /// The file beside a log that tells whose it is; `{pid}` stands for the agent's process. Without one it is the log that
    /// the process has open.
    #[serde(default)]
    pub lock: Option<String>,
    /// Where a record names its kind; the first that is there counts.
    event: Vec<String>,
    /// Where a record tells when it was written.
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
            return Some("'log' must name a directory below HOME, a file in it, and a lock beside that".into());
        }
        self.event.is_empty().then(|| "'log.event' must name where a record tells its kind".into())
    }

    /// Whether a path below the agent's directory is one of its logs.
    pub fn matches_path(&self, below_root: &str) -> bool {
        let (mut wanted, mut found) = (self.path.split('/'), below_root.split('/'));
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return true,
                (Some(pattern), Some(name)) if name_matches(pattern, name.as_bytes()) => {}
                _ => return false,
            }
        }
    }

    pub fn event_type<'v>(&self, record: &'v Value) -> Option<&'v str> {
        self.event.iter().find_map(|path| value_at(record, path)?.as_str())
    }

    pub fn time(&self, record: &Value) -> Option<Timestamp> {
        time_at(record, &self.time)
    }
}

/// As RFC 3339, or in milliseconds.
pub(super) fn time_at(record: &Value, path: &str) -> Option<Timestamp> {
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
    fn a_star_stays_within_a_name() {
        let log = log("sessions/*/rollout-*.jsonl", None);
        assert!(log.matches_path("sessions/15/rollout-a.jsonl"));
        for other in
            ["sessions/11/15/rollout-a.jsonl", "sessions/15/other.jsonl", "sessions/15", "x/15/rollout-a.jsonl"]
        {
            assert!(!log.matches_path(other), "{other}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_agents_directory() {
        assert_eq!(log("sessions/*/log.jsonl", Some("inuse.{pid}.lock")).problem(), None);
        for (path, lock) in [("/etc/passwd", None), ("../x", None), ("a/./b", None), ("a", Some("../b")), ("", None)] {
            assert!(log(path, lock).problem().is_some(), "{path} {lock:?}");
        }
    }

    #[test]
    fn a_record_tells_its_kind_and_its_time() {
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
