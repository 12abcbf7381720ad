//! Everything about other hosts.
//!
//! [`TargetManager`] holds the list of targets and one supervisor task per target. A supervisor keeps its host connected
//! over ssh. If agtmux is installed there, `connection` runs `agtmux collect`: the host sends batches of evidence, and the
//! engine applies them. Without agtmux, `shell_connection` opens a shell and `agentless` polls tmux through it.
//!
//! Actions on a host with agtmux go back over the same connection: `relay` sends the request and waits for the reply.
//! Everything that a host sends is limited and sanitized before it is kept.

mod agentless;
mod connection;
mod connection_end;
mod decode;
#[cfg(test)]
mod decode_tests;
mod doctor;
mod encode;
mod limits;
mod line_reader;
mod link;
mod relay;
mod sanitize_reply;
mod shell_connection;
mod subscribers;
mod supervisor;
mod targets;
#[cfg(test)]
mod test_process;
mod timeouts;

pub(crate) use agentless::{AgentlessHostMap, HostProcesses, ProcessesUnavailable, ServerAccess, SignalError};
pub(crate) use decode::{RemoteAgentUpdate, RemoteBatch, RemoteUpdate};
pub(crate) use limits::{HostLimits, reported_server};
pub(crate) use link::TargetLink;
pub(crate) use relay::RemotePane;
pub(crate) use sanitize_reply::sanitize_output;
pub(crate) use subscribers::{EvidenceSubscribers, LocalEvidence};
pub(crate) use targets::{TargetManager, TargetOptions, no_such_target};
