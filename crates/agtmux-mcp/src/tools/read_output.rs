use agtmux_api::wire::{ActionGuards, ActionOutcome, OutputAction, OutputReport};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolResult};
use crate::excerpt::{DEFAULT_CHARS, Excerpt, MAX_CHARS, OutputCollector};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "read_output",
    title: "Read the output of an agent",
    description: "Read what the terminal of an agent shows: the last lines of its output and its screen.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<ReadOutputArgs>,
    output: output_schema::<AgentOutput>,
};

const DEFAULT_LINES: u32 = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadOutputArgs {
    /// The agent: its ref from list_agents, its name, its type if there is only one, or a pane such as %12.
    r#ref: String,
    /// How many lines, counted from the end. Default: 200. At most 10000.
    lines: Option<u32>,
    /// Where to read on, in bytes after the first of these lines: the `next_offset` of an earlier result.
    offset: Option<u64>,
    /// How many characters at most. Default: 8500. At most 100000.
    max_chars: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgentOutput {
    /// How to treat the text below.
    untrusted: &'static str,
    pane: String,
    /// Whether a full-screen program draws the screen. Earlier output is then not visible.
    full_screen: bool,
    output: Excerpt,
}

pub(super) async fn run(call: &ToolCall<'_>, args: ReadOutputArgs) -> ToolResult {
    let guards = ActionGuards { r#ref: args.r#ref, ..ActionGuards::default() };
    let lines = Some(args.lines.unwrap_or(DEFAULT_LINES));
    let action = OutputAction { guards, lines, ..OutputAction::default() };
    let done: ActionOutcome<OutputReport> = parse(&call.daemon.act("/v1/actions/view-output", &action).await?)?;
    let lines = without_blank_end(&done.report.lines);
    let collected = OutputCollector::of_lines(lines, args.offset);
    let facts = AgentOutput {
        untrusted: untrusted::NOTICE,
        pane: untrusted::field(&format!("{} on {}", done.pane_id, done.server_label())),
        full_screen: done.report.full_screen,
        output: collected.excerpt(args.max_chars.unwrap_or(DEFAULT_CHARS).min(MAX_CHARS)).explained("call again with"),
    };
    let source = format!("pane {}", done.pane_id);
    let text = format!("Pane {}. {}\n{}", facts.pane, facts.untrusted, facts.output.text(&source));
    ToolAnswer::new(text, &facts)
}

/// The lines without the empty rows at the bottom of the screen.
fn without_blank_end(lines: &[String]) -> &[String] {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}
