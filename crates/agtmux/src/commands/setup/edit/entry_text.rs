//! Writes JSON entries as text.

/// An object on one line: `{ "type": "command", … }`.
pub(super) fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}: {value}", string(name))).collect();
    format!("{{ {} }}", fields.join(", "))
}

pub(super) fn member(name: &str, value: &str) -> String {
    format!("{}: {value}", string(name))
}

pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
