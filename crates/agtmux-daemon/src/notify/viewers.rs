//! Finds out whether a person uses a client that shows a pane.

use agtmux_api::wire::PaneIdentity;
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use jiff::Timestamp;

use crate::observe::Discovery;

/// When a key was last pressed in a client that shows this pane. `None` if no client shows it, or if the clients of its
/// tmux server are not known.
pub(super) async fn last_key(discovery: &Discovery, pane: &PaneIdentity) -> Option<Timestamp> {
    let server =
        ServerKey { target: TargetName::new(pane.target.clone()), server: ServerName::new(pane.server.clone()) };
    let access = discovery.server_access(&server)?;
    let clients = access.tmux.client_terminals().await.ok()?;
    let showing = clients.iter().filter(|client| client.shows(pane.window_id.0, pane.pane_id.0));
    let last = showing.map(|client| client.last_key).max()?;
    Timestamp::from_second(i64::try_from(last).ok()?).ok()
}
