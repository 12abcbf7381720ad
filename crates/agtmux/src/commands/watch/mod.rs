//! `agtmux watch`: follows changes as a table or as JSON lines.

mod coalesce;
mod jsonl;
mod keys;
mod screen;
mod since;
pub(crate) mod stdout_watcher;

pub(crate) use since::parse_since;

mod table;

use std::time::Duration;

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{ListQuery, ListScope};
use agtmux_client::DaemonClient;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::filters::FilterArgs;
use super::sort::{PaneSort, orders};
use crate::error::{CliError, CliExit};
use crate::jq::JqFilter;
use crate::terminal::StdoutTerminal;

const DEFAULT_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Follow panes, windows, sessions or targets (hosts)
    #[arg(long, default_value = "panes", value_parser = scopes())]
    scope: ListScope,
    /// Sort the table of panes by attention (waiting agents first), place (position in tmux), age (time in the state)
    /// or name (agent type, then name)
    #[arg(long, value_name = "ORDER", default_value = "attention", value_parser = orders())]
    sort: PaneSort,
    /// The output format [default: table on a terminal, jsonl in a pipe]
    #[arg(long, value_enum)]
    format: Option<WatchFormat>,
    /// Filter each line with this jq expression; print strings without quotes. Implies --format jsonl
    #[arg(long, value_name = "FILTER", value_parser = JqFilter::parse)]
    jq: Option<JqFilter>,
    /// Show changes at most once per DURATION; if an item changed several times, show only its last change [default:
    /// 200ms for table, none for jsonl]
    #[arg(long, value_name = "DURATION")]
    interval: Option<ConfigDuration>,
    /// At the start, show only items that changed since this time (2026-11-15T09:00:00Z) or within this duration (10m).
    /// Later changes are always shown
    #[arg(long, value_name = "TIME", value_parser = since::parse_since)]
    since: Option<Timestamp>,
    /// Print the current items and exit
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WatchFormat {
    Table,
    Jsonl,
}

/// The options of `agtmux watch`, without the output format.
#[derive(Debug)]
struct WatchPlan {
    daemon: DaemonClient,
    scope: ListScope,
    sort: PaneSort,
    query: ListQuery,
    since: Option<Timestamp>,
    interval: Option<Duration>,
}

pub(crate) async fn run(args: WatchArgs) -> Result<CliExit, CliError> {
    let is_table = StdoutTerminal::detect().is_tty && args.jq.is_none();
    let default = if is_table { WatchFormat::Table } else { WatchFormat::Jsonl };
    if args.jq.is_some() && args.format == Some(WatchFormat::Table) {
        let error = CliError::usage("--jq filters JSON, so it cannot be combined with --format table");
        return Err(error.hint("agtmux watch --format jsonl --jq FILTER"));
    }
    let plan = WatchPlan {
        daemon: DaemonClient::from_env()?,
        scope: args.scope,
        sort: args.sort,
        query: ListQuery { scope: Some(args.scope), ..args.filters.query() },
        since: args.since,
        interval: args.interval.map(|span| span.0),
    };
    match (args.format.unwrap_or(default), args.once) {
        (WatchFormat::Jsonl, true) => jsonl::once(&plan).await,
        (WatchFormat::Jsonl, false) => jsonl::follow(plan).await,
        (WatchFormat::Table, true) => table::once(&plan).await,
        (WatchFormat::Table, false) => table::follow(plan).await,
    }
}

fn scopes() -> impl TypedValueParser<Value = ListScope> {
    let all = [ListScope::Panes, ListScope::Windows, ListScope::Sessions, ListScope::Targets];
    PossibleValuesParser::new(all.map(ListScope::as_str))
        .map(move |word| all.into_iter().find(|scope| scope.as_str() == word).unwrap_or_default())
}
