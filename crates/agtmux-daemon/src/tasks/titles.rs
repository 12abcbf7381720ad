//! The title of a harness session: its own title, or the user's first message, from the harness's session file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::files::open_no_follow;
use agtmux_core::task::session_title;
use serde_json::Value;

/// Where harnesses store sessions: the environment variable that sets the root, the directory below the root, and the
/// default root below the user's home. Each session is one file, in that directory or in a directory for its project.
const SESSION_DIRS: [(&str, &str, Option<&str>); 3] = [
    ("PI_CODING_AGENT_SESSION_DIR", "", None),
    ("PI_CODING_AGENT_DIR", "sessions", Some(".pi/agent")),
    ("CLAUDE_CONFIG_DIR", "projects", Some(".claude")),
];

/// How much of a long file is read from its start, which has the first message, and from its end, which has the last
/// title.
const MAX_READ_BYTES: u64 = 1 << 20;
/// The most directory entries that are searched.
const MAX_ENTRIES: usize = 200_000;
/// How long a caller waits for a title, in case the disk hangs.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The title of a session, shortened for a notice. `None` if no known harness has it.
pub(super) async fn title_of(session_id: String) -> Option<String> {
    let roots = roots(|name| std::env::var_os(name).map(PathBuf::from));
    let read = tokio::task::spawn_blocking(move || title_in(&roots, &session_id));
    tokio::time::timeout(READ_TIMEOUT, read).await.ok()?.ok()?
}

fn roots(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let home = variable("HOME");
    let root = |(name, below, usual): &(&str, &str, Option<&str>)| {
        let moved = variable(name).filter(|path| !path.as_os_str().is_empty());
        // Expand `~` as the harness does.
        let moved = moved.map(|path| match path.strip_prefix("~") {
            Ok(rest) => home.as_ref().map_or_else(|| path.clone(), |home| home.join(rest)),
            Err(_) => path,
        });
        let root = moved.or_else(|| Some(home.as_ref()?.join((*usual)?)))?;
        Some(root.join(below))
    };
    SESSION_DIRS.iter().filter_map(root).collect()
}

fn title_in(roots: &[PathBuf], session_id: &str) -> Option<String> {
    let file = roots.iter().find_map(|root| session_file(root, session_id))?;
    let text = both_ends(open_no_follow(&file).ok()?).ok()?;
    let names = SessionNames::of(text.lines());
    session_title(names.title(), names.first_message.as_deref())
}

/// Reads the start and the end of a file. A line that is cut is not valid JSON and is ignored.
fn both_ends(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    (&mut file).take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    if size > MAX_READ_BYTES {
        let from = (size - MAX_READ_BYTES).max(MAX_READ_BYTES);
        if from > MAX_READ_BYTES {
            bytes.push(b'\n');
        }
        file.seek(SeekFrom::Start(from))?;
        file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn session_file(sessions: &Path, session_id: &str) -> Option<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).ok().into_iter().flat_map(|entries| entries.flatten());
    let inside = |entry: fs::DirEntry| {
        let path = entry.path();
        // read_dir fails on anything that is not a directory, without opening it.
        entries(&path).map(|entry| entry.path()).collect::<Vec<_>>().into_iter().chain([path])
    };
    let mut files = entries(sessions).flat_map(inside).take(MAX_ENTRIES);
    files.find(|file| is_of_session(file, session_id))
}

/// Claude names the file by the session id, Pi by the start time, `_` and the session id.
fn is_of_session(file: &Path, session_id: &str) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
    name.is_some_and(|name| name == session_id || name.split_once('_').is_some_and(|(_, id)| id == session_id))
}

/// The entry types that set a title, and the field with it. Earlier types take precedence, as in the harness's own
/// list. The last entry of a type counts, and an empty one clears the title.
const TITLES: [(&str, &str); 5] = [
    ("session_info", "name"),
    ("agent-name", "agentName"),
    ("custom-title", "customTitle"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
];

#[derive(Debug, Default)]
struct SessionNames {
    titles: [Option<String>; TITLES.len()],
    first_message: Option<String>,
}

impl SessionNames {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
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

    fn title(&self) -> Option<&str> {
        self.titles.iter().flatten().map(String::as_str).next()
    }
}

/// Whether the entry is a message that the user typed, not one that the harness generated.
fn is_from_user(entry: &Value) -> bool {
    let is_entry = ["message", "user"].into_iter().any(|kind| entry["type"] == kind);
    let is_set = |name: &str| entry[name] == true;
    let is_meta = ["isMeta", "isCompactSummary", "isSidechain"].into_iter().any(is_set);
    is_entry && entry["message"]["role"] == "user" && !is_meta
}

/// The first text of a message, which is a string or a list of parts.
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

/// Whether the harness generated the text: a command with its output in tags, or the note about an interruption.
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
#[path = "titles_tests.rs"]
mod tests;
