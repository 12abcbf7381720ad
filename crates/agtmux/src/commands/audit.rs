//! `agtmux audit`: what was done to agents.

use agtmux_api::wire::{Audit, AuditQuery};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::terminal::Terminal;
use crate::{output, render};

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only what was done since then: a time, or how long ago, as 10m
    #[arg(long, value_name = "TIME", value_parser = super::watch::since_when)]
    since: Option<Timestamp>,
    /// How many at the most, the newest
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: AuditArgs) -> Result<Exit, CliError> {
    let query = AuditQuery { since: args.since, limit: args.limit };
    let answer = Daemon::from_env()?.bytes("/v1/audit", &query).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let audit: Audit = parse(&answer)?;
    if audit.items.is_empty() {
        Message::new("nothing was done to any agent").hint("agtmux send --help").tell();
        return Ok(Exit::Ok);
    }
    output::lines(&render::audit(&audit.items, &TimeZone::system()).lines(&Terminal::of_stdout()))?;
    let usually = usize::try_from(AuditQuery::USUALLY).unwrap_or(usize::MAX);
    if args.limit.is_none() && audit.items.len() >= usually {
        let message = Message::new(format!("only the newest {usually} are shown"));
        message.hint("agtmux audit --limit 10000").hint("agtmux audit --since 1h").tell();
    }
    Ok(Exit::Ok)
}
