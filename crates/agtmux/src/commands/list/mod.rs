//! `agtmux list`: lists panes, windows or sessions.

mod empty;
mod format;

use agtmux_api::wire::{ListQuery, ListResponse, ListScope, PaneItem, SessionGrouping, SessionItem, WindowItem};
use agtmux_client::{DaemonClient, parse};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

pub(crate) use self::format::format_variables;
use self::format::{FormatItem, ItemFormat};
use super::filters::{FilterArgs, GroupFilterArgs};
use super::resume_all;
use super::sort::{PaneSort, orders};
use crate::choices::one_of;
use crate::error::CliResult;
use crate::output;
use crate::render::{self, TextTable};
use crate::terminal::StdoutTerminal;

#[derive(Debug, Default, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  agtmux list --needs-action\n  agtmux list sessions --agent-summary\n  \
    agtmux list -F '#{session_name}:#{window_index} #{agtmux_state}'"
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
    /// Sort the table by attention (waiting agents first), place (position in tmux), age (time in the state) or name
    /// (agent type, then name)
    #[arg(long, value_name = "ORDER", default_value = "attention", value_parser = orders())]
    sort: PaneSort,
    /// Print one line per pane in this format. `#{NAME}` is a variable, as in tmux. If a name is unknown,
    /// agtmux prints the known names
    #[arg(short = 'F', long, value_name = "FORMAT", conflicts_with = "json", value_parser = ItemFormat::<PaneItem>::parse)]
    format: Option<ItemFormat<PaneItem>>,
    /// List the agents of this machine that have ended, instead of panes
    #[arg(long, conflicts_with_all = ["format", "all", "state", "agent", "needs_action"])]
    ended: bool,
    /// Print the daemon's response as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct WindowsArgs {
    #[command(flatten)]
    filters: GroupFilterArgs,
    /// Accepted for compatibility: the states are always shown
    #[arg(long = "with-agent-status", hide = true)]
    _with_agent_status: bool,
    /// Print one line per window in this format. `#{NAME}` is a variable, as in tmux. If a name is unknown,
    /// agtmux prints the known names
    #[arg(short = 'F', long, value_name = "FORMAT", conflicts_with = "json", value_parser = ItemFormat::<WindowItem>::parse)]
    format: Option<ItemFormat<WindowItem>>,
    /// Print the daemon's response as JSON
    #[arg(long)]
    json: bool,
}

const GROUPINGS: [(&str, SessionGrouping); 2] =
    [("target-session", SessionGrouping::TargetSession), ("session-name", SessionGrouping::SessionName)];

#[derive(Debug, Args)]
struct SessionsArgs {
    #[command(flatten)]
    filters: GroupFilterArgs,
    /// Show how many agents of each session are waiting, running or idle. The JSON always has these numbers
    #[arg(long)]
    agent_summary: bool,
    /// Show one row per session of each target, or one row for all sessions with the same name
    #[arg(long, value_name = "GROUPING", default_value = GROUPINGS[0].0, value_parser = one_of(GROUPINGS))]
    group_by: SessionGrouping,
    /// Print one line per session in this format. `#{NAME}` is a variable, as in tmux. If a name is unknown,
    /// agtmux prints the known names
    #[arg(short = 'F', long, value_name = "FORMAT", conflicts_with = "json", value_parser = ItemFormat::<SessionItem>::parse)]
    format: Option<ItemFormat<SessionItem>>,
    /// Print the daemon's response as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ListArgs) -> CliResult {
    match args.what.unwrap_or(ListCommand::Panes(args.panes)) {
        ListCommand::Panes(args) if args.ended => resume_all::list_ended(args.json).await,
        ListCommand::Panes(args) => {
            let table = |panes: &[PaneItem], now| render::panes(panes, now);
            let form = ListForm { json: args.json, format: args.format, table };
            let sort = |panes: &mut [PaneItem]| args.sort.sort(panes);
            show(ListScope::Panes, &args.filters.query(), form, sort).await
        }
        ListCommand::Windows(args) => {
            let table = |windows: &[WindowItem], _| render::windows(windows);
            let form = ListForm { json: args.json, format: args.format, table };
            show(ListScope::Windows, &args.filters.query(), form, |_| {}).await
        }
        ListCommand::Sessions(args) => {
            let query = ListQuery { group_by: Some(args.group_by), ..args.filters.query() };
            let table = |sessions: &[SessionItem], _| render::sessions(sessions, args.agent_summary);
            let form = ListForm { json: args.json, format: args.format, table };
            show(ListScope::Sessions, &query, form, |_| {}).await
        }
    }
}

/// How to print a list: as JSON if `json` is set, else in the user's format, else as a table.
struct ListForm<T, F> {
    json: bool,
    format: Option<ItemFormat<T>>,
    table: F,
}

/// Requests the list and prints it in this form.
async fn show<T: DeserializeOwned + FormatItem, F: FnOnce(&[T], Timestamp) -> TextTable>(
    scope: ListScope,
    query: &ListQuery,
    form: ListForm<T, F>,
    sort: impl FnOnce(&mut [T]),
) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let bytes = daemon.get_bytes(&format!("/v1/{scope}"), query).await?;
    if form.json {
        return output::json_answer(&bytes);
    }
    let mut listing: ListResponse<T> = parse(&bytes)?;
    render::target_errors(&listing.target_errors).for_each(|message| message.print_stderr());
    if listing.items.is_empty() {
        let health = daemon.get("/v1/health", &ListQuery::default()).await?;
        empty::explain(scope, &listing.filters, &health).print_stderr();
        return Ok(());
    }
    sort(&mut listing.items);
    let (items, now) = (&listing.items[..], listing.generated_at);
    if let Some(format) = form.format {
        return output::styled_lines(&items.iter().map(|item| format.line(item, now)).collect::<Vec<_>>());
    }
    let terminal = StdoutTerminal::detect();
    let mut lines = (form.table)(items, now).lines(&terminal);
    if terminal.is_tty {
        lines.push(String::new());
        lines.push(render::summary_line(&listing.summary, terminal.colour));
    }
    output::styled_lines(&lines)
}
