//! Agentless hosts: they have tmux and a POSIX shell, but no agtmux. The hub reads panes and processes through one
//! shell that stays open over ssh, and judges them itself. There are no hints, so changes are found by polling.

mod access;
mod host_schedule;
mod server;
mod watch;

pub(crate) use access::{AgentlessHostMap, HostProcesses, ProcessesUnavailable, ServerAccess, SignalError};
pub(super) use watch::HostWatch;
