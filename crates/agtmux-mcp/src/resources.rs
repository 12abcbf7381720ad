//! Resources: the agents, the output of each agent, and the tasks.

use agtmux_api::wire::{ListQuery, ListResponse, PaneItem};
use rmcp::model::{ErrorData, JsonObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::answer::ToolError;
use crate::tool_call::ToolCall;
use crate::tools;
use crate::untrusted::field;

pub(crate) const AGENTS: &str = "agtmux://agents";
pub(crate) const TASKS: &str = "agtmux://tasks";
const OUTPUT_SUFFIX: &str = "/output";
const JSON: &str = "application/json";

/// A resource that a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResourceName {
    Agents,
    Tasks,
    /// The output of the agent with this runtime id.
    Output(String),
}

impl ResourceName {
    pub(crate) fn parse(uri: &str) -> Result<Self, ErrorData> {
        let output = || uri.strip_prefix(AGENTS)?.strip_prefix('/')?.strip_suffix(OUTPUT_SUFFIX);
        let is_id = |id: &&str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        match (uri, output().filter(is_id)) {
            (AGENTS, _) => Ok(Self::Agents),
            (TASKS, _) => Ok(Self::Tasks),
            (_, Some(id)) => Ok(Self::Output(id.to_owned())),
            _ => Err(ErrorData::resource_not_found(format!("there is no resource {}", field(uri)), None)),
        }
    }
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let output = ResourceTemplate::new(format!("{AGENTS}/{{runtime_id}}{OUTPUT_SUFFIX}"), "agent-output");
    vec![output.with_title("Output of an agent").with_description("The last lines of an agent's terminal.")]
}

/// The resources that exist now.
pub(crate) async fn all(call: &ToolCall<'_>) -> Result<Vec<Resource>, ErrorData> {
    let list: ListResponse<PaneItem> =
        call.daemon.get("/v1/panes", &ListQuery::default()).await.map_err(|error| internal(&error.into()))?;
    let fixed = [
        Resource::new(AGENTS, "agents").with_title("Agents").with_description("The agents and their states."),
        Resource::new(TASKS, "tasks").with_title("Tasks").with_description("The background tasks of this project."),
    ];
    let mut resources: Vec<Resource> = fixed.into_iter().map(|resource| resource.with_mime_type(JSON)).collect();
    for pane in &list.items {
        let agent = pane.agent_type.as_ref().filter(|agent| !agent.is_task());
        let (Some(id), Some(agent)) = (&pane.runtime_id, agent) else { continue };
        let uri = format!("{AGENTS}/{id}{OUTPUT_SUFFIX}");
        if resources.iter().all(|resource| resource.uri != uri) {
            let title = field(&format!("Output of {agent} in {}", pane.identity.pane_id));
            resources.push(Resource::new(uri, format!("output-{id}")).with_title(title).with_mime_type("text/plain"));
        }
    }
    Ok(resources)
}

pub(crate) async fn read(call: &ToolCall<'_>, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (tool, arguments) = match ResourceName::parse(uri)? {
        ResourceName::Agents => ("list_agents", json!({})),
        ResourceName::Tasks => ("list_tasks", json!({})),
        ResourceName::Output(id) => ("read_output", json!({"ref": format!("runtime:{id}")})),
    };
    let arguments: JsonObject = arguments.as_object().cloned().unwrap_or_default();
    let answer = tools::run(tool, call, arguments).await.map_err(|error| internal(&error))?;
    let contents = match tool {
        "read_output" => ResourceContents::text(answer.text, uri).with_mime_type("text/plain"),
        _ => ResourceContents::text(answer.structured.to_string(), uri).with_mime_type(JSON),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn internal(error: &ToolError) -> ErrorData {
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    ErrorData::internal_error(format!("{}{hint}", error.message), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_uris_name_resources() {
        assert_eq!(ResourceName::parse(AGENTS).expect("known"), ResourceName::Agents);
        assert_eq!(
            ResourceName::parse("agtmux://agents/a-1/output").expect("known"),
            ResourceName::Output("a-1".into())
        );
        for uri in
            ["", "agtmux://agents/", "agtmux://agents//output", "agtmux://agents/%1/output", "file:///etc/passwd"]
        {
            assert!(ResourceName::parse(uri).is_err(), "{uri}");
        }
    }
}
