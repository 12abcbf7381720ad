use agtmux_api::wire::{ActionGuards, ActionOutcome, DialogAnswer, RespondAction, RespondReport};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent_facts::DialogFacts;
use crate::access::{McpPermission, ToolNeeds};
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, field, marked};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "respond",
    title: "Answer the dialog of an agent",
    description: "Answer the dialog that another agent shows, and only that dialog. Never your own. Needs the user's \
        permission.",
    needs: ToolNeeds::Permission(McpPermission::Respond),
    effect: ToolEffect::Changes,
    input: input_schema::<RespondToolArgs>,
    output: output_schema::<AnsweredDialog>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RespondToolArgs {
    /// The agent: its ref from list_agents.
    r#ref: String,
    /// The fingerprint of the dialog, from get_agent.
    fingerprint: String,
    /// approve, deny, the number of an option, or several numbers separated by commas. Leave this out to answer with
    /// `text`.
    answer: Option<String>,
    /// A text, if the dialog accepts one.
    text: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AnsweredDialog {
    /// How to treat the texts below.
    untrusted: &'static str,
    /// The answer as agtmux gave it.
    answered: String,
    /// `confirmed`, `inconclusive` or `failed` (the dialog is still open).
    verified: String,
    /// The dialog that opened after the answer; null if none opened.
    asks_now: Option<DialogFacts>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: RespondToolArgs) -> ToolResult {
    let answer = answer(args.answer.as_deref(), args.text)?;
    let guards = ActionGuards { r#ref: args.r#ref, if_dialog: Some(args.fingerprint), ..ActionGuards::default() };
    let action = RespondAction { guards, answer, accept_truncated: false };
    let done: ActionOutcome<RespondReport> = parse(&call.daemon.act("/v1/actions/respond", &action).await?)?;
    let facts = AnsweredDialog {
        untrusted: untrusted::NOTICE,
        answered: field(&done.report.answered),
        verified: done.report.verified.to_string(),
        asks_now: done.report.asks_now.as_ref().map(DialogFacts::from),
    };
    let next = facts.asks_now.as_ref().map(|dialog| marked("dialog", &dialog.text()));
    let next = next.map(|next| format!("\nThe agent asks now. {}\n{next}", facts.untrusted)).unwrap_or_default();
    ToolAnswer::new(format!("Answered {} ({}).{next}", facts.answered, facts.verified), &facts)
}

fn answer(given: Option<&str>, text: Option<String>) -> Result<DialogAnswer, ToolError> {
    let invalid = || ToolError::new("answer must be approve, deny, or numbers of options; or give a text instead");
    match (given, text) {
        (None, Some(text)) => Ok(DialogAnswer::Text(text)),
        (Some("approve"), None) => Ok(DialogAnswer::Approve),
        (Some("deny"), None) => Ok(DialogAnswer::Deny),
        (Some(numbers), None) => {
            let numbers = numbers.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<u32>, _>>();
            match numbers.map_err(|_| invalid())?.as_slice() {
                [one] => Ok(DialogAnswer::Option(*one)),
                several => Ok(DialogAnswer::Options(several.to_vec())),
            }
        }
        _ => Err(invalid()),
    }
}
