//! `agtmux list`: lists panes, windows or sessions.

mod empty;

use agtmux_api::wire::{ListQuery, ListResponse, ListScope, PaneItem, SessionGrouping, SessionItem, WindowItem};
use agtmux_client::{DaemonClient, parse};
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use super::filters::FilterArgs;
use super::sort::{PaneSort, orders};
use crate::choices::one_of;
use crate::error::CliResult;
use crate::output;
use crate::render::{self, TextTable};
use crate::terminal::StdoutTerminal;

#[derive(Debug, Default, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  agtmux list --needs-action\n  agtmux list sessions --agent-summary"
)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    what: Option<ListCommand>,
    /// Used without a subcommand.
    #[command(flatten)]
    panes: PanesArgs,
}

#[derive(Debug, Subcommand)]
enum ListCommand {
    /// List the panes in which an agent runs, or all panes
    Panes(PanesArgs),
    /// List windows with the number of their agents and the most urgent state
    Windows(WindowsArgs),
    /// List sessions and the number of their panes and agents
    Sessions(SessionsArgs),
}

#[derive(Debug, Default, Args)]
struct PanesArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Sort the table: waiting agents first, by place in tmux, by time in the state, or by agent
    #[arg(long, value_name = "ORDER", default_value = "attention", value_parser = orders())]
    sort: PaneSort,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct WindowsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Accepted for compatibility: the states are always shown
    #[arg(long = "with-agent-status", hide = true)]
    _with_agent_status: bool,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

const GROUPINGS: [(&str, SessionGrouping); 2] =
    [("target-session", SessionGrouping::TargetSession), ("session-name", SessionGrouping::SessionName)];

#[derive(Debug, Args)]
struct SessionsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Show how many agents of each session are waiting, running or idle. JSON always includes this
    #[arg(long)]
    agent_summary: bool,
    /// Group by session of a target, or merge sessions with the same name
    #[arg(long, value_name = "GROUPING", default_value = GROUPINGS[0].0, value_parser = one_of(GROUPINGS))]
    group_by: SessionGrouping,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ListArgs) -> CliResult {
    match args.what.unwrap_or(ListCommand::Panes(args.panes)) {
        ListCommand::Panes(args) => {
            let table = |list: &ListResponse<PaneItem>| {
                let mut panes: Vec<&PaneItem> = list.items.iter().collect();
                args.sort.sort(&mut panes);
                render::panes(&panes, list.generated_at)
            };
            show(ListScope::Panes, &args.filters.query(), args.json, table).await
        }
        ListCommand::Windows(args) => {
            let table = |list: &ListResponse<WindowItem>| render::windows(&list.items);
            show(ListScope::Windows, &args.filters.query(), args.json, table).await
        }
        ListCommand::Sessions(args) => {
            let query = ListQuery { group_by: Some(args.group_by), ..args.filters.query() };
            let table = |list: &ListResponse<SessionItem>| render::sessions(&list.items, args.agent_summary);
            show(ListScope::Sessions, &query, args.json, table).await
        }
    }
}

/// Requests the list and prints it as JSON or as a table.
async fn show<T: DeserializeOwned>(
    scope: ListScope,
    query: &ListQuery,
    json: bool,
    table: impl FnOnce(&ListResponse<T>) -> TextTable,
) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let bytes = daemon.get_bytes(&format!("/v1/{scope}"), query).await?;
    if json {
        return output::json_answer(&bytes);
    }
    let listing: ListResponse<T> = parse(&bytes)?;
    listing.target_errors.iter().for_each(|error| render::target_error(error).print_stderr());
    if listing.items.is_empty() {
        let health = daemon.get("/v1/health", &ListQuery::default()).await?;
        empty::explain(scope, &listing.filters, &health).print_stderr();
        return Ok(());
    }
    let terminal = StdoutTerminal::detect();
    let mut lines = table(&listing).lines(&terminal);
    if terminal.is_tty {
        lines.push(String::new());
        lines.push(render::summary_line(&listing.summary, terminal.colour));
    }
    output::styled_lines(&lines)
}
