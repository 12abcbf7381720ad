//! `agtmux task startup`: what earlier sessions of a project have left.

use std::path::PathBuf;

use agtmux_api::wire::{TaskSessionQuery, TaskStartupReport, TaskStartupRequest};
use agtmux_core::sanitize;
use clap::Args;

use super::session_args::{KeeperArgs, TaskSessionArgs, project};
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Sessions of the same project that this agtmux has made are removed where nothing runs in them any more, and named \
    where something does. Those of a program that still runs, and those of others, are not touched."
)]
pub(crate) struct TaskStartupArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    #[command(flatten)]
    keeper: KeeperArgs,
    /// The project, as a whole path; else AGTMUX_PROJECT says so, else it is the current directory
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskStartupArgs) -> Result<CliExit, CliError> {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    let project = match project(args.project.as_ref()) {
        Some(project) => project,
        None => std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?,
    };
    let project = project.to_str().ok_or_else(|| {
        CliError::new(
            CliExit::Usage,
            CliMessage::new("the project's path is no UTF-8").hint("agtmux task startup --help"),
        )
    })?;
    let asked = TaskStartupRequest { session, socket, project: project.to_owned(), owner: args.keeper.pid()? };
    let answer = DaemonClient::from_env()?.act("/v1/tasks/startup", &asked).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let report: TaskStartupReport = parse(&answer)?;
    output::lines(&report.notices.iter().map(|notice| sanitize::for_terminal(notice)).collect::<Vec<_>>())?;
    Ok(CliExit::Ok)
}
