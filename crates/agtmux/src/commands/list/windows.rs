use agtmux_api::wire::{Listing, Scope, WindowItem};
use clap::Args;

use super::show::{Request, show};
use crate::commands::filters::FilterArgs;
use crate::error::{CliError, Exit};
use crate::render;

#[derive(Debug, Args)]
pub(crate) struct WindowsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Show the strongest state of each window's agents and how many wait and run. JSON always has it
    #[arg(long)]
    with_agent_status: bool,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: WindowsArgs) -> Result<Exit, CliError> {
    let request = Request { scope: Scope::Windows, query: args.filters.query(), json: args.json };
    show(request, |listing: &Listing<WindowItem>| render::windows(&listing.items, args.with_agent_status)).await
}
