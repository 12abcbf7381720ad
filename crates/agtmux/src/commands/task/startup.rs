//! `agtmux task startup`: cleans up after earlier sessions of a project.

use std::path::PathBuf;

use agtmux_api::wire::{TaskSessionQuery, TaskStartupReport, TaskStartupRequest};
use agtmux_client::DaemonClient;
use clap::Args;

use super::session_args::{NamedSessionArgs, SessionOwnerArgs, project};
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "An agent's host program runs this when the agent starts. --session names the task session of that agent; \
    agtmux leaves it alone. Of the other sessions of the project, agtmux removes those that it created and in which \
    nothing runs, and prints those in which a task still runs. It keeps sessions whose owner is still running."
)]
pub(crate) struct TaskStartupArgs {
    #[command(flatten)]
    session: NamedSessionArgs,
    #[command(flatten)]
    owner: SessionOwnerArgs,
    /// The absolute path of the project [default: AGTMUX_PROJECT or the current directory]
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskStartupArgs) -> CliResult {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    let project = match project(args.project.as_ref()) {
        Some(project) => project,
        None => std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?,
    };
    let project = project
        .to_str()
        .ok_or_else(|| CliError::usage("the path of the project is not UTF-8").hint("agtmux task startup --help"))?;
    let request = TaskStartupRequest { session, socket, project: project.to_owned(), owner: args.owner.pid()? };
    let answer = DaemonClient::from_env()?.act("/v1/tasks/startup", &request).await?;
    output::answer(&answer, args.json, |report: &TaskStartupReport| report.notices.clone())
}
