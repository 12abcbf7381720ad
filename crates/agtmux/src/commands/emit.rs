//! `agtmux emit`: an event for the daemon, from whoever knows something about an agent.

use std::io::Read;
use std::path::{Path, PathBuf};

use agtmux_api::wire::{EventReceipt, EventReceiptStatus, EventSubmission};
use agtmux_core::evidence::Source;
use clap::Args;
use jiff::Timestamp;

use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

/// The daemon takes no more than this; reading more is of no use.
const MAX_PAYLOAD: u64 = 1 << 20;

#[derive(Debug, Args)]
#[command(
    after_help = "An event whose type is a state (running, waiting_input, waiting_approval, completed, idle, error) \
    sets it; other types are kept and change nothing. Exits with 0 when the event was taken."
)]
pub(crate) struct EmitArgs {
    /// The agent's runtime, as `agtmux list panes --json` shows it
    #[arg(long, conflicts_with_all = ["pane", "server"])]
    runtime: Option<String>,
    /// The pane it is about, as %12; the one you are in when left out
    #[arg(long)]
    pane: Option<String>,
    /// The tmux server of that pane, by the name of its socket
    #[arg(long)]
    server: Option<String>,
    /// The kind of agent that is meant
    #[arg(long)]
    agent: Option<String>,
    /// The agent's process
    #[arg(long)]
    pid: Option<u32>,
    /// Where it comes from: hook, notify, wrapper, file, screen, title, process, osc or bell
    #[arg(long, value_parser = Source::parse)]
    source: Source,
    /// What happened
    #[arg(long)]
    event_type: String,
    /// The same key twice is the same event
    #[arg(long)]
    dedupe_key: String,
    /// The source's own count: the higher is the newer
    #[arg(long)]
    source_seq: Option<u64>,
    /// When it happened, as 2026-11-15T09:00:00Z; now when left out
    #[arg(long)]
    event_time: Option<Timestamp>,
    /// A JSON document with the details, `-` for stdin
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Print what became of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<EmitArgs>) -> Result<CliExit, CliError> {
    let json = args.json;
    let event = event(*args)?;
    let body = serde_json::to_vec(&event).map_err(|error| CliError::io("write JSON", error))?;
    let answer = DaemonClient::from_env()?.post("/v1/events", body.into()).await?;
    if json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let receipt: EventReceipt = parse(&answer)?;
    output::line(receipt_line(&receipt).as_bytes())?;
    Ok(CliExit::Ok)
}

fn event(args: EmitArgs) -> Result<EventSubmission, CliError> {
    let here = || std::env::var("TMUX_PANE").ok().filter(|_| args.runtime.is_none());
    Ok(EventSubmission {
        pane: args.pane.clone().or_else(here),
        runtime_id: args.runtime.map(|id| id.trim_start_matches("runtime:").to_owned()),
        server: args.server,
        agent_type: args.agent,
        pid: args.pid,
        source: args.source.to_string(),
        event_type: args.event_type,
        dedupe_key: Some(args.dedupe_key),
        source_seq: args.source_seq,
        event_time: Some(args.event_time.unwrap_or_else(Timestamp::now)),
        payload: args.payload.as_deref().map(payload).transpose()?,
        ..EventSubmission::default()
    })
}

fn payload(path: &Path) -> Result<serde_json::Value, CliError> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_PAYLOAD + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_PAYLOAD + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| CliError::io(&format!("read '{}'", path.display()), error))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = CliMessage::new(format!("the payload in '{}' is no JSON: {error}", path.display()));
        CliError::new(CliExit::Usage, message.hint("leave --payload out, or give it a JSON document"))
    })
}

fn receipt_line(receipt: &EventReceipt) -> String {
    let runtime = receipt.runtime_id.as_deref().unwrap_or("no runtime yet");
    match receipt.status {
        EventReceiptStatus::Bound => format!("{} taken for runtime:{runtime}", receipt.event_id),
        EventReceiptStatus::PendingBind => format!("{} waits for its agent to be seen", receipt.event_id),
        EventReceiptStatus::Duplicate => format!("{} was there already", receipt.event_id),
    }
}
