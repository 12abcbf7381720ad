//! The operations of the API, as the generated clients need them.

use serde_json::Value;
use utoipa::openapi::OpenApi;

pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) summary: String,
    /// The names of the path parameters, in order.
    pub(crate) in_path: Vec<String>,
    pub(crate) has_query: bool,
    pub(crate) has_body: bool,
    /// The response is an endless stream of events.
    pub(crate) streams: bool,
    /// The response is text, not JSON.
    pub(crate) is_text: bool,
}

/// All operations, ordered by name.
pub(crate) fn operations(api: &OpenApi) -> Vec<Operation> {
    let document = serde_json::to_value(api).expect("the document serializes");
    let paths = document["paths"].as_object().expect("there are paths");
    let mut all: Vec<Operation> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.filter_map(move |(method, operation)| operation_of(path, method, operation))
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn operation_of(path: &str, method: &str, operation: &Value) -> Option<Operation> {
    let name = operation["operationId"].as_str()?.to_owned();
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let parameters_in =
        |location: &str| parameters.iter().filter(move |parameter| parameter["in"] == location).collect::<Vec<_>>();
    let in_path = parameters_in("path").iter().filter_map(|p| p["name"].as_str().map(str::to_owned)).collect();
    Some(Operation {
        name,
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: operation["summary"].as_str().unwrap_or_default().trim_end_matches('.').to_owned(),
        in_path,
        has_query: !parameters_in("query").is_empty(),
        has_body: operation.get("requestBody").is_some(),
        streams: operation["responses"]["200"]["content"].get("text/event-stream").is_some(),
        is_text: operation["responses"]["200"]["content"].get("text/plain").is_some(),
    })
}
