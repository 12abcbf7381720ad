//! `agtmux next`: moves the tmux client to the next agent that waits.

use std::collections::BTreeSet;
use std::path::Path;

use agtmux_api::config::Config;
use agtmux_api::wire::{ActionGuards, ListQuery, ListResponse, PaneItem};
use agtmux_client::DaemonClient;
use agtmux_core::ids::TargetName;
use agtmux_core::state::State;
use agtmux_core::text;
use agtmux_tmux::SocketDir;
use clap::Args;
use std::os::unix::ffi::OsStrExt;

use super::{AttachTarget, CallingClient, ClientArgs};
use crate::commands::guards::CLIENT_NAME;
use crate::error::{CliError, CliResult};

#[derive(Debug, Args)]
#[command(
    after_help = "The agent that has waited for longest comes first. If you are at a waiting agent, goes to the one after it, and from \
    the last to the first. `agtmux back` returns.\n\n\
    Examples:\n  agtmux next\n  tmux bind-key g run-shell -b \"agtmux next --client '#{client_tty}'\""
)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: NextArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let tmux = Config::load(&daemon.paths.config)?.tmux;
    let Some(client) = args.client.find(&tmux).await? else {
        return next_agent(&daemon, None).await?.attach_here(&tmux).await;
    };
    let moved = async { next_agent(&daemon, Some(&client)).await?.move_client(&daemon, &tmux, &client).await };
    client.report(&args.client, moved.await).await
}

async fn next_agent(daemon: &DaemonClient, client: Option<&CallingClient>) -> CliResult<AttachTarget> {
    let query = ListQuery { needs_action: true, ..ListQuery::default() };
    let mut items = daemon.get::<ListResponse<PaneItem>>("/v1/panes", &query).await?.items;
    items.retain(|item| item.state.is_some_and(State::is_waiting) && item.runtime_id.is_some());
    items.sort_by(|a, b| a.attention_order().cmp(&b.attention_order()));
    let current = items.iter().find(|item| client.is_some_and(|client| shows(client, item)));
    let current = current.and_then(|item| item.runtime_id.clone());
    let mut seen = BTreeSet::new();
    let waiting: Vec<String> = items.into_iter().filter_map(|item| item.runtime_id).collect();
    let waiting: Vec<String> = waiting.into_iter().filter(|runtime| seen.insert(runtime.clone())).collect();
    let runtime = after(&waiting, current.as_deref())?.to_owned();
    let guards = ActionGuards {
        r#ref: format!("runtime:{runtime}"),
        if_runtime: Some(runtime),
        client: Some(CLIENT_NAME.into()),
        ..ActionGuards::default()
    };
    AttachTarget::plan(daemon, guards).await
}

/// The waiting agent that follows the current one.
fn after<'a>(waiting: &'a [String], current: Option<&str>) -> CliResult<&'a str> {
    let at = current.and_then(|current| waiting.iter().position(|runtime| runtime == current));
    let next = match at {
        Some(_) if waiting.len() == 1 => return Err(CliError::failed("no other agent waits for you")),
        Some(at) => (at + 1) % waiting.len(),
        None => 0,
    };
    waiting.get(next).map(String::as_str).ok_or_else(|| CliError::failed("no agent waits for you"))
}

/// Whether the client shows this agent.
fn shows(client: &CallingClient, item: &PaneItem) -> bool {
    let identity = &item.identity;
    match &client.view.shown_agent {
        Some(runtime) => item.runtime_id.as_ref() == Some(runtime),
        None => {
            identity.target == TargetName::LOCAL
                && identity.pane_id.0 == client.view.client.pane
                && identity.server == server_name(&client.socket)
        }
    }
}

/// The name of the server in the lists of the daemon.
fn server_name(socket: &Path) -> String {
    let dir = SocketDir::below(std::env::var_os("TMUX_TMPDIR").as_deref());
    let is_default = socket.parent().is_some_and(|parent| super::local::same_file(parent, dir.path()));
    let name = if is_default { socket.file_name() } else { None };
    text::from_bytes(name.unwrap_or(socket.as_os_str()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_after_the_current_one_comes_next() {
        let waiting = ["a", "b", "c"].map(str::to_owned);
        let next = |current| after(&waiting, current).ok();
        assert_eq!([next(None), next(Some("a")), next(Some("c"))], [Some("a"), Some("b"), Some("a")]);
        assert_eq!(next(Some("x")), Some("a"), "an agent that does not wait");
        assert!(after(&waiting[..1], Some("a")).is_err() && after(&[], None).is_err());
        assert_eq!(after(&waiting[..1], Some("b")).ok(), Some("a"));
    }
}
