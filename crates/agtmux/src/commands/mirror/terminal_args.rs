//! Options that select the shared terminal.

use agtmux_api::wire::MirrorQuery;
use agtmux_core::ids::PaneId;
use agtmux_tmux::socket_of_tmux_variable;
use clap::Args;

use crate::error::{CliError, CliResult};
use crate::input::variable;

#[derive(Debug, Args)]
pub(super) struct TerminalArgs {
    /// The pane of the shared terminal, such as %5 [default: TMUX_MIRROR_TARGET, else the shared terminal of
    /// this pane or session]
    #[arg(long, value_name = "PANE")]
    pane: Option<String>,
}

impl TerminalArgs {
    pub(super) fn resolve(&self) -> CliResult<MirrorQuery> {
        let pane = self.pane.clone().or_else(|| variable("TMUX_MIRROR_TARGET"));
        let pane = pane.map(|pane| checked_pane(&pane)).transpose()?;
        match (pane, own_pane()) {
            (Some(pane), own) => Ok(MirrorQuery { pane: Some(pane), ..own.unwrap_or_default() }),
            (None, Some(own)) => Ok(own),
            (None, None) => Err(outside_tmux()),
        }
    }
}

/// The tmux server and the pane in which this process runs.
pub(super) fn own_pane() -> Option<MirrorQuery> {
    let socket = socket_of_tmux_variable(&variable("TMUX")?)?;
    let socket = Some(socket.display().to_string());
    Some(MirrorQuery { socket, pane: None, for_pane: Some(variable("TMUX_PANE")?) })
}

pub(super) fn checked_pane(pane: &str) -> CliResult<String> {
    let id = pane.parse::<PaneId>();
    id.map(|id| id.to_string()).map_err(|_| {
        CliError::usage(format!("'{}' is not a pane id", pane.escape_debug()))
            .hint("tmux display-message -p '#{pane_id}'   (prints the id of a pane, such as %5)")
    })
}

pub(super) fn outside_tmux() -> CliError {
    CliError::usage("a shared terminal needs tmux, and this process does not run in a pane of tmux")
        .because("TMUX or TMUX_PANE is not set")
        .hint("tmux new-session -A -s main   (then run the command again)")
}
