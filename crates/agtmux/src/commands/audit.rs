//! `agtmux audit`: lists the actions on agents.

use agtmux_api::wire::{AuditLog, AuditQuery};
use agtmux_client::{DaemonClient, parse};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::CliResult;
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Show only actions on this agent: its name, type or session, a place (work:1.2), %12, or runtime:ID. You can also
    /// name an agent that has ended
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Show only actions after this time: a timestamp, or a duration before now, such as 10m
    #[arg(long, value_name = "TIME", value_parser = super::watch::parse_since)]
    since: Option<Timestamp>,
    /// Show at most the newest N actions
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: AuditArgs) -> CliResult {
    let query = AuditQuery { r#ref: args.reference, since: args.since, limit: args.limit };
    let answer = DaemonClient::from_env()?.get_bytes("/v1/audit", &query).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let audit: AuditLog = parse(&answer)?;
    if audit.items.is_empty() {
        CliMessage::new("no actions are recorded").hint("agtmux send --help").print_stderr();
        return Ok(());
    }
    output::styled_lines(&render::audit(&audit.items, &TimeZone::system()).lines(&StdoutTerminal::detect()))?;
    let usually = usize::try_from(AuditQuery::DEFAULT_LIMIT).unwrap_or(usize::MAX);
    if args.limit.is_none() && audit.items.len() >= usually {
        let message = CliMessage::new(format!("showing only the newest {usually} actions"));
        message.hint("agtmux audit --limit 10000").hint("agtmux audit --since 1h").print_stderr();
    }
    Ok(())
}
