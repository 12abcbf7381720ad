//! `agtmux watch`

mod coalesce;
mod jsonl;
mod keys;
pub(crate) mod reader;
mod screen;
mod since;

pub(crate) use since::parse as since_when;

mod snapshot;
pub(crate) mod stream;
mod table;

use std::time::Duration;

use agtmux_api::config::Span;
use agtmux_api::wire::{ListQuery, Scope};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::filters::FilterArgs;
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::terminal::Terminal;

const DEFAULT_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// What to follow
    #[arg(long, default_value = "panes", value_parser = scopes())]
    scope: Scope,
    /// How to show it: a table by default on a terminal, jsonl in a pipe
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Show changes at most this often; of several changes of one item the last counts. [default: 200ms for the table,
    /// none for jsonl]
    #[arg(long, value_name = "DURATION")]
    interval: Option<Span>,
    /// Leave out what is there at the beginning but has not changed since then: a time such as 2026-11-15T09:00:00Z, or
    /// how long ago, such as 10m
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    since: Option<Timestamp>,
    /// Show what is there and exit
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Jsonl,
}

/// What is to be watched, as opposed to what was typed.
#[derive(Debug)]
struct Plan {
    daemon: Daemon,
    scope: Scope,
    query: ListQuery,
    since: Option<Timestamp>,
    interval: Option<Duration>,
}

pub(crate) async fn run(args: WatchArgs) -> Result<Exit, CliError> {
    let default = if Terminal::of_stdout().is_tty { Format::Table } else { Format::Jsonl };
    let plan = Plan {
        daemon: Daemon::from_env()?,
        scope: args.scope,
        query: ListQuery { scope: Some(args.scope), ..args.filters.query() },
        since: args.since,
        interval: args.interval.map(|span| span.0),
    };
    match (args.format.unwrap_or(default), args.once) {
        (Format::Jsonl, true) => jsonl::once(&plan).await,
        (Format::Jsonl, false) => jsonl::follow(plan).await,
        (Format::Table, true) => table::once(&plan).await,
        (Format::Table, false) => table::follow(plan).await,
    }
}

fn scopes() -> impl TypedValueParser<Value = Scope> {
    let all = [Scope::Panes, Scope::Windows, Scope::Sessions];
    PossibleValuesParser::new(all.map(Scope::as_str))
        .map(move |word| all.into_iter().find(|scope| scope.as_str() == word).unwrap_or_default())
}
