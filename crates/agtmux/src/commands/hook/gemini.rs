//! Finds out how Gemini's turn ended: from the last record of its transcript, because the hook does not contain it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Value, json};

const TAIL_BYTES: u64 = 64 * 1024;
const MAX_TEXT: usize = 200;

pub(super) fn add_last_record(payload: &mut Option<Value>) {
    let Some(Value::Object(fields)) = payload else { return };
    let path = fields.get("transcript_path").and_then(Value::as_str).map(Path::new);
    let found = path.and_then(tail).and_then(|tail| last_record(&tail));
    if let Some(found) = found {
        fields.insert("agtmux".into(), found);
    }
}

/// The last part of the file. Ignores links, pipes and files of other users.
fn tail(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let start = meta.len().saturating_sub(TAIL_BYTES);
    let tail = read_from(&mut file, start)?;
    // Unless the whole file was read, the first line is incomplete.
    let whole = if start == 0 { 0 } else { tail.iter().position(|byte| *byte == b'\n')? + 1 };
    Some(tail[whole..].to_vec())
}

fn read_from(file: &mut File, start: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn last_record(tail: &[u8]) -> Option<Value> {
    let (kind, text) = tail.split(|byte| *byte == b'\n').rev().find_map(record)?;
    Some(json!({"last_record": {"type": kind, "text": text}}))
}

fn record(line: &[u8]) -> Option<(String, String)> {
    let record: Value = serde_json::from_slice(line).ok()?;
    let kind = record["type"].as_str().filter(|kind| matches!(*kind, "user" | "gemini" | "error" | "info"))?;
    Some((kind.to_owned(), text(&record["content"]).chars().take(MAX_TEXT).collect()))
}

/// The content is a string, or a list of parts with an optional text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_record_of(transcript: &str) -> Value {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("chat.jsonl");
        std::fs::write(&path, transcript).expect("written");
        let mut payload = Some(json!({"transcript_path": path, "prompt": "p"}));
        add_last_record(&mut payload);
        payload.expect("still there")["agtmux"].clone()
    }

    const USER: &str = r#"{"id":"1","type":"user","content":[{"text":"SLOW 15"}]}"#;

    #[test]
    fn a_cancelled_turn_differs_from_a_finished_one() {
        let set = r#"{"$set":{"lastUpdated":"x"}}"#;
        let cancelled = r#"{"id":"2","type":"info","content":"Request cancelled."}"#;
        let record = last_record_of(&format!("{USER}\n{set}\n{cancelled}\n{set}\n"));
        assert_eq!(record["last_record"], json!({"type": "info", "text": "Request cancelled."}));
        let answered = r#"{"id":"3","type":"gemini","content":"done","tokens":{}}"#;
        assert_eq!(last_record_of(&format!("{USER}\n{answered}"))["last_record"]["type"], "gemini");
    }

    #[test]
    fn only_the_tail_is_read_and_texts_are_cut() {
        let long = json!({"type": "user", "content": "u".repeat(100_000)}).to_string();
        let record = last_record_of(&format!("{long}\n{}\n", json!({"type": "error", "content": "é".repeat(900)})));
        assert_eq!(record["last_record"]["text"].as_str().map(|text| text.chars().count()), Some(MAX_TEXT));
        assert_eq!(record["last_record"]["type"], "error");
    }

    #[test]
    fn an_invalid_transcript_adds_nothing() {
        assert_eq!(last_record_of(""), Value::Null);
        assert_eq!(last_record_of("no json\n\u{0}\n[1]\n"), Value::Null);
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link) = (dir.path().join("t"), dir.path().join("l"));
        std::fs::write(&target, USER).expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        assert!(tail(&target).is_some() && tail(&link).is_none() && tail(dir.path()).is_none());
        for mut payload in [None, Some(json!([])), Some(json!({"transcript_path": 7}))] {
            add_last_record(&mut payload);
        }
    }
}
