use agtmux_api::wire::{ListResponse, ListScope, WindowItem};
use clap::Args;

use super::show::{ListRequest, show};
use crate::commands::filters::FilterArgs;
use crate::error::{CliError, CliExit};
use crate::render;

#[derive(Debug, Args)]
pub(crate) struct WindowsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Show the most urgent state in each window (error, waiting_approval, waiting_input, running, …) and how many
    /// agents are waiting and running. JSON always includes this
    #[arg(long)]
    with_agent_status: bool,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: WindowsArgs) -> Result<CliExit, CliError> {
    let request = ListRequest { scope: ListScope::Windows, query: args.filters.query(), json: args.json };
    show(request, |listing: &ListResponse<WindowItem>| render::windows(&listing.items, args.with_agent_status)).await
}
