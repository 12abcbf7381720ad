use agtmux_api::wire::{ListQuery, ListResponse, ListScope, SessionGrouping, SessionItem};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::show::{ListRequest, show};
use crate::commands::filters::FilterArgs;
use crate::error::{CliError, CliExit};
use crate::render;

const BY_TARGET_SESSION: &str = "target-session";
const BY_SESSION_NAME: &str = "session-name";

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    filters: FilterArgs,
    /// Show how many agents of each session are waiting, running or idle. JSON always includes this
    #[arg(long)]
    agent_summary: bool,
    /// Group by session of a target, or merge sessions with the same name
    #[arg(long, value_name = "GROUPING", default_value = BY_TARGET_SESSION, value_parser = groupings())]
    group_by: SessionGrouping,
    /// Print the daemon's answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: SessionsArgs) -> Result<CliExit, CliError> {
    let query = ListQuery { group_by: Some(args.group_by), ..args.filters.query() };
    let request = ListRequest { scope: ListScope::Sessions, query, json: args.json };
    show(request, |listing: &ListResponse<SessionItem>| render::sessions(&listing.items, args.agent_summary)).await
}

fn groupings() -> impl TypedValueParser<Value = SessionGrouping> {
    PossibleValuesParser::new([BY_TARGET_SESSION, BY_SESSION_NAME]).map(|word| match word.as_str() {
        BY_SESSION_NAME => SessionGrouping::SessionName,
        _ => SessionGrouping::TargetSession,
    })
}
