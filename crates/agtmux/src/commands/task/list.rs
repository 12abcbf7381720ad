//! `agtmux task list`.

use agtmux_api::wire::TaskList;
use clap::Args;

use super::place::PlaceArgs;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::terminal::Terminal;
use crate::{output, render};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ListArgs) -> Result<Exit, CliError> {
    let place = args.place.place()?;
    let answer = Daemon::from_env()?.bytes("/v1/tasks", &place).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let list: TaskList = parse(&answer)?;
    if list.tasks.is_empty() {
        let message = Message::new(format!("'{}' holds no tasks", place.session));
        message.hint("agtmux task run NAME 'COMMAND'").tell();
        return Ok(Exit::Ok);
    }
    output::lines(&render::tasks(&list.tasks).lines(&Terminal::of_stdout()))?;
    Ok(Exit::Ok)
}
