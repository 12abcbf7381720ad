//! `agtmux mirror activity`: prints what the person did in the shared terminal.

use agtmux_api::wire::{MirrorActivity, MirrorActivityItem, MirrorActivityQuery};
use agtmux_client::{DaemonClient, StreamSignal};
use clap::Args;

use super::terminal_args::TerminalArgs;
use crate::commands::watch::stdout_watcher::StdoutWatcher;
use crate::error::{CliError, CliResult};
use crate::output;
use crate::quit_signals::QuitSignals;

#[derive(Debug, Args)]
#[command(
    after_help = "Shows each command with its directory, output and exit code. Commands run with `agtmux mirror exec` are not shown.\n\n\
    Example:\n  agtmux mirror activity --follow --json"
)]
pub(crate) struct MirrorActivityArgs {
    #[command(flatten)]
    terminal: TerminalArgs,
    /// Print each command when it ends
    #[arg(long, short)]
    follow: bool,
    /// Show only commands after the command with this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Show at most the newest N commands
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// Print JSON; with --follow, one line per command
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MirrorActivityArgs) -> CliResult {
    let terminal = args.terminal.resolve()?;
    let query = MirrorActivityQuery {
        socket: terminal.socket,
        pane: terminal.pane,
        for_pane: terminal.for_pane,
        after: args.after,
        limit: Some(args.limit),
    };
    let daemon = DaemonClient::from_env()?;
    if args.follow {
        return follow(&daemon, query, args.json).await;
    }
    let answer = daemon.get_bytes("/v1/mirrors/activity", &query).await?;
    output::answer(&answer, args.json, |activity: &MirrorActivity| activity.items.iter().flat_map(lines).collect())
}

fn lines(item: &MirrorActivityItem) -> Vec<String> {
    item.text.lines().map(str::to_owned).collect()
}

async fn follow(daemon: &DaemonClient, query: MirrorActivityQuery, json: bool) -> CliResult {
    let (mut quit, mut reader) = (QuitSignals::new()?, StdoutWatcher::start());
    // The start position must be known, or commands during a restart of the daemon would be missed.
    let after = match query.after {
        Some(after) => after,
        None => {
            let newest = MirrorActivityQuery { limit: Some(1), ..query.clone() };
            let newest: MirrorActivity = daemon.get("/v1/mirrors/activity", &newest).await?;
            newest.items.last().map_or(0, |item| item.number)
        }
    };
    let mut items = daemon.follow::<MirrorActivityItem>("/v1/mirrors/activity/stream", query, Some(after));
    loop {
        tokio::select! {
            exit = quit.received() => return Err(CliError::silent(exit)),
            () = reader.closed() => return Ok(()),
            signal = items.next() => match signal? {
                StreamSignal::Event(item) if json => output::json(&item)?,
                StreamSignal::Event(item) => output::lines(lines(&item))?,
                StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
            },
        }
    }
}
