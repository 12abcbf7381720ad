use agtmux_api::wire::{ActionGuards, ActionOutcome, SendAction, SendReport, Verification};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{McpPermission, ToolNeeds};
use crate::answer::{ToolAnswer, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::field;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "send",
    title: "Send a text to an agent",
    description: "Type a prompt into another agent's input box and submit it. The result says whether the agent accepted \
        it. Fails while the agent shows a dialog. Needs the user's permission.",
    needs: ToolNeeds::Permission(McpPermission::Send),
    effect: ToolEffect::Adds,
    input: input_schema::<SendToolArgs>,
    output: output_schema::<SentText>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendToolArgs {
    /// The agent: its ref from list_agents, its name, or its type if there is only one.
    r#ref: String,
    /// The text. Say who you are: the agent cannot see where the text comes from.
    text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SentText {
    /// `confirmed`, `inconclusive` (typed; whether the agent accepted it is unknown) or `failed` (still in the box).
    verified: String,
    pane: String,
    r#ref: Option<String>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: SendToolArgs) -> ToolResult {
    let guards = ActionGuards { r#ref: args.r#ref, ..ActionGuards::default() };
    let action = SendAction { guards, text: Some(args.text), ..SendAction::default() };
    let done: ActionOutcome<SendReport> = parse(&call.daemon.act("/v1/actions/send", &action).await?)?;
    let facts = SentText {
        verified: done.report.verified.to_string(),
        pane: field(&format!("{} on {}", done.pane_id, done.server_label())),
        r#ref: done.runtime_id.map(|id| format!("runtime:{id}")),
    };
    let what = match done.report.verified {
        Verification::Confirmed => "The text was submitted; the agent accepted it.",
        Verification::Inconclusive => "The text was typed; whether the agent accepted it is unknown.",
        Verification::Failed => "The text was typed but not submitted: it is still in the input box.",
    };
    ToolAnswer::new(format!("{what} Pane {}. wait_for waits until the agent has finished.", facts.pane), &facts)
}
