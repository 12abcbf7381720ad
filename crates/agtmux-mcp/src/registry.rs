//! The tools, with their descriptions, schemas and annotations.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::access::ToolNeeds;

/// What clients see of a tool.
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) needs: ToolNeeds,
    pub(crate) effect: ToolEffect,
    pub(crate) input: fn() -> JsonObject,
    pub(crate) output: fn() -> JsonObject,
}

/// What a tool changes, for the annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    Reads,
    /// The tool only adds something: a task, a text.
    Adds,
    /// The tool may change or end anything.
    Changes,
}

/// The schema of a result. A field that a result may leave out is not required: clients reject a result that does not
/// match.
pub(crate) fn output_schema<T: JsonSchema>() -> JsonObject {
    let generator = SchemaSettings::default().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    object(schema)
}

/// The schema of arguments. An optional argument has one type: some clients do not understand `["string", "null"]`.
pub(crate) fn input_schema<T: JsonSchema>() -> JsonObject {
    let mut schema = schemars::schema_for!(T).to_value();
    simplify(&mut schema);
    for property in schema["properties"].as_object_mut().into_iter().flat_map(|properties| properties.values_mut()) {
        let named = property["type"].as_array().and_then(|types| types.iter().find(|name| *name != "null")).cloned();
        if let Some(name) = named {
            property["type"] = name;
        }
        let fields = property.as_object_mut().into_iter();
        fields.for_each(|fields| fields.retain(|name, value| name != "default" || !value.is_null()));
    }
    object(schema)
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

/// Removes the names of Rust types, and formats that JSON schema does not define. Clients complain about these.
fn simplify(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        fields.retain(|name, value| {
            !(name == "$schema" || (matches!(name.as_str(), "title" | "format") && value.is_string()))
        });
        fields.values_mut().for_each(simplify);
    }
    if let Value::Array(items) = schema {
        items.iter_mut().for_each(simplify);
    }
}

/// The arguments with texts such as "20" and "true" as the number or the truth value that the schema asks for. Some
/// models and clients send everything as text.
pub(crate) fn typed_arguments(spec: &ToolSpec, given: Option<JsonObject>) -> JsonObject {
    let mut arguments = given.unwrap_or_default();
    let schema = (spec.input)();
    for (name, value) in &mut arguments {
        let wanted = schema["properties"][name]["type"].as_str().unwrap_or_default();
        let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let fits = |parsed: &Value| match wanted {
            "integer" => parsed.is_u64(),
            "boolean" => parsed.is_boolean(),
            "array" => parsed.is_array(),
            _ => false,
        };
        if let Some(parsed) = parsed.filter(fits) {
            *value = parsed;
        }
    }
    arguments
}

/// Adds the field that any result may have.
fn with_task_news(mut schema: JsonObject) -> JsonObject {
    let news = json!({
        "type": "array",
        "items": {"type": "string"},
        "description": "What happened to your background tasks since the last result.",
    });
    if let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut()) {
        properties.insert("task_news".to_owned(), news);
    }
    schema
}

impl ToolSpec {
    pub(crate) fn to_tool(&self) -> Tool {
        let mut tool = Tool::new(self.name, self.description, Arc::new((self.input)()));
        tool.title = Some(self.title.to_owned());
        tool.output_schema = Some(Arc::new(with_task_news((self.output)())));
        let reads = self.effect == ToolEffect::Reads;
        let mut annotations = ToolAnnotations::with_title(self.title).read_only(reads);
        annotations.destructive_hint = Some(self.effect == ToolEffect::Changes);
        annotations.idempotent_hint = Some(reads);
        // Commands can reach anything; agtmux itself reaches only terminals.
        annotations.open_world_hint = Some(self.needs == ToolNeeds::Commands && !reads);
        tool.annotations = Some(annotations);
        tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn schemas_are_plain_and_tools_are_described() {
        for spec in tools::ALL {
            let tool = spec.to_tool();
            let (input, output) = (json!(tool.input_schema), json!(tool.output_schema));
            for (schema, word) in [(&input, "\"format\""), (&output, "\"format\""), (&input, "\"null\"")] {
                assert!(!schema.to_string().contains(word), "{}: {schema}", spec.name);
            }
            assert_eq!((&input["type"], &input["additionalProperties"]), (&json!("object"), &json!(false)));
            assert_eq!(output["type"], "object", "{}", spec.name);
            for (name, property) in input["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{}.{name}", spec.name);
            }
            let annotations = tool.annotations.expect("annotations");
            assert_eq!(annotations.read_only_hint, Some(spec.needs == ToolNeeds::Nothing), "{}", spec.name);
        }
    }

    #[test]
    fn numbers_and_truth_values_may_be_texts() {
        let spec = tools::find("run_task").expect("a tool");
        let given = json!({"task": "5", "wait_s": "20", "replace": "true", "command": "true"});
        let typed = typed_arguments(spec, given.as_object().cloned());
        assert_eq!(json!(typed), json!({"task": "5", "wait_s": 20, "replace": true, "command": "true"}));
    }
}
