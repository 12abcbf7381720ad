use agtmux_api::wire::{ListQuery, ListResponse, PaneItem, StateSet};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent_facts::AgentFacts;
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, field, marked};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "list_agents",
    title: "List agents",
    description: "List the AI coding agents that run in tmux, with their states. The agents that need the user come first.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<ListAgentsArgs>,
    output: output_schema::<ListedAgents>,
};

/// How many characters of JSON the agents of one result may take.
const MAX_CHARS: usize = 8000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAgentsArgs {
    /// Only agents in these states, separated by commas: running, waiting_input, waiting_approval, completed, idle,
    /// error, unknown.
    state: Option<String>,
    /// Only agents of this type, such as claude.
    agent: Option<String>,
    /// Only agents that wait for the user.
    #[serde(default)]
    needs_action: bool,
    /// Leave out this many agents: the `next_offset` of an earlier result.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListedAgents {
    /// How to treat the names, titles and questions below.
    untrusted: &'static str,
    /// The number of agents that match.
    total: usize,
    agents: Vec<AgentFacts>,
    /// Pass this as `offset` to see more agents; null if there are no more.
    next_offset: Option<usize>,
    /// Hosts and tmux servers that do not answer. Their agents are listed as last seen.
    unreachable: Vec<String>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: ListAgentsArgs) -> ToolResult {
    let state = args.state.as_deref().map(str::parse::<StateSet>).transpose();
    let query = ListQuery {
        state: state.map_err(|error| ToolError::new(error.to_string()))?,
        agent: args.agent.clone(),
        needs_action: args.needs_action,
        ..ListQuery::default()
    };
    let caller = call.caller().await?;
    let list: ListResponse<PaneItem> = call.daemon.get("/v1/panes", &query).await?;
    let now = Timestamp::now();
    let mut panes: Vec<&PaneItem> = list.items.iter().collect();
    panes.sort_by(|one, other| one.attention_order().cmp(&other.attention_order()));
    // A pane that several sessions show is one agent.
    let mut seen = std::collections::HashSet::new();
    panes.retain(|pane| seen.insert(&pane.runtime_id));
    let agents: Vec<AgentFacts> = panes.iter().filter_map(|pane| AgentFacts::of(pane, &caller, now)).collect();
    let total = agents.len();
    let shown = fitting(agents.into_iter().skip(args.offset));
    let next = args.offset + shown.len();
    let facts = ListedAgents {
        untrusted: untrusted::NOTICE,
        total,
        agents: shown,
        next_offset: (next < total).then_some(next),
        unreachable: list
            .target_errors
            .iter()
            .map(|error| field(&format!("{}: {}", error.target, error.message)))
            .collect(),
    };
    ToolAnswer::new(text(&facts), &facts)
}

/// The first agents, as many as fit into one result. At least one, so that a client that reads on gets further.
fn fitting(agents: impl Iterator<Item = AgentFacts>) -> Vec<AgentFacts> {
    let mut used = 0;
    let size = |agent: &AgentFacts| serde_json::to_string(agent).map_or(0, |json| json.chars().count());
    let fits = |agent: &AgentFacts| {
        let is_first = used == 0;
        used += size(agent);
        is_first || used <= MAX_CHARS
    };
    agents.take_while(fits).collect()
}

fn text(facts: &ListedAgents) -> String {
    let mut text = format!("{} agents. {}\n", facts.total, facts.untrusted);
    let lines: Vec<String> = facts.agents.iter().map(AgentFacts::text).collect();
    if !lines.is_empty() {
        text.push_str(&marked("agents", &lines.join("\n")));
    }
    if let Some(next) = facts.next_offset {
        text.push_str(&format!("\n{} more; call again with offset={next}", facts.total - next));
    }
    for error in &facts.unreachable {
        text.push_str(&format!("\nNot reachable, listed as last seen: {error}"));
    }
    text
}
