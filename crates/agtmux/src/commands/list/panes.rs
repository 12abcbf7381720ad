use agtmux_api::wire::{Listing, PaneItem, Scope};
use clap::Args;

use super::show::{Request, show};
use crate::commands::filters::FilterArgs;
use crate::error::{CliError, Exit};
use crate::render;

#[derive(Debug, Default, Args)]
pub(crate) struct PanesArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: PanesArgs) -> Result<Exit, CliError> {
    let request = Request { scope: Scope::Panes, query: args.filters.query(), json: args.json };
    show(request, |listing: &Listing<PaneItem>| render::panes(&listing.items, listing.generated_at)).await
}
