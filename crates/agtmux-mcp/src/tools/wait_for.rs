use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ActionGuards, ActionSnapshot, ListQuery, ListScope, SnapshotAction};
use agtmux_client::{
    ClientError, FleetReplica, StreamSignal, WaitGoals, WaitOutcome, WaitedAgent, WaitedAgents, parse,
};
use agtmux_core::state::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout_at;

use super::is_false;
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::field;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "wait_for",
    title: "Wait for agents",
    description: "Wait until other agents have finished or are in a state. Returns after 40 seconds at the latest; if the \
        result says still_running, call wait_for again with the returned position. Waiting uses no tokens, polling does.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<WaitForArgs>,
    output: output_schema::<WaitedFor>,
};

const FINISHED: &str = "finished";
const MAX_REFS: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForArgs {
    /// The agents: refs from list_agents, names, types, or panes such as %12.
    refs: Vec<String>,
    /// The states to wait for: finished (the turn has ended, however), running, waiting_input, waiting_approval,
    /// completed, idle, error, unknown. Default: finished.
    #[serde(default)]
    states: Vec<String>,
    /// Return when one of the agents is in one of the states. Default: wait for all of them.
    #[serde(default)]
    any: bool,
    /// How long to wait, in seconds. Default and maximum: 40.
    timeout_s: Option<u64>,
    /// The position of an earlier result, to go on waiting without missing what happened in between.
    position: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitedFor {
    /// `reached`; `still_running`: call again with `position`; `asks`: an agent waits for the user; `gone`: an agent has
    /// ended.
    outcome: &'static str,
    agents: Vec<WaitedFacts>,
    /// Pass this to the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitedFacts {
    r#ref: String,
    agent: String,
    /// The state now; null if the agent has ended.
    state: Option<String>,
    /// Whether the agent has reached one of the states.
    reached: bool,
    #[serde(skip_serializing_if = "is_false")]
    gone: bool,
}

pub(super) async fn run(call: &ToolCall<'_>, args: WaitForArgs) -> ToolResult {
    if args.refs.is_empty() || args.refs.len() > MAX_REFS {
        return Err(ToolError::new(format!("name 1 to {MAX_REFS} agents in refs")).with_hint("call list_agents"));
    }
    let goals = goals(&args.states)?;
    let mut agents = Vec::new();
    let mut versions = Vec::new();
    for reference in &args.refs {
        let (agent, version) = look(call, reference, args.position.as_deref()).await?;
        versions.push(format!("{}={version}", agent.runtime_id));
        agents.push(agent);
    }
    let mut waited = WaitedAgents::new(agents, goals);
    let outcome = match waited.outcome(args.any) {
        Some(outcome) => outcome,
        None => {
            let deadline = call.deadline(args.timeout_s);
            let followed = timeout_at(deadline, follow(call, args.any, &mut waited));
            tokio::select! {
                followed = followed => followed.unwrap_or(Ok(WaitOutcome::TimedOut))?,
                () = call.cancelled() => WaitOutcome::TimedOut,
            }
        }
    };
    // The first look stays in the position, so that a turn that began after it counts in every later call.
    let position = (outcome == WaitOutcome::TimedOut).then(|| args.position.unwrap_or_else(|| versions.join(",")));
    let facts = WaitedFor { outcome: word(outcome), agents: waited.agents.iter().map(facts_of).collect(), position };
    ToolAnswer::new(text(&facts), &facts)
}

fn goals(states: &[String]) -> Result<WaitGoals, ToolError> {
    let mut goals = WaitGoals { states: Vec::new(), finished: states.is_empty() };
    for state in states {
        match state.parse::<State>() {
            _ if state == FINISHED => goals.finished = true,
            Ok(state) => goals.states.push(state),
            Err(error) => return Err(ToolError::new(format!("states: {error}, {FINISHED}"))),
        }
    }
    Ok(goals)
}

/// The agent now, and the version of its state.
async fn look(call: &ToolCall<'_>, reference: &str, position: Option<&str>) -> Result<(WaitedAgent, u64), ToolError> {
    let guards = ActionGuards { r#ref: reference.to_owned(), ..ActionGuards::default() };
    let snapshot = match call.daemon.act("/v1/actions/snapshot", &SnapshotAction { guards }).await {
        Ok(answer) => parse::<ActionSnapshot>(&answer)?,
        // A runtime that is not found has ended.
        Err(ClientError::Refused(error))
            if reference.starts_with("runtime:") && error.code == ErrorCode::RefNotFound =>
        {
            return Ok((WaitedAgent::ended(reference), 0));
        }
        Err(error) => return Err(error.into()),
    };
    let version = snapshot.state_version.unwrap_or_default();
    let Some(mut agent) = WaitedAgent::from_snapshot(reference, &snapshot) else {
        return Err(ToolError::new(format!("no agent is in {}", field(reference))).with_hint("call list_agents"));
    };
    let earlier = position.and_then(|position| version_in(position, &agent.runtime_id));
    if earlier.is_some_and(|earlier| earlier < version) {
        agent.note_earlier_run();
    }
    Ok((agent, version))
}

fn version_in(position: &str, runtime_id: &str) -> Option<u64> {
    let mut entries = position.split(',').filter_map(|entry| entry.split_once('='));
    entries.find(|(id, _)| *id == runtime_id)?.1.parse().ok()
}

async fn follow(call: &ToolCall<'_>, any: bool, waited: &mut WaitedAgents) -> Result<WaitOutcome, ToolError> {
    let query = ListQuery { scope: Some(ListScope::Panes), ..ListQuery::default() };
    let mut signals = call.daemon.watch(query);
    let mut replica = FleetReplica::default();
    loop {
        let signal = signals.next().await?;
        if let StreamSignal::Event(event) = &signal {
            waited.apply_event(event);
        }
        if replica.receive(signal) {
            waited.update_from_list(replica.items().panes.values());
        }
        if let Some(outcome) = waited.outcome(any) {
            return Ok(outcome);
        }
    }
}

fn word(outcome: WaitOutcome) -> &'static str {
    match outcome {
        WaitOutcome::Reached => "reached",
        WaitOutcome::Gone => "gone",
        WaitOutcome::Asks => "asks",
        WaitOutcome::TimedOut => "still_running",
    }
}

fn facts_of(agent: &WaitedAgent) -> WaitedFacts {
    WaitedFacts {
        r#ref: format!("runtime:{}", agent.runtime_id),
        agent: field(&agent.agent_type),
        state: agent.state.map(|state| state.to_string()),
        reached: agent.has_reached(),
        gone: agent.gone,
    }
}

fn text(facts: &WaitedFor) -> String {
    let mut text = match (facts.outcome, &facts.position) {
        ("still_running", Some(position)) => {
            format!("still_running: call wait_for again with the same refs and position=\"{position}\"")
        }
        ("asks", _) => "asks: an agent waits for the user; tell the user, or wait for other agents".to_owned(),
        (outcome, _) => outcome.to_owned(),
    };
    for agent in &facts.agents {
        let state = agent.state.as_deref().unwrap_or("ended");
        let reached = if agent.reached { ", reached" } else { "" };
        text.push_str(&format!("\n{}  {}  {state}{reached}", agent.r#ref, agent.agent));
    }
    text
}
