//! The session files of agents: where they are, and the title and first message in them.

use serde_json::Value;

/// A directory with session files. Each session is one file, either directly in that directory or in a subdirectory for
/// its project.
#[derive(Debug)]
pub struct SessionDir {
    /// The environment variable that contains the path of the root directory.
    pub root_variable: &'static str,
    /// The root directory if the variable is not set, relative to the user's home. None if there is no default.
    pub root: Option<&'static str>,
    /// The path of the directory with the session files, relative to the root directory.
    pub path: &'static str,
}

pub const SESSION_DIRS: [SessionDir; 3] = [
    SessionDir { root_variable: "PI_CODING_AGENT_SESSION_DIR", root: None, path: "" },
    SessionDir { root_variable: "PI_CODING_AGENT_DIR", root: Some(".pi/agent"), path: "sessions" },
    SessionDir { root_variable: "CLAUDE_CONFIG_DIR", root: Some(".claude"), path: "projects" },
];

/// Whether a file with this name is the file of this session. Claude's file names are session ids. Pi's file names
/// consist of the start time, `_` and the session id.
pub fn is_session_file(name: &str, session_id: &str) -> bool {
    let name = name.strip_suffix(".jsonl");
    name.is_some_and(|name| name == session_id || name.split_once('_').is_some_and(|(_, id)| id == session_id))
}

/// The entry types that set a title, each with the field that contains the title. If a session has titles of several
/// types, the first type in this list counts, as in the agent's own list of sessions. Of several entries of one type,
/// the last one counts. An empty text clears the title of that type.
const TITLES: [(&str, &str); 5] = [
    ("session_info", "name"),
    ("agent-name", "agentName"),
    ("custom-title", "customTitle"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
];

/// The titles in a session file, and the first message of the user.
#[derive(Debug, Default)]
pub struct SessionNames {
    titles: [Option<String>; TITLES.len()],
    /// The first message that the user typed.
    pub first_message: Option<String>,
}

impl SessionNames {
    /// Reads the lines of a session file. Lines that are not valid JSON are ignored.
    pub fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for entry in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            names.read(&entry);
        }
        names
    }

    fn read(&mut self, entry: &Value) {
        for (title, (kind, field)) in self.titles.iter_mut().zip(TITLES) {
            if entry["type"] == kind {
                *title = entry[field].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
            }
        }
        if self.first_message.is_none() && is_from_user(entry) {
            self.first_message = message_text(&entry["message"]["content"]);
        }
    }

    pub fn title(&self) -> Option<&str> {
        self.titles.iter().flatten().map(String::as_str).next()
    }
}

/// Whether the entry is a message that the user typed, not one that the agent generated.
fn is_from_user(entry: &Value) -> bool {
    let is_entry = ["message", "user"].into_iter().any(|kind| entry["type"] == kind);
    let is_set = |name: &str| entry[name] == true;
    let is_meta = ["isMeta", "isCompactSummary", "isSidechain"].into_iter().any(is_set);
    is_entry && entry["message"]["role"] == "user" && !is_meta
}

/// The first text in a message that the user typed. `content` is a string or a list of parts.
fn message_text(content: &Value) -> Option<String> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    if parts.iter().any(|part| part["type"] == "tool_result") {
        return None;
    }
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    content
        .as_str()
        .into_iter()
        .chain(texts)
        .find(|text| !text.trim().is_empty() && !is_generated(text))
        .map(str::to_owned)
}

/// Whether the agent generated the text. Generated texts are commands and their output, which begin with a tag, and the
/// note about an interruption.
fn is_generated(text: &str) -> bool {
    let text = text.trim_start();
    let tag = text.strip_prefix('<').and_then(|rest| rest.split(['>', ' ', '\n']).next());
    let is_tag = |tag: &str| {
        tag.starts_with(|c: char| c.is_ascii_lowercase())
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    tag.is_some_and(is_tag) || text.starts_with("[Request interrupted by user")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> (Option<String>, Option<String>) {
        let names = SessionNames::of(lines.iter().copied());
        (names.title().map(str::to_owned), names.first_message)
    }

    #[test]
    fn pi_uses_the_last_title_and_the_first_message() {
        let pi = [
            r#"{"type":"session","version":3,"id":"x","timestamp":"2026-11-16T00:00:00.000Z","cwd":"/w"}"#,
            r#"{"type":"message","id":"a","message":{"role":"user","content":[{"type":"text","text":"fix it"}]}}"#,
            "not json",
            r#"{"type":"message","id":"b","message":{"role":"user","content":"and more"}}"#,
            r#"{"type":"session_info","id":"c","name":"Old"}"#,
            r#"{"type":"session_info","id":"d","name":" Fix the build "}"#,
        ];
        assert_eq!(of(&pi), (Some("Fix the build".into()), Some("fix it".into())));
        let cleared = [pi.as_slice(), &[r#"{"type":"session_info","id":"e","name":""}"#]].concat();
        assert_eq!(of(&cleared), (None, Some("fix it".into())), "an empty name clears the title");
        assert_eq!(of(&[]), (None, None));
    }

    #[test]
    fn claude_prefers_the_agent_name_and_skips_generated_messages() {
        let lines = [
            r#"{"type":"summary","summary":"Of another branch","leafUuid":"1"}"#,
            r#"{"type":"api-request-blob","message":{"role":"user","content":[{"type":"text","text":"Environment"}]}}"#,
            r#"{"type":"user","isMeta":true,"message":{"role":"user","content":"<caveat>"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
            r#"{"type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is continued"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"},{"type":"text","text":"no"}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"image"},{"type":"text","text":"<3 please look"}]}}"#,
            r#"{"type":"ai-title","aiTitle":"Look at it","sessionId":"s"}"#,
        ];
        assert_eq!(of(&lines), (Some("Look at it".into()), Some("<3 please look".into())));
        let named = [lines.as_slice(), &[r#"{"type":"custom-title","customTitle":"Mine","sessionId":"s"}"#]].concat();
        assert_eq!(of(&[named.as_slice(), &lines[8..]].concat()).0.as_deref(), Some("Mine"));
        assert_eq!(of(&lines[..1]).0.as_deref(), Some("Of another branch"));
        assert_eq!(of(&lines[1..7]), (None, None));
    }
}
