use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{is_marked, marker, secret_names, text, text_with_code};

/// Fields that hold shell code. A dialog shows this code, so only its literal values are redacted.
const CODE_FIELDS: [&str; 2] = ["command", "fullCommandText"];

/// The kind of a secret that was recognised by its field name.
const FIELD_KIND: &str = "field";

/// Redacts the secrets in all strings and keys of a document. If a field is named like a secret, its whole value is
/// redacted.
///
/// Recurses as deep as the document, so the document must come from a parser with a depth limit (serde_json's is 128).
pub fn json(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(string) => redact_string(string),
        Value::Array(items) => redact_array(items),
        Value::Object(fields) => redact_object(fields),
    }
}

fn redact_string(string: &mut String) {
    if let Some(clean) = redacted_text(string) {
        *string = clean;
    }
}

fn redact_object(fields: &mut Map<String, Value>) {
    let declared_name = ["name", "key", "Name", "Key"].iter().find_map(|field| fields.get(*field)?.as_str());
    // Kubernetes variables and browser headers have this form: {"name": "TOKEN", "value": "…"}.
    let value_is_secret = declared_name.is_some_and(secret_names::is_secret);
    for (name, value) in fields.iter_mut() {
        if secret_names::is_secret(name) || (value_is_secret && name.eq_ignore_ascii_case("value")) {
            hide(value);
        } else if secret_names::may_name_several_secrets(name) {
            hide_strings(value);
        } else if let (true, Value::String(code)) = (CODE_FIELDS.contains(&name.as_str()), &mut *value) {
            *code = text_with_code(code).into_owned();
        } else {
            json(value);
        }
    }
    redact_names(fields);
}

/// Redacts the keys of an object. A key may be a secret, for example in a map from tokens to users.
fn redact_names(fields: &mut Map<String, Value>) {
    let changed: Vec<(String, String)> =
        fields.keys().filter_map(|name| Some((name.clone(), redacted_text(name)?))).collect();
    let mut count = 1;
    for (name, clean) in changed {
        let mut free = clean.clone();
        while fields.contains_key(&free) {
            count += 1;
            free = format!("{count} {clean}");
        }
        if let Some(value) = fields.remove(&name) {
            fields.insert(free, value);
        }
    }
}

/// Returns the redacted text, or `None` if the text contains no secret.
fn redacted_text(string: &str) -> Option<String> {
    match text(string) {
        Cow::Owned(clean) => Some(clean),
        Cow::Borrowed(_) => None,
    }
}

fn redact_array(items: &mut [Value]) {
    if is_environment(items) {
        items.iter_mut().for_each(hide_variable);
    }
    if let [Value::String(name), value] = items
        && secret_names::is_secret(name)
    {
        hide(value);
    }
    let mut next_is_secret = false;
    for item in items {
        let argument = item.as_str().unwrap_or_default();
        let (is_option, is_secret_flag) = (argument.starts_with("--"), secret_names::is_secret_flag(argument));
        if next_is_secret && !is_option {
            hide(item);
        } else {
            json(item);
        }
        next_is_secret = is_secret_flag;
    }
}

fn is_environment(items: &[Value]) -> bool {
    items.iter().all(|item| item.as_str().is_some_and(|variable| secret_names::variable_name(variable).is_some()))
}

/// Hides the whole value of a secret variable. In an environment, unlike on a command line, a value may contain spaces.
fn hide_variable(variable: &mut Value) {
    let Value::String(variable) = variable else { return };
    let Some(name) = secret_names::variable_name(variable).filter(|name| secret_names::is_secret(name)) else { return };
    if variable.len() > name.len() + 1 {
        *variable = format!("{name}={}", marker(FIELD_KIND));
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Null => {}
        Value::String(string) if string.is_empty() || is_marked(string) => {}
        value => *value = Value::String(marker(FIELD_KIND)),
    }
}

fn hide_strings(value: &mut Value) {
    match value {
        Value::String(_) => hide(value),
        Value::Array(items) => items.iter_mut().for_each(hide_strings),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if secret_names::is_secret(name) { hide(value) } else { hide_strings(value) }
            }
            redact_names(fields);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
