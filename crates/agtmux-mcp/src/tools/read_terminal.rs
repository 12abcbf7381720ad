use agtmux_api::wire::{MirrorScreen, MirrorScreenQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::person_commands::PersonCommands;
use super::terminal::{COMMAND_CHARS, CommandFacts, follow_command, terminal};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolResult};
use crate::excerpt::{Excerpt, MAX_CHARS, OutputCollector};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "read_terminal",
    title: "Read the shared terminal",
    description: "With command_id: wait for a command that bash started, up to 40 seconds, and read its output. Without: \
        read the last lines of the shared terminal, and what the user ran there since your last look.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<ReadTerminalArgs>,
    output: output_schema::<TerminalFacts>,
};

const DEFAULT_LINES: u32 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadTerminalArgs {
    /// The command_id from bash.
    command_id: Option<String>,
    /// Where to read on, in bytes: `read_so_far` or `next_offset` of an earlier result.
    offset: Option<u64>,
    /// How long to wait for the end of the command, in seconds. Default and maximum: 40.
    wait_s: Option<u64>,
    /// Without command_id: how many lines, counted from the end. Default: 100.
    lines: Option<u32>,
    /// How many characters at most. Default: 7000. At most 100000.
    max_chars: Option<usize>,
    /// The pane of another shared terminal, such as %5. Default: the shared terminal beside you.
    pane: Option<String>,
}

/// The command, or what the terminal shows.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct TerminalFacts {
    /// The command; null if no command_id was given.
    command: Option<CommandFacts>,
    /// The screen; null if a command_id was given.
    screen: Option<ScreenFacts>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ScreenFacts {
    /// How to treat the text below.
    untrusted: &'static str,
    /// The pane of the shared terminal.
    pane: String,
    output: Excerpt,
    #[serde(flatten)]
    person: PersonCommands,
}

pub(super) async fn run(call: &ToolCall<'_>, args: ReadTerminalArgs) -> ToolResult {
    let collected = OutputCollector::new(args.offset);
    let max_chars = args.max_chars.unwrap_or(COMMAND_CHARS).min(MAX_CHARS);
    if let Some(command_id) = &args.command_id {
        let command = follow_command(call, command_id, collected, call.deadline(args.wait_s), max_chars).await?;
        let text = command.text();
        return ToolAnswer::new(text, &TerminalFacts { command: Some(command), screen: None });
    }
    let place = terminal(call, args.pane).await?;
    let lines = Some(args.lines.unwrap_or(DEFAULT_LINES));
    let query = MirrorScreenQuery { socket: place.socket, pane: place.pane, for_pane: place.for_pane, lines };
    let shown: MirrorScreen = call.daemon.get("/v1/mirrors/screen", &query).await?;
    let pane = shown.pane_id.to_string();
    let person = PersonCommands::since_last_result(call, &pane).await;
    let output = OutputCollector::of_lines(&shown.lines, args.offset).excerpt(max_chars).explained("call again with");
    let screen = ScreenFacts { untrusted: untrusted::NOTICE, pane, output, person };
    let output = screen.output.text(&format!("pane {}", screen.pane));
    let text = format!("Pane {}. {}\n{output}{}", screen.pane, screen.untrusted, screen.person.text());
    ToolAnswer::new(text, &TerminalFacts { command: None, screen: Some(screen) })
}
