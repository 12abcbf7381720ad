//! `agtmux inbox`: the waiting agents, one after the other.

use std::collections::BTreeSet;

use agtmux_api::wire::{ActionGuards, ActionOutcome, DialogAnswer, ListQuery, ListResponse, PaneItem};
use agtmux_api::wire::{RespondAction, RespondReport, Verification};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::dialog::Dialog;
use agtmux_core::state::State;
use clap::Args;
use jiff::Timestamp;

use super::guards::CLIENT_NAME;
use super::{interface, respond};
use crate::error::CliResult;
use crate::render::age;
use crate::{input, output};

const PROMPT: &str = "answer with approve, deny, a number or 'text …'; Enter skips, q quits:";

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  no agent is left, or you quit
  5  the daemon did not answer

Examples:
  agtmux inbox
  agtmux inbox --plain")]
pub(crate) struct InboxArgs {
    /// Print plain lines, for screen readers and pipes, and read each answer from stdin. The cursor never moves up, and no boxes are
    /// drawn
    #[arg(long)]
    plain: bool,
}

pub(crate) async fn run(args: InboxArgs) -> CliResult {
    match args.plain || !interface::is_possible() {
        true => plain().await,
        false => interface::run(true).await,
    }
}

/// Shows each waiting agent once. A new dialog of the same agent counts as another one.
async fn plain() -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let mut shown = BTreeSet::new();
    loop {
        let waiting = waiting(&daemon).await?;
        let left: Vec<&PaneItem> = waiting.iter().filter(|item| !shown.contains(&dialog_key(item))).collect();
        let Some(item) = left.first() else {
            return output::line(if waiting.is_empty() { "no agent waits" } else { "no other agent waits" });
        };
        shown.insert(dialog_key(item));
        if !answer_item(&daemon, item, left.len()).await? {
            return Ok(());
        }
    }
}

/// The agents with an open dialog, the one that has waited for longest first. Each agent is listed once.
async fn waiting(daemon: &DaemonClient) -> CliResult<Vec<PaneItem>> {
    let query = ListQuery { needs_action: true, ..ListQuery::default() };
    let mut items = daemon.get::<ListResponse<PaneItem>>("/v1/panes", &query).await?.items;
    items.retain(|item| item.dialog.is_some() && item.state.is_some_and(State::is_waiting));
    items.sort_by(|a, b| a.attention_order().cmp(&b.attention_order()));
    let mut seen = BTreeSet::new();
    items.retain(|item| seen.insert(item.runtime_id.clone()));
    Ok(items)
}

fn dialog_key(item: &PaneItem) -> (Option<String>, Option<String>) {
    (item.runtime_id.clone(), item.dialog.as_ref().map(|dialog| dialog.fingerprint.clone()))
}

/// Shows a dialog and answers it. Returns false if the person quits.
async fn answer_item(daemon: &DaemonClient, item: &PaneItem, left: usize) -> CliResult<bool> {
    let Some(dialog) = &item.dialog else { return Ok(true) };
    output::lines(item_lines(item, dialog, left))?;
    loop {
        output::line(PROMPT)?;
        let line = match input::line()? {
            Some(line) if line == "q" => return Ok(false),
            Some(line) if line.is_empty() => return Ok(true),
            Some(line) => line,
            None => return Ok(false),
        };
        match parsed(&line) {
            Ok(answer) => return give(daemon, item, dialog, answer).await.map(|()| true),
            Err(why) => output::line(&why)?,
        }
    }
}

fn parsed(line: &str) -> Result<DialogAnswer, String> {
    match line.strip_prefix("text ") {
        Some(text) => Ok(DialogAnswer::Text(text.trim().to_owned())),
        None => respond::parse_answer(line),
    }
}

fn item_lines(item: &PaneItem, dialog: &Dialog, left: usize) -> Vec<String> {
    let id = &item.identity;
    let agent = item.agent_type.as_ref().map_or("agent", |agent| agent.as_str());
    let name = item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let since = item.since.map(|since| format!(" for {}", age::age(since, Timestamp::now()))).unwrap_or_default();
    let state = item.state.map_or("", |state| state.as_str());
    let place = format!("{}:{}.{} on {}", id.session_name, item.window_index, item.pane_index, id.target);
    let head = format!("{left} left: {agent}{name} in {place}, {state}{since}");
    let directory = item.cwd.iter().map(|cwd| format!("directory {cwd}"));
    [head].into_iter().chain(directory).chain(respond::dialog_lines("asks", dialog)).collect()
}

/// Answers the dialog that was shown. A refusal is printed, and the next agent follows.
async fn give(daemon: &DaemonClient, item: &PaneItem, dialog: &Dialog, answer: DialogAnswer) -> CliResult {
    let runtime = item.runtime_id.clone().unwrap_or_default();
    let guards = ActionGuards {
        r#ref: format!("runtime:{runtime}"),
        if_runtime: Some(runtime),
        if_dialog: Some(dialog.fingerprint.clone()),
        client: Some(CLIENT_NAME.into()),
        ..ActionGuards::default()
    };
    let action = RespondAction { guards, answer, accept_truncated: false };
    let reply = match daemon.act("/v1/actions/respond", &action).await {
        Ok(reply) => reply,
        Err(error) if error.code().is_some() => return output::line(&format!("not answered: {error}")),
        Err(error) => return Err(error.into()),
    };
    let done: ActionOutcome<RespondReport> = parse(&reply)?;
    output::line(&match done.report.verified {
        Verification::Failed => "the keys were typed, but the dialog is still open".to_owned(),
        _ => format!("answered {}", done.report.answered),
    })
}
