//! Hosts that have tmux and a POSIX shell, and nothing of ours. What their panes show and what runs in them is asked for
//! through one shell that stays open; what that says is judged here. There are no hints but what the listing itself tells.

mod pace;
mod reach;
mod server;
mod watch;

pub(crate) use reach::{BareHosts, Processes, Reach, StrikeError, Untold};
pub(crate) use watch::run_bare;
