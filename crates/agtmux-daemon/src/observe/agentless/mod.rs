//! Hosts that have tmux and a POSIX shell, and nothing of ours. What their panes show and what runs in them is asked for
//! through one shell that stays open; what that says is judged here. There are no hints but what the listing itself tells.

mod access;
mod host_schedule;
mod server;
mod watch;

pub(crate) use access::{AgentlessHostMap, HostProcesses, ProcessesUnavailable, ServerAccess, SignalError};
pub(crate) use watch::watch_agentless_host;
