//! Everything about other hosts.
//!
//! `targets` holds the list of hosts and starts one `supervisor` per host, which keeps the host connected over ssh. If
//! agtmux is installed on the host, `connection` runs `agtmux collect` there and reads batches of evidence; `decode`
//! shortens and redacts the batches; the engine applies them within `limits`; `pacing` limits how fast batches are
//! read. If agtmux is not installed, `shell_connection` opens a shell on the host, and `agentless` polls the host's
//! tmux servers through this shell. Each of these servers has the same `ServerObserver` as a local server.
//!
//! An action on a host with agtmux goes back over the connection: `relay` sets the guards, sends the action through the
//! `link` and sanitizes the reply. In the other direction, `subscribers` and `encode` give the evidence of this host to
//! its hubs. `timeouts` has all timeouts, because together they bound how long a lost host counts as `ok`.

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
mod pacing;
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
pub(crate) use relay::{RemotePane, relay_new};
pub(crate) use sanitize_reply::{sanitize_last, sanitize_output};
pub(crate) use subscribers::{EvidenceSubscribers, LocalEvidence};
pub(crate) use targets::{TargetManager, TargetOptions, no_such_target};
