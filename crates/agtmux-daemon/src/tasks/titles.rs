//! What a harness session is called: its title, or the first thing that the user said in it, from the file that the harness keeps.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use agtmux_core::task::session_title;
use serde_json::Value;

/// Where sessions are kept below the user's home: the variable that moves it, its usual place, and the folder of sessions in it. The
/// file's name ends with the session's id, in a folder for each project.
const PLACES: [(&str, &str, &str); 2] =
    [("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"), ("CLAUDE_CONFIG_DIR", ".claude", "projects")];

/// Of a long session so much is read from its beginning, where the first message is, and from its end, where the last title is.
const MOST_BYTES: u64 = 1 << 20;

/// The title of a session of any harness that we can read, cut to what a notice has room for.
pub(super) fn title_of(home: &Path, session_id: &str) -> Option<String> {
    let file = PLACES.iter().find_map(|(variable, usual, folder)| {
        let root = std::env::var_os(variable).map_or_else(|| home.join(usual), PathBuf::from);
        session_file(&root.join(folder), session_id)
    })?;
    let (title, first) = names(both_ends(File::open(file).ok()?).ok()?.lines().map(str::to_owned));
    session_title(title.as_deref(), first.as_deref())
}

/// A line that is cut is no JSON, and counts for nothing.
fn both_ends(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    (&mut file).take(MOST_BYTES).read_to_end(&mut bytes)?;
    if size > MOST_BYTES {
        file.seek(SeekFrom::Start((size - MOST_BYTES).max(MOST_BYTES)))?;
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn session_file(sessions: &Path, session_id: &str) -> Option<PathBuf> {
    let whole = format!("{session_id}.jsonl");
    let ending = format!("_{whole}");
    let projects = fs::read_dir(sessions).ok()?.flatten();
    let mut files = projects.filter_map(|project| fs::read_dir(project.path()).ok()).flat_map(|files| files.flatten());
    let file = files.find(|file| {
        let name = file.file_name();
        name.to_str().is_some_and(|name| name == whole || name.ends_with(&ending))
    });
    file.map(|file| file.path())
}

/// The last title that was given, and the first message of the user.
fn names(lines: impl Iterator<Item = String>) -> (Option<String>, Option<String>) {
    let (mut title, mut first) = (None, None);
    for entry in lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok()) {
        let text = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.trim().is_empty());
        let named = match entry["type"].as_str() {
            Some("session_info") => text(&entry["name"]),
            Some("custom-title") => text(&entry["customTitle"]),
            Some("summary") => text(&entry["summary"]),
            _ => None,
        };
        title = named.or(title);
        let from_user = entry["message"]["role"] == "user" && entry["isMeta"] != true;
        if first.is_none() && from_user {
            first = said(&entry["message"]["content"]);
        }
    }
    (title, first)
}

/// A message is text, or parts of which some are.
fn said(content: &Value) -> Option<String> {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let text = content.as_str().map(str::to_owned).unwrap_or_else(|| parts.collect::<Vec<_>>().join(" "));
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> (Option<String>, Option<String>) {
        names(lines.iter().map(|line| (*line).to_owned()))
    }

    #[test]
    fn the_last_title_and_the_first_message_count() {
        let pi = [
            r#"{"type":"session","id":"x","cwd":"/w"}"#,
            r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":"fix it"}]}}"#,
            "not json",
            r#"{"type":"message","message":{"role":"user","content":"and more"}}"#,
            r#"{"type":"session_info","name":"Old"}"#,
            r#"{"type":"session_info","name":"Fix the build"}"#,
        ];
        assert_eq!(of(&pi), (Some("Fix the build".into()), Some("fix it".into())));
        let claude = [
            r#"{"type":"user","isMeta":true,"message":{"role":"user","content":"<caveat>"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"please look"}}"#,
        ];
        assert_eq!(of(&claude), (None, Some("please look".into())));
        assert_eq!(of(&[]), (None, None));
    }

    #[test]
    fn a_session_is_found_by_its_whole_id() {
        let home = std::env::temp_dir().join(format!("agtmux-titles-{}", std::process::id()));
        let project = home.join(".pi/agent/sessions/--w-foo--");
        fs::create_dir_all(&project).expect("made");
        let line = r#"{"type":"session_info","name":"Mine"}"#;
        fs::write(project.join("2026-11-15T10-00-00_abc-1.jsonl"), line).expect("written");
        assert_eq!(title_of(&home, "abc-1").as_deref(), Some("Mine"));
        let said = r#"{"type":"message","message":{"role":"user","content":"do it"}}"#;
        let work = format!("{{\"type\":\"work\",\"text\":\"{}\"}}\n", "x".repeat(1000)).repeat(5000);
        fs::write(project.join("x_long.jsonl"), format!("{said}\n{work}{line}\n")).expect("written");
        assert_eq!(title_of(&home, "long").as_deref(), Some("Mine"));
        fs::write(project.join("x_long.jsonl"), format!("{said}\n{work}")).expect("written");
        assert_eq!(title_of(&home, "long").as_deref(), Some("do it"));
        assert_eq!(title_of(&home, "1"), None);
        assert_eq!(title_of(&home, "abc"), None);
        fs::remove_dir_all(&home).expect("removed");
    }
}
