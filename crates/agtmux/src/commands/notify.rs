//! `agtmux notify`: tests the channels of notifications, and lists what was sent and held back.

use agtmux_api::wire::{NotifyLog, NotifyLogQuery, NotifyTestItem, NotifyTestReport, NotifyTestRequest};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::notify::NotifyChannel;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::choices::one_of;
use crate::error::{CliExit, CliResult};
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test notice and print which channels took it
    ///
    /// Ignores rules and quiet hours. Exits with 1 if a channel fails.
    Test(NotifyTestArgs),
    /// List which notices were sent, and which were held back and why
    Log(NotifyLogArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NotifyTestArgs {
    /// The channel. Without it, all channels that the rules name
    #[arg(value_parser = one_of(NotifyChannel::ALL.iter().map(|channel| (channel.as_str(), *channel))))]
    channel: Option<NotifyChannel>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NotifyLogArgs {
    /// Show only lines after this time: a timestamp, or a duration before now, such as 10m
    #[arg(long, value_name = "TIME", value_parser = super::watch::parse_since)]
    since: Option<Timestamp>,
    /// Show at most the newest N lines [default: 200]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: NotifyCommand) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    match command {
        NotifyCommand::Test(args) => test(&daemon, &args).await,
        NotifyCommand::Log(args) => log(&daemon, args).await,
    }
}

async fn test(daemon: &DaemonClient, args: &NotifyTestArgs) -> CliResult {
    let answer = daemon.act("/v1/notify/test", &NotifyTestRequest { channel: args.channel }).await?;
    let describe = |report: &NotifyTestReport| report.items.iter().map(result_line).collect();
    let report: NotifyTestReport = output::parsed_answer(&answer, args.json, describe)?;
    match report.items.iter().all(|item| item.delivered) {
        true => Ok(()),
        false => CliExit::Failed.into_result(),
    }
}

fn result_line(item: &NotifyTestItem) -> String {
    match &item.error {
        None => format!("{}: sent", item.channel),
        Some(error) => format!("{}: failed: {error}", item.channel),
    }
}

async fn log(daemon: &DaemonClient, args: NotifyLogArgs) -> CliResult {
    let query = NotifyLogQuery { since: args.since, limit: args.limit };
    let answer = daemon.get_bytes("/v1/notify/log", &query).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let log: NotifyLog = parse(&answer)?;
    if log.items.is_empty() {
        CliMessage::new("no notices are recorded").hint("agtmux notify test").print_stderr();
        return Ok(());
    }
    output::styled_lines(&render::notify_log(&log.items, &TimeZone::system()).lines(&StdoutTerminal::detect()))
}
