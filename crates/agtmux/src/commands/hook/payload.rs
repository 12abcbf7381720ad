//! Parses the JSON that an agent passes to its hook, and shortens JSON that is too large.

use std::fmt;

use agtmux_api::wire::EventSubmission;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::{Map, Value, json};

/// The largest request body that the daemon accepts.
const MAX_BODY: usize = 1 << 20;
/// The maximum length of each string in a shortened payload, in bytes.
const SHORTENED_TEXT: usize = 2048;

/// Parses the payload. Returns `None` if the payload is empty. If the JSON is invalid or truncated, the result has a
/// field `agtmux` that says so.
pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Some(value);
    }
    let mut found = Map::new();
    // Parsing fails at the end of truncated JSON. The fields before that are kept.
    let _ = serde_json::Deserializer::from_slice(bytes).deserialize_map(FieldCollector(&mut found));
    let fault = if found.is_empty() { "not_json" } else { "truncated" };
    found.insert("agtmux".into(), json!({ fault: true }));
    Some(Value::Object(found))
}

/// Encodes the event. If the result is larger than the daemon accepts, shortens the payload.
pub(super) fn encode_to_fit(mut event: EventSubmission) -> Vec<u8> {
    let body = encode(&event);
    if body.len() <= MAX_BODY {
        return body;
    }
    event.payload.as_mut().into_iter().for_each(shorten);
    let body = encode(&event);
    if body.len() <= MAX_BODY {
        return body;
    }
    let small = |value: &Value| !value.is_array() && !value.is_object();
    if let Some(Value::Object(fields)) = &mut event.payload {
        *fields = std::mem::take(fields).into_iter().filter(|(_, value)| small(value)).take(64).collect();
        fields.insert("agtmux".into(), json!({"truncated": true}));
    } else {
        event.payload = Some(json!({"agtmux": {"truncated": true}}));
    }
    encode(&event)
}

fn encode(event: &EventSubmission) -> Vec<u8> {
    // Cannot fail: the maps have string keys.
    serde_json::to_vec(event).unwrap_or_default()
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHORTENED_TEXT => {
            let end = (0..=SHORTENED_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

struct FieldCollector<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for FieldCollector<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            self.0.insert(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_before_the_truncation_are_kept() {
        let cut = br#"{"session_id": "s", "tool_input": {"a": [1]}, "tool_response": "very lo"#;
        let payload = read(cut).expect("a payload");
        assert_eq!((&payload["session_id"], &payload["tool_input"]["a"][0]), (&json!("s"), &json!(1)));
        assert_eq!(payload["agtmux"], json!({"truncated": true}));
    }

    #[test]
    fn any_input_is_accepted() {
        assert_eq!(read(b" \n"), None);
        assert_eq!(read(b"hello \xff"), Some(json!({"agtmux": {"not_json": true}})));
        assert_eq!(read(b"[1]"), Some(json!([1])));
        let deep = "[".repeat(100_000);
        assert_eq!(read(deep.as_bytes()), Some(json!({"agtmux": {"not_json": true}})));
    }

    #[test]
    fn the_body_never_exceeds_the_limit() {
        for payload in [
            json!({"text": "x".repeat(2 << 20), "session_id": "s"}),
            json!({"many": vec!["y".repeat(1500); 1000], "session_id": "s"}),
            json!(vec!["z".repeat(1500); 1000]),
        ] {
            let keeps_id = payload["session_id"].is_string();
            let body = encode_to_fit(EventSubmission { payload: Some(payload), ..EventSubmission::default() });
            assert!(body.len() <= MAX_BODY, "{}", body.len());
            let event: EventSubmission = serde_json::from_slice(&body).expect("still an event");
            assert!(!keeps_id || event.payload.expect("a payload")["session_id"] == "s");
        }
    }
}
