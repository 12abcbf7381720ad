//! `agtmux broadcast`: sends one text to several agents, one after the other.

use std::collections::BTreeSet;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ActionGuards, ActionOutcome, ListResponse, PaneItem, SendAction, SendReport, Verification};
use agtmux_client::{DaemonClient, parse};
use clap::{ArgGroup, Args};
use serde::Serialize;
use serde_json::json;

use super::filters::FilterArgs;
use super::guards::CLIENT_NAME;
use super::send::outcome_line;
use super::text_args::TextArgs;
use crate::error::{CliError, CliExit, CliResult};
use crate::{input, message, output};

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["text", "stdin", "file"]).required(true)),
    after_help = "\
Shows the agents that match the filters and asks before it sends. An agent gets the text only if it is still the agent, \
and still in the state, that was shown. Each delivery is verified as with `agtmux send`.

Exit codes:
  0  every agent got the text, with proof
  1  you did not confirm, no agent matches, or a delivery failed or could not be verified
  2  confirmation is needed, but there is no terminal to ask on

Examples:
  agtmux broadcast --state idle --agent claude --text 'git pull, then run the tests'
  agtmux broadcast --session api --state idle,completed --file notice.md --yes"
)]
pub(crate) struct BroadcastArgs {
    #[command(flatten)]
    filters: FilterArgs,
    #[command(flatten)]
    text: TextArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Delivered {
    runtime_id: String,
    agent_type: Option<String>,
    pane_id: String,
    target: String,
    sent: Option<SendReport>,
    error: Option<String>,
}

pub(crate) async fn run(args: BroadcastArgs) -> CliResult {
    let text = args.text.read()?;
    let daemon = DaemonClient::from_env()?;
    let listing: ListResponse<PaneItem> = daemon.get("/v1/panes", &args.filters.query()).await?;
    let receivers = receivers(&listing.items);
    if receivers.is_empty() {
        return Err(CliError::failed("no agent matches, so nothing was sent").hint("agtmux list panes"));
    }
    if !args.yes {
        receivers.iter().for_each(|item| message::line(&receiver_line(item)));
        let question = format!("send the text to these {} agents?", receivers.len());
        input::require_confirmation(&question, "agtmux broadcast … --yes")?;
    }
    let mut delivered = Vec::new();
    for item in receivers {
        let one = deliver(&daemon, item, text.as_deref()).await;
        if !args.json {
            print_delivery(&one)?;
        }
        delivered.push(one.0);
    }
    if args.json {
        output::json(&json!({"schema_version": SCHEMA_VERSION, "items": delivered}))?;
    }
    let is_confirmed = |one: &Delivered| one.sent.as_ref().is_some_and(|sent| sent.verified == Verification::Confirmed);
    if delivered.iter().all(is_confirmed) { Ok(()) } else { CliExit::Failed.into_result() }
}

/// Each agent once, even if several sessions contain its pane.
fn receivers(items: &[PaneItem]) -> Vec<&PaneItem> {
    let mut seen = BTreeSet::new();
    let is_new = |item: &&PaneItem| item.runtime_id.as_ref().is_some_and(|id| seen.insert(id.clone()));
    items.iter().filter(is_new).collect()
}

fn receiver_line(item: &PaneItem) -> String {
    let id = &item.identity;
    let agent = item.agent_type.as_ref().map(ToString::to_string).unwrap_or_default();
    let name = item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let state = item.state.map_or("", |state| state.as_str());
    format!("{agent}{name}  {state}  {} {}@{} {}", id.pane_id, id.target, id.server, id.session_name)
}

async fn deliver(
    daemon: &DaemonClient,
    item: &PaneItem,
    text: Option<&str>,
) -> (Delivered, Option<ActionOutcome<SendReport>>) {
    let runtime_id = item.runtime_id.clone().unwrap_or_default();
    let guards = ActionGuards {
        r#ref: format!("runtime:{runtime_id}"),
        if_runtime: Some(runtime_id.clone()),
        if_state: item.state,
        client: Some(CLIENT_NAME.into()),
        ..ActionGuards::default()
    };
    let send = SendAction { guards, text: text.map(str::to_owned), ..SendAction::default() };
    let sent = match daemon.act("/v1/actions/send", &send).await {
        Ok(answer) => parse::<ActionOutcome<SendReport>>(&answer).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let delivered = Delivered {
        runtime_id,
        agent_type: item.agent_type.as_ref().map(ToString::to_string),
        pane_id: item.identity.pane_id.to_string(),
        target: item.identity.target.clone(),
        sent: sent.as_ref().ok().map(|done| done.report.clone()),
        error: sent.as_ref().err().cloned(),
    };
    (delivered, sent.ok())
}

fn print_delivery((delivered, outcome): &(Delivered, Option<ActionOutcome<SendReport>>)) -> CliResult {
    match outcome {
        Some(done) => output::line(&outcome_line(done)),
        None => {
            let why = delivered.error.as_deref().unwrap_or("no reason is known");
            message::line(&format!("{} on {}: {why}", delivered.pane_id, delivered.target));
            Ok(())
        }
    }
}
