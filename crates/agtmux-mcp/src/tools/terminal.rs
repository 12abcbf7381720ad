//! The shared terminal of the client, and the commands that run in it.

use std::path::Path;

use agtmux_api::wire::{
    CallerReport, MirrorCancelRequest, MirrorCommand, MirrorCommandQuery, MirrorCommandStatus, MirrorQuery,
    MirrorStreamItem,
};
use agtmux_client::StreamSignal;
use agtmux_core::mirror::MirrorMethod;
use agtmux_core::text;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::is_false;
use super::person_commands::PersonCommands;
use crate::answer::ToolError;
use crate::excerpt::{Excerpt, OutputCollector};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, field};

/// How many characters of output a command's result contains by default. The commands of the person need room, too.
pub(super) const COMMAND_CHARS: usize = 7000;

/// A command in the shared terminal, and its output so far.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommandFacts {
    /// `ended`; `still_running`: call read_terminal with this command_id; `lost`: the terminal was closed, the result is
    /// unknown.
    pub(super) status: &'static str,
    pub(super) command_id: String,
    /// The pane of the shared terminal.
    pub(super) pane: String,
    /// Null while the command runs, or if the shell does not report it.
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    /// The directory of the shell after the command.
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Whether the command was interrupted at its timeout.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) timed_out: bool,
    /// How to treat the output, and the commands of the user.
    pub(super) untrusted: &'static str,
    pub(super) output: Excerpt,
    /// For a running command: pass this as `offset` to read_terminal, to get only new output.
    pub(super) read_so_far: u64,
    /// What the user ran in the terminal since your last look.
    #[serde(flatten)]
    pub(super) person: PersonCommands,
}

/// The directory of a command as an absolute path.
pub(super) fn directory(call: &ToolCall<'_>, given: Option<&str>) -> Result<String, ToolError> {
    let dir = given.map_or_else(|| call.options.dir.clone(), |dir| call.options.dir.join(Path::new(dir)));
    if !dir.is_dir() {
        return Err(ToolError::new(format!("cwd: '{}' is not a directory", field(&dir.to_string_lossy()))));
    }
    dir.into_os_string().into_string().map_err(|_| ToolError::new("the path of the directory is not UTF-8"))
}

/// The shared terminal that the client names, that the environment names, or that belongs to the client's pane.
pub(super) async fn terminal(call: &ToolCall<'_>, given: Option<String>) -> Result<MirrorQuery, ToolError> {
    let CallerReport { socket, pane_id, .. } = call.caller().await?;
    match given.or_else(|| call.options.terminal.clone()) {
        Some(pane) => {
            let socket = socket.or_else(|| Some(call.options.socket.clone()));
            Ok(MirrorQuery { socket, pane: Some(pane), for_pane: pane_id })
        }
        None if pane_id.is_some() => Ok(MirrorQuery { socket, pane: None, for_pane: pane_id }),
        None => Err(ToolError::new("a shared terminal needs tmux, and this agent does not run in a tmux pane")
            .with_hint("use run_task, or ask the user to start this agent in tmux")),
    }
}

/// Follows a command until it ends or the deadline passes. Interrupts the command if the client cancels the call.
pub(super) async fn follow_command(
    call: &ToolCall<'_>,
    command_id: &str,
    mut collected: OutputCollector,
    deadline: Instant,
    max_chars: usize,
) -> Result<CommandFacts, ToolError> {
    let followed = timeout_at(deadline, read_stream(call, command_id, &mut collected));
    let ended = tokio::select! {
        ended = followed => ended.ok().transpose()?,
        () = call.cancelled() => {
            let request = MirrorCancelRequest { command_id: command_id.to_owned() };
            let _ = call.daemon.act("/v1/mirrors/cancel", &request).await;
            return Err(ToolError::new("the call was cancelled; the command was interrupted with Ctrl-C"));
        }
    };
    let command = match ended {
        Some(command) => command,
        None => {
            let command_id = command_id.to_owned();
            let query = MirrorCommandQuery { command_id, max_bytes: Some(0), ..MirrorCommandQuery::default() };
            call.daemon.get("/v1/mirrors/command", &query).await?
        }
    };
    let person = PersonCommands::since_last_result(call, &command.pane_id.to_string()).await;
    Ok(facts(&command, &collected, max_chars, person))
}

async fn read_stream(
    call: &ToolCall<'_>,
    command_id: &str,
    collected: &mut OutputCollector,
) -> Result<MirrorCommand, ToolError> {
    let query = MirrorCommandQuery { command_id: command_id.to_owned(), ..MirrorCommandQuery::default() };
    let mut items = call.daemon.follow::<MirrorStreamItem>("/v1/mirrors/command/stream", query, None);
    loop {
        match items.next().await? {
            StreamSignal::Event(MirrorStreamItem::Output(part)) => collected.push(&text::to_bytes(&part)),
            StreamSignal::Event(MirrorStreamItem::Ended(command)) => return Ok(*command),
            StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
        }
    }
}

fn facts(
    command: &MirrorCommand,
    collected: &OutputCollector,
    max_chars: usize,
    person: PersonCommands,
) -> CommandFacts {
    let is_over = command.status != MirrorCommandStatus::Running || command.exit_code.is_some();
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: &str| notes.extend(applies.then(|| text.to_owned()));
    let running = command.status == MirrorCommandStatus::Running;
    note(command.timed_out && running, "the command timed out and still runs after Ctrl-C");
    note(command.timed_out && !running, "the command timed out and was interrupted with Ctrl-C");
    note(command.cancelled, "the command was interrupted with Ctrl-C");
    note(command.full_screen, "the command used the full screen; what it drew is not in the output");
    let by_screen = command.method == MirrorMethod::Screen;
    note(by_screen, "the output was read from the screen, so it may differ in blanks");
    CommandFacts {
        status: match (command.status, is_over) {
            (MirrorCommandStatus::Lost, _) => "lost",
            (_, true) => "ended",
            (_, false) => "still_running",
        },
        command_id: command.command_id.clone(),
        pane: command.pane_id.to_string(),
        exit_code: command.exit_code,
        duration_ms: command.duration_ms,
        cwd: command.cwd.as_deref().map(field),
        notes,
        timed_out: command.timed_out,
        untrusted: untrusted::NOTICE,
        output: collected
            .excerpt(max_chars)
            .explained(&format!("call read_terminal with command_id=\"{}\" and", command.command_id)),
        read_so_far: collected.total(),
        person,
    }
}

impl CommandFacts {
    pub(super) fn text(&self) -> String {
        let CommandFacts { command_id, read_so_far, .. } = self;
        let mut text = match (self.status, self.exit_code) {
            ("still_running", _) => format!(
                "still_running in pane {}. Call read_terminal with command_id=\"{command_id}\" and offset={read_so_far} \
                 to wait for its end.",
                self.pane
            ),
            ("lost", _) => "The shared terminal was closed; the result of the command is unknown.".to_owned(),
            (_, Some(code)) => format!("Exit code {code}"),
            (_, None) => "Ended; the shell did not report the exit code".to_owned(),
        };
        if self.status == "ended" {
            let seconds = self.duration_ms.map(|ms| format!(" after {:.1} s", ms as f64 / 1000.0));
            let cwd = self.cwd.as_ref().map(|cwd| format!(", in {cwd}"));
            text.push_str(&format!("{}{}.", seconds.unwrap_or_default(), cwd.unwrap_or_default()));
        }
        for note in &self.notes {
            text.push_str(&format!("\nNote: {note}."));
        }
        let output = self.output.text(&format!("command in pane {}", self.pane));
        text.push_str(&format!("\n{}\n{output}{}", self.untrusted, self.person.text()));
        text
    }
}
