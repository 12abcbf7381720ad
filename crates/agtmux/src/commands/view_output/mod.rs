//! `agtmux view-output`: prints the contents of an agent's pane.

mod follow;
mod new_lines;

use agtmux_api::wire::{ActionOutcome, OutputAction, OutputReport};
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use super::guards::GuardArgs;
use crate::error::CliResult;
use crate::output;

/// The escape code that resets the colours.
const RESET_COLOURS: &str = "\u{1b}[0m";

#[derive(Debug, Args)]
#[command(
    after_help = "Prints only text, without control characters. With --ansi, keeps colours, even if the output is a \
    pipe.\n\n\
    --follow ends when the agent ends. If a line changes, --follow prints the line again. If a full-screen program \
    runs, --follow redraws the whole screen.\n\n\
    Example:\n  agtmux view-output %12 --lines 200 --follow"
)]
pub(crate) struct ViewOutputArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Print at most the last N lines of the scrollback and the screen [default: the visible screen]
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
    /// Keep colours
    #[arg(long)]
    ansi: bool,
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
    /// Print JSON; with --follow, one line per change
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<ViewOutputArgs>) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let action = OutputAction { guards, lines: args.lines, ansi: args.ansi, again: false };
    let answer = daemon.act("/v1/actions/view-output", &action).await?;
    let shown: ActionOutcome<OutputReport> = parse(&answer)?;
    match args.json {
        true => output::json_answer(&answer)?,
        // The daemon has sanitized the lines, and has kept colours if they were asked for.
        false => output::styled_lines(&with_colour_reset(&shown.report.lines, args.ansi))?,
    }
    if args.follow { follow::run(daemon, action, shown, args.json).await } else { Ok(()) }
}

/// Adds a colour reset to the last line, so that the colours do not continue in the terminal.
fn with_colour_reset(lines: &[String], ansi: bool) -> Vec<String> {
    match (ansi, lines.split_last()) {
        (true, Some((last, rest))) => rest.iter().cloned().chain([format!("{last}{RESET_COLOURS}")]).collect(),
        _ => lines.to_vec(),
    }
}
