//! Completes a hook payload that does not say how the turn ended. The missing part is the last record of the transcript
//! that the payload names.

use serde_json::{Value, json};

const MAX_TEXT: usize = 200;

/// The path of the transcript that completes this hook's payload. Only the payload of Gemini's `AfterAgent` hook needs
/// a transcript.
pub fn transcript_path<'p>(agent: &str, event: &str, payload: &'p Value) -> Option<&'p str> {
    payload.get("transcript_path").filter(|_| (agent, event) == ("gemini", "AfterAgent"))?.as_str()
}

/// Adds the last record of the transcript to the payload. `tail` contains the last lines of the transcript.
pub fn add_last_record(payload: &mut Value, tail: &[u8]) {
    let last = tail.split(|byte| *byte == b'\n').rev().find_map(record);
    if let (Value::Object(fields), Some((kind, text))) = (payload, last) {
        fields.insert("agtmux".into(), json!({"last_record": {"type": kind, "text": text}}));
    }
}

fn record(line: &[u8]) -> Option<(String, String)> {
    let record: Value = serde_json::from_slice(line).ok()?;
    let kind = record["type"].as_str().filter(|kind| matches!(*kind, "user" | "gemini" | "error" | "info"))?;
    Some((kind.to_owned(), text(&record["content"]).chars().take(MAX_TEXT).collect()))
}

/// The text of a message content, which is a string or a list of parts. Parts without a text are skipped.
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
        let mut payload = json!({"prompt": "p"});
        add_last_record(&mut payload, transcript.as_bytes());
        payload["agtmux"]["last_record"].clone()
    }

    #[test]
    fn a_cancelled_turn_differs_from_a_finished_one() {
        let user = r#"{"id":"1","type":"user","content":[{"text":"SLOW 15"}]}"#;
        let set = r#"{"$set":{"lastUpdated":"x"}}"#;
        let cancelled = r#"{"id":"2","type":"info","content":"Request cancelled."}"#;
        let record = last_record_of(&format!("{user}\n{set}\n{cancelled}\n{set}\n"));
        assert_eq!(record, json!({"type": "info", "text": "Request cancelled."}));
        let answered = r#"{"id":"3","type":"gemini","content":"done","tokens":{}}"#;
        assert_eq!(last_record_of(&format!("{user}\n{answered}"))["type"], "gemini");
    }

    #[test]
    fn texts_are_cut_and_invalid_transcripts_add_nothing() {
        let record = last_record_of(&json!({"type": "error", "content": "é".repeat(900)}).to_string());
        assert_eq!(record["text"].as_str().map(|text| text.chars().count()), Some(MAX_TEXT));
        assert_eq!(last_record_of(""), Value::Null);
        assert_eq!(last_record_of("no json\n\u{0}\n[1]\n"), Value::Null);
    }

    #[test]
    fn only_a_payload_that_names_a_transcript_needs_one() {
        let path = |event: &str, payload: &Value| transcript_path("gemini", event, payload).map(str::to_owned);
        let payload = json!({"transcript_path": "/t"});
        assert_eq!(path("AfterAgent", &payload).as_deref(), Some("/t"));
        assert_eq!(path("BeforeAgent", &payload), None);
        assert_eq!(transcript_path("qwen", "AfterAgent", &payload), None);
        for payload in [json!([]), json!({"transcript_path": 7})] {
            assert_eq!(path("AfterAgent", &payload), None);
        }
    }
}
