use agtmux_api::wire::{MirrorCommand, MirrorExecRequest};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::terminal::{COMMAND_CHARS, CommandFacts, directory, follow_command, terminal};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::excerpt::{MAX_CHARS, OutputCollector};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "bash",
    title: "Run a command in the shared terminal",
    description: "Run a command in a terminal pane that the user sees beside you and uses, too. It is the user's own \
        shell: directory, variables and environment stay from one command to the next. Opens the terminal if there is \
        none. The result has the output and the exit code, and what the user ran there meanwhile. Returns after 40 \
        seconds at the latest; if the command still runs, the result says still_running, and read_terminal waits for \
        the rest.",
    needs: ToolNeeds::Commands,
    effect: ToolEffect::Changes,
    input: input_schema::<BashArgs>,
    output: output_schema::<CommandFacts>,
};

/// When a command is interrupted, if the client does not say.
const DEFAULT_TIMEOUT_S: u64 = 600;
/// How long the first response of the daemon waits for the end of the command.
const FIRST_WAIT_MS: u64 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BashArgs {
    /// The command, one line or several.
    command: String,
    /// The working directory. Default: the directory that the shell is in.
    cwd: Option<String>,
    /// Interrupt the command with Ctrl-C after this many seconds. Default: 600.
    timeout_s: Option<u64>,
    /// How long to wait for the end, in seconds. Default and maximum: 40.
    wait_s: Option<u64>,
    /// How many characters of output at most. Default: 7000. At most 100000.
    max_chars: Option<usize>,
    /// The pane of another shared terminal, such as %5. Default: the shared terminal beside you.
    pane: Option<String>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: BashArgs) -> ToolResult {
    if args.command.trim().is_empty() {
        return Err(ToolError::new("the command is empty"));
    }
    let place = terminal(call, args.pane).await?;
    let command_id = Uuid::now_v7().simple().to_string();
    let request = MirrorExecRequest {
        socket: place.socket,
        pane: place.pane,
        for_pane: place.for_pane,
        command: args.command,
        cwd: args.cwd.as_deref().map(|dir| directory(call, Some(dir))).transpose()?,
        timeout_ms: Some(args.timeout_s.unwrap_or(DEFAULT_TIMEOUT_S).saturating_mul(1000)),
        command_id: Some(command_id.clone()),
        wait_ms: Some(FIRST_WAIT_MS),
        ..MirrorExecRequest::default()
    };
    let _: MirrorCommand = parse(&call.daemon.act("/v1/mirrors/exec", &request).await?)?;
    let max_chars = args.max_chars.unwrap_or(COMMAND_CHARS).min(MAX_CHARS);
    let deadline = call.deadline(args.wait_s);
    let facts = follow_command(call, &command_id, OutputCollector::new(None), deadline, max_chars).await?;
    ToolAnswer::new(facts.text(), &facts)
}
