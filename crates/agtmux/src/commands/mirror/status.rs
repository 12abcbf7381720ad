//! `agtmux mirror status`: lists the shared terminals.

use agtmux_api::wire::{MirrorItem, MirrorList, MirrorQuery};
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use crate::error::CliResult;
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MirrorStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MirrorStatusArgs) -> CliResult {
    let answer = DaemonClient::from_env()?.get_bytes("/v1/mirrors", &MirrorQuery::default()).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let list: MirrorList = parse(&answer)?;
    if list.items.is_empty() {
        CliMessage::new("there is no shared terminal").hint("agtmux mirror start").print_stderr();
        return Ok(());
    }
    output::lines(list.items.iter().map(describe))
}

fn describe(item: &MirrorItem) -> String {
    let what = match (&item.problem, &item.running) {
        (Some(problem), _) => problem.clone(),
        (None, Some(running)) => running.command.clone().unwrap_or_else(|| "a command".into()),
        (None, None) => item.cwd.clone().unwrap_or_default(),
    };
    let for_pane = item.for_pane.map_or(String::new(), |pane| format!(" for {pane}"));
    format!("{}{for_pane}  {}  {}  {what}", item.pane_id, item.shell, item.status)
}
