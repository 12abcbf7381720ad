//! `agtmux view-output`: what an agent's pane has shown.

mod follow;
mod new_lines;

use agtmux_api::wire::{ActionOutcome, OutputAction, OutputReport};
use clap::Args;

use super::guards::GuardArgs;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::output;

/// Ends the colours of a line.
const RESET_COLOURS: &str = "\u{1b}[0m";

#[derive(Debug, Args)]
#[command(
    after_help = "Whatever the pane shows, no more than text is printed; with --ansi also its colours, in a pipe too. \
    --follow ends when the agent does. A line that changes is printed again; of a program that draws the whole screen \
    the screen is shown anew."
)]
pub(crate) struct ViewOutputArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// How many lines at the most, from the history too; what is on the screen by default
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
    /// Keep colours
    #[arg(long)]
    ansi: bool,
    /// Go on and print what is new as it comes
    #[arg(long, short)]
    follow: bool,
    /// Print JSON; with --follow a line for each change
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<ViewOutputArgs>) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let action = OutputAction { guards, lines: args.lines, ansi: args.ansi, again: false };
    let answer = daemon.act("/v1/actions/view-output", &action).await?;
    let shown: ActionOutcome<OutputReport> = parse(&answer)?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::lines(&with_colour_reset(&shown.report.lines, args.ansi))?;
    }
    if args.follow { follow::run(daemon, action, shown, args.json).await } else { Ok(CliExit::Ok) }
}

/// Lines as they are printed: what follows them has its own colours.
fn with_colour_reset(lines: &[String], ansi: bool) -> Vec<String> {
    match (ansi, lines.split_last()) {
        (true, Some((last, rest))) => rest.iter().cloned().chain([format!("{last}{RESET_COLOURS}")]).collect(),
        _ => lines.to_vec(),
    }
}
