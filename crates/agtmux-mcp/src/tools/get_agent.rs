use agtmux_api::wire::{ExplainCandidate, Explanation, ListQuery, ListResponse, PaneItem};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent_facts::{AgentFacts, DialogFacts, age};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, field, marked};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "get_agent",
    title: "Get agent",
    description: "Show one agent: its state, why agtmux thinks so, and the dialog that it shows to the user.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<GetAgentArgs>,
    output: output_schema::<AgentDetails>,
};

/// At most this many reasons are shown, the ones that count first.
const MAX_REASONS: usize = 8;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetAgentArgs {
    /// The agent: its ref from list_agents, its name, its type if there is only one, or a pane such as %12.
    r#ref: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgentDetails {
    /// How to treat the texts below.
    untrusted: &'static str,
    agent: AgentFacts,
    /// Why agtmux is certain or not: a code, if there is one.
    reason: Option<String>,
    /// How certain the state is.
    confidence: String,
    /// What the agent's hooks, files and screen report.
    why: Vec<StateReason>,
    dialog: Option<DialogFacts>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StateReason {
    /// hook, file, screen, title or another source.
    source: String,
    says: String,
    /// Whether this decides the state at the moment.
    counts: bool,
    seconds_ago: i64,
    /// The text that the agent showed or reported.
    evidence: String,
}

pub(super) async fn run(call: &ToolCall<'_>, args: GetAgentArgs) -> ToolResult {
    let caller = call.caller().await?;
    let query = [("ref", args.r#ref.as_str())].into_iter().collect::<std::collections::BTreeMap<_, _>>();
    let explanation: Explanation = call.daemon.get("/v1/explain", &query).await?;
    let list: ListResponse<PaneItem> = call.daemon.get("/v1/panes", &ListQuery::default()).await?;
    let is_it = |pane: &&PaneItem| pane.runtime_id.as_deref() == Some(&explanation.runtime_id);
    let pane = list.items.iter().find(is_it);
    let agent = pane.and_then(|pane| AgentFacts::of(pane, &caller, Timestamp::now()));
    let agent = agent.ok_or_else(|| ToolError::new("the agent has just ended").with_hint("call list_agents"))?;
    let mut candidates: Vec<&ExplainCandidate> = explanation.candidates.iter().collect();
    candidates.sort_by_key(|candidate| (!candidate.fresh, candidate.age_ms));
    let facts = AgentDetails {
        untrusted: untrusted::NOTICE,
        agent,
        reason: explanation.reason_code.map(|reason| reason.to_string()),
        confidence: json_word(&explanation.confidence),
        why: candidates.into_iter().take(MAX_REASONS).map(reason).collect(),
        dialog: pane.and_then(|pane| pane.dialog.as_ref()).map(DialogFacts::from),
    };
    ToolAnswer::new(text(&facts), &facts)
}

fn reason(candidate: &ExplainCandidate) -> StateReason {
    StateReason {
        source: candidate.source.to_string(),
        says: field(&json_word(&candidate.says)),
        counts: candidate.fresh,
        seconds_ago: candidate.age_ms / 1000,
        evidence: field(&candidate.evidence),
    }
}

/// A value as JSON writes it, without quotes.
fn json_word(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned()
}

fn text(facts: &AgentDetails) -> String {
    let mut inside = facts.agent.text();
    let reason = facts.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    inside.push_str(&format!("\nconfidence {}{reason}", facts.confidence));
    for why in &facts.why {
        let counts = if why.counts { "" } else { ", no longer counts" };
        let ago = age(why.seconds_ago);
        inside.push_str(&format!("\n{} says {} ({ago} ago{counts}): {}", why.source, why.says, why.evidence));
    }
    if let Some(dialog) = &facts.dialog {
        inside.push_str(&format!("\nopen dialog: {}", dialog.text()));
    }
    format!("{}\n{}", facts.untrusted, marked("agent", &inside))
}
