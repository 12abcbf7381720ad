use agtmux_api::wire::{ListResponse, ListScope, PaneItem};
use clap::Args;

use super::show::{ListRequest, show};
use crate::commands::filters::FilterArgs;
use crate::error::{CliError, CliExit};
use crate::render;

#[derive(Debug, Default, Args)]
pub(crate) struct PanesArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: PanesArgs) -> Result<CliExit, CliError> {
    let request = ListRequest { scope: ListScope::Panes, query: args.filters.query(), json: args.json };
    show(request, |listing: &ListResponse<PaneItem>| render::panes(&listing.items, listing.generated_at)).await
}
