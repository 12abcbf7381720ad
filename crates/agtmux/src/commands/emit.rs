//! `agtmux emit`: reports an event about an agent to the daemon.

use std::path::{Path, PathBuf};

use agtmux_api::wire::{EventReceipt, EventReceiptStatus, EventSubmission};
use agtmux_client::DaemonClient;
use agtmux_core::evidence::Source;
use clap::Args;
use jiff::Timestamp;
use uuid::Uuid;

use crate::agent_registry;
use crate::error::{CliError, CliResult};
use crate::message::CliMessage;
use crate::{input, output};

#[derive(Debug, Args)]
#[command(
    after_help = "An event whose type is a state (running, waiting_input, waiting_approval, completed, idle, error) \
    sets that state. An event of another type changes the state only if the agent's manifest has a rule for that \
    type.\n\n\
    Exits with 0 when the daemon has accepted the event.\n\n\
    Example:\n  agtmux emit --pane %12 --source wrapper --event-type completed --dedupe-key build-42"
)]
pub(crate) struct EmitArgs {
    /// The agent's runtime id, as shown by `agtmux list panes --json`
    #[arg(long, conflicts_with_all = ["pane", "server"])]
    runtime: Option<String>,
    /// The pane of the agent, such as %12 [default: the current pane]
    #[arg(long)]
    pane: Option<String>,
    /// The socket name of the tmux server that has this pane
    #[arg(long)]
    server: Option<String>,
    /// The type of the agent
    #[arg(long)]
    agent: Option<String>,
    /// The process id of the agent
    #[arg(long)]
    pid: Option<u32>,
    /// The source of the event: hook, notify, wrapper, file, screen, title, process, osc or bell
    #[arg(long, value_parser = Source::parse)]
    source: Source,
    /// The type of the event: a state such as completed, or a name of your own
    #[arg(long)]
    event_type: String,
    /// A key for this event; a second event with the same key is ignored [default: a new key]
    #[arg(long)]
    dedupe_key: Option<String>,
    /// A number that increases with each event of this source. If an event has a lower number than an earlier event,
    /// agtmux stores the new event but does not apply it
    #[arg(long)]
    source_seq: Option<u64>,
    /// The time of the event, such as 2026-11-15T09:00:00Z [default: now]
    #[arg(long)]
    event_time: Option<Timestamp>,
    /// Read the event's payload from this JSON file; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<EmitArgs>) -> CliResult {
    let json = args.json;
    let event = event(*args)?;
    let body = serde_json::to_vec(&event).map_err(|error| CliError::io("write JSON", error))?;
    let answer = DaemonClient::from_env()?.post("/v1/events", body.into()).await?;
    warn_if_unknown(&event.event_type);
    output::answer(&answer, json, |receipt| vec![receipt_line(receipt)])
}

/// Prints a warning if the event type is neither the name of a state nor used in a rule of any agent. Such an event
/// changes no state.
fn warn_if_unknown(event_type: &str) {
    // Without a readable registry, it is not known which types have a rule.
    if agent_registry::load().is_ok_and(|registry| !registry.knows_event_type(event_type)) {
        CliMessage::new(format!("the event type '{event_type}' is unknown"))
            .because("the event is stored, but it does not change the state of an agent")
            .hint("agtmux emit --help   (lists the states)")
            .print_stderr();
    }
}

fn event(args: EmitArgs) -> CliResult<EventSubmission> {
    let here = || std::env::var("TMUX_PANE").ok().filter(|_| args.runtime.is_none());
    Ok(EventSubmission {
        pane: args.pane.clone().or_else(here),
        runtime_id: args.runtime.map(|id| id.trim_start_matches("runtime:").to_owned()),
        server: args.server,
        agent_type: args.agent,
        pid: args.pid,
        source: args.source.to_string(),
        event_type: args.event_type,
        dedupe_key: Some(args.dedupe_key.unwrap_or_else(|| Uuid::new_v4().to_string())),
        source_seq: args.source_seq,
        event_time: Some(args.event_time.unwrap_or_else(Timestamp::now)),
        payload: args.payload.as_deref().map(payload).transpose()?,
        ..EventSubmission::default()
    })
}

fn payload(path: &Path) -> CliResult<serde_json::Value> {
    serde_json::from_slice(&input::read(path)?).map_err(|error| {
        CliError::usage(format!("the payload in '{}' is not valid JSON: {error}", path.display()))
            .hint("omit --payload, or name a file with a JSON document")
    })
}

fn receipt_line(receipt: &EventReceipt) -> String {
    let runtime = receipt.runtime_id.as_deref().unwrap_or("unknown");
    match receipt.status {
        EventReceiptStatus::Bound => format!("{} accepted for runtime:{runtime}", receipt.event_id),
        EventReceiptStatus::PendingBind => {
            format!("{} stored; agtmux applies the event when its agent is found", receipt.event_id)
        }
        EventReceiptStatus::Duplicate => format!("{} is a duplicate", receipt.event_id),
    }
}
