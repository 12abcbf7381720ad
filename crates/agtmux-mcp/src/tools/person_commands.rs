//! What the person ran in the shared terminal. Results report it, because no client listens for notifications.

use agtmux_api::wire::{MirrorActivity, MirrorActivityItem, MirrorActivityQuery};
use schemars::JsonSchema;
use serde::Serialize;

use crate::tool_call::ToolCall;
use crate::untrusted::{bounded_field, field, line, marked};

/// The most commands that one result reports, the newest ones.
const MAX_COMMANDS: usize = 3;
const MAX_COMMAND_CHARS: usize = 200;
const MAX_OUTPUT_CHARS: usize = 250;
/// How many commands to look at.
const LOOKED_AT: u32 = 50;

/// The commands of the person since the last result.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct PersonCommands {
    /// What the user ran in the terminal since your last look, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_commands: Vec<PersonCommand>,
    /// How many earlier commands of the user are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_commands_omitted: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PersonCommand {
    /// Null if the shell does not tell.
    command: Option<String>,
    cwd: Option<String>,
    exit_code: Option<i32>,
    /// The end of the output.
    output: String,
}

impl PersonCommands {
    /// The commands that no result has reported yet. The first result reports those since this server started.
    pub(super) async fn since_last_result(call: &ToolCall<'_>, pane: &str) -> Self {
        let socket = call.caller().await.ok().and_then(|caller| caller.socket);
        let socket = socket.or_else(|| Some(call.options.socket.clone()));
        let after = call.state.reported_command(pane);
        let query = MirrorActivityQuery {
            socket,
            pane: Some(pane.to_owned()),
            for_pane: None,
            after: Some(after.unwrap_or_default()),
            limit: Some(LOOKED_AT),
        };
        // The result of the command matters more than this.
        let Ok(activity) = call.daemon.get::<MirrorActivity>("/v1/mirrors/activity", &query).await else {
            return Self::default();
        };
        if let Some(newest) = activity.items.last() {
            call.state.set_reported_command(pane, newest.number);
        }
        let is_new = |item: &&MirrorActivityItem| after.is_some() || item.ended_at >= call.state.started_at;
        let new: Vec<&MirrorActivityItem> = activity.items.iter().filter(is_new).collect();
        let omitted = new.len().saturating_sub(MAX_COMMANDS);
        Self {
            user_commands: new[omitted..].iter().map(|item| describe(item)).collect(),
            user_commands_omitted: (omitted > 0).then_some(omitted),
        }
    }

    pub(super) fn text(&self) -> String {
        if self.user_commands.is_empty() {
            return String::new();
        }
        let omitted = self.user_commands_omitted.map(|omitted| format!(" ({omitted} earlier ones are not shown)"));
        let lines: Vec<String> = self.user_commands.iter().map(PersonCommand::text).collect();
        let lines = marked("commands of the user", &lines.join("\n"));
        format!("\n\nThe user ran these commands in the terminal{}:\n{lines}", omitted.unwrap_or_default())
    }
}

impl PersonCommand {
    fn text(&self) -> String {
        let cwd = self.cwd.as_deref().unwrap_or_default();
        let command = self.command.as_deref().unwrap_or("(a command that the shell does not tell)");
        let code = self.exit_code.map_or("unknown".to_owned(), |code| code.to_string());
        format!("{cwd} $ {command}\n{}\n[exit code {code}]", self.output)
    }
}

fn describe(item: &MirrorActivityItem) -> PersonCommand {
    let lines: Vec<String> = item.output.lines().map(line).collect();
    let clean = agtmux_core::redact::text(&lines.join("\n")).into_owned();
    let cut = clean.char_indices().rev().nth(MAX_OUTPUT_CHARS).map_or(0, |(at, c)| at + c.len_utf8());
    let output = if cut > 0 { format!("…{}", &clean[cut..]) } else { clean };
    PersonCommand {
        command: item.command.as_deref().map(|command| bounded_field(command, MAX_COMMAND_CHARS)),
        cwd: item.cwd.as_deref().map(field),
        exit_code: item.exit_code,
        output,
    }
}
