//! The topic `json`: the fields of the most used JSON documents, from the schemas of the API.

use agtmux_api::schema;
use serde_json::Value;

/// The commands that print a document, and its schema.
const DOCUMENTS: [(&str, &str); 4] = [
    ("agtmux list panes --json, and `item` of agtmux watch --format jsonl", schema::PANES),
    ("agtmux list sessions --json", schema::SESSIONS),
    ("agtmux task list --json", schema::TASKS),
    ("notices of the channels command and webhook", schema::NOTICE),
];

const MAX_COLUMNS: usize = 98;
const NAME_COLUMNS: usize = 24;

pub(super) fn text() -> String {
    let mut text = String::from(
        "JSON output is the response of the API. A field whose value is not known is null. New fields may\n\
         be added; `schema_version` changes when fields are removed or change their meaning. --jq FILTER\n\
         filters any JSON output. All schemas: GET /v1/openapi.json on the socket of the daemon.\n",
    );
    for (title, schema) in DOCUMENTS {
        text.push_str(&format!("\n{title}:\n"));
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        fields(&schema, &schema, "", 0, &mut text);
    }
    text
}

/// Appends the fields of an object, and those of the objects in it, up to a depth of two.
fn fields(root: &Value, object: &Value, prefix: &str, depth: usize, text: &mut String) {
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let is_list = field["type"] == "array";
        let inner = resolve(root, if is_list { &field["items"] } else { field });
        let path = format!("{prefix}{name}{}", if is_list { "[]" } else { "" });
        let about = field["description"].as_str().or_else(|| inner["description"].as_str()).unwrap_or_default();
        push_entry(text, &path, about);
        if depth < 2 && inner["properties"].is_object() {
            fields(root, inner, &format!("{path}."), depth + 1, text);
        }
    }
}

/// Follows a reference, also one that may be null.
fn resolve<'a>(root: &'a Value, field: &'a Value) -> &'a Value {
    let variants = field["anyOf"].as_array().into_iter().flatten();
    let reference = field["$ref"].as_str().or_else(|| variants.filter_map(|one| one["$ref"].as_str()).next());
    reference.and_then(|path| root.pointer(path.strip_prefix('#')?)).unwrap_or(field)
}

/// Appends a name and its description, wrapped into a column.
fn push_entry(text: &mut String, path: &str, about: &str) {
    let mut line = format!("  {path:<NAME_COLUMNS$}");
    let indent = " ".repeat(NAME_COLUMNS + 3);
    if path.len() > NAME_COLUMNS {
        text.push_str(&format!("{line}\n"));
        line = " ".repeat(NAME_COLUMNS + 2);
    }
    for word in about.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > MAX_COLUMNS {
            text.push_str(&format!("{}\n", line.trim_end()));
            line = indent[..NAME_COLUMNS + 2].to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    if !line.trim().is_empty() {
        text.push_str(&format!("{}\n", line.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_panes_are_listed_with_their_descriptions() {
        let text = text();
        for expected in ["items[].identity.pane_id", "items[].dialog", "target_errors[].hint", "notice_id", "tasks[]"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(text.contains("When the agent entered this state."), "{text}");
    }
}
